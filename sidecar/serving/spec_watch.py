"""Looks at the files of the configuration now and then, and acts when they have changed: `--watch-slo`."""

import asyncio
from collections.abc import Callable

from sidecar import limits
from sidecar.daemon_thread import on_daemon_thread
from slo.sight import Change, Watched, sight


async def watch(files: Watched, act: Callable[[], None], *, every_s: float = limits.WATCH_S) -> None:
    """Look for ever, and act at each change that has settled."""
    change = Change(files.seen)
    while True:
        await asyncio.sleep(every_s)
        # Off the loop: a file system over a network may not answer, and no stream shall wait for it.
        if change.settled(await on_daemon_thread(sight, files.paths)):
            act()
