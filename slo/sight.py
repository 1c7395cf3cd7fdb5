"""When the files of a configuration have changed, told from what `stat` says of them. Reads none of them.

What is compared is what `stat` tells of a file, or of those in a folder, links followed: an editor that writes a new
file in the old one's place, and Kubernetes, which swaps a link when a ConfigMap or a Secret changes, both show another
inode. A change counts once two looks in a row saw the same: a file that is being written may be valid half-way.
"""

from collections.abc import Iterable, Iterator
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

Stamp = tuple[int, int, int, int]
Sight = tuple[tuple[str, Stamp | None], ...]
"""What was seen of each file: device, inode, size and time of the last write; None where there is none."""


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
    return tuple((str(path), _stamp(path)) for path in _with_members(paths))


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
