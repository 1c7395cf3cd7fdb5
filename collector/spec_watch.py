"""Looks at the files of the configuration now and then, and says when they have changed (`--watch-slo`).

What is compared is what `stat` tells of a file, and of those in a folder, links followed: an editor that writes a new
file in the old one's place, and Kubernetes, which swaps a link, both show another inode. A change counts once two looks
in a row saw the same: a file that is being written may be valid half-way.
"""

import asyncio
from collections.abc import Callable, Iterable, Iterator
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

WATCH_S = 5.0

Stamp = tuple[int, int, int, int]
Sight = tuple[tuple[Path, Stamp | None], ...]
"""Of each file: device, inode, size and time of the last write; None where there is none."""


@dataclass(frozen=True, slots=True)
class Watched:
    """Files to look at, and what was seen of them before they were read."""

    paths: tuple[Path, ...]
    seen: Sight


def watched(paths: Iterable[Path]) -> Watched:
    """These files from now on; to be asked for before they are read."""
    paths = tuple(paths)
    return Watched(paths, sight(paths))


def sight(paths: Iterable[Path]) -> Sight:
    """What stands at these paths now, a folder's own files included. Reads no file."""
    return tuple((path, _stamp(path)) for path in _with_members(paths))


class Change:
    """Tells the looks that call for an act from those that do not; `in_force` is what was read."""

    def __init__(self, in_force: Sight) -> None:
        self._in_force = self._before = in_force

    def settled(self, now: Sight) -> bool:
        """Whether what is seen now is new, and was the same at the look before; such a change is told once."""
        at_rest, self._before = now == self._before, now
        if now == self._in_force or not at_rest:
            return False
        self._in_force = now
        return True


async def watch(files: Watched, act: Callable[[], None], *, every_s: float = WATCH_S) -> None:
    """Look for ever, and act at each change that has settled."""
    change = Change(files.seen)
    while True:
        await asyncio.sleep(every_s)
        if change.settled(await asyncio.to_thread(sight, files.paths)):
            act()


def _with_members(paths: Iterable[Path]) -> Iterator[Path]:
    for path in paths:
        yield path
        with suppress(OSError):  # no folder, or none any more
            yield from sorted(path.iterdir())


def _stamp(path: Path) -> Stamp | None:
    try:
        found = path.stat()
    except OSError:
        return None
    return found.st_dev, found.st_ino, found.st_size, found.st_mtime_ns
