"""Looks at the files of the configuration now and then, and acts when they have changed: `--watch-slo`."""

import asyncio
from collections.abc import Callable

from slo.sight import Change, Watched, sight

WATCH_S = 5.0


async def watch(files: Watched, act: Callable[[], None], *, every_s: float = WATCH_S) -> None:
    """Look for ever, and act at each change that has settled."""
    change = Change(files.seen)
    while True:
        await asyncio.sleep(every_s)
        if change.settled(await asyncio.to_thread(sight, files.paths)):
            act()
