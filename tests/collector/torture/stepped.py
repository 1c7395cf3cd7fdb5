"""A collector by a clock that a test sets: the real command in a process of its own, whose time is some seconds off.

python -m tests.collector.torture.stepped OFFSET_FILE FLAGS...
"""

import mmap
import struct
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from tests.collector import support

_SECONDS = struct.Struct("d")


class Clock:
    """The time of this machine and an offset, which all that opened the file share."""

    def __init__(self, file: Path) -> None:
        if not file.exists():
            file.write_bytes(_SECONDS.pack(0.0))
        self.file, self._true = file, time.time
        with file.open("r+b") as opened:
            self._shared = mmap.mmap(opened.fileno(), _SECONDS.size)

    @property
    def offset_s(self) -> float:
        (offset_s,) = _SECONDS.unpack(self._shared[:])
        return float(offset_s)

    @offset_s.setter
    def offset_s(self, offset_s: float) -> None:
        self._shared[:] = _SECONDS.pack(offset_s)

    def __call__(self) -> float:
        return self._true() + self.offset_s


@contextmanager
def collector(clock: Clock, *flags: str, folder: Path) -> Iterator[tuple[str, "subprocess.Popen[str]"]]:
    """A collector by that clock: where it listens, and its process."""
    own = [sys.executable, "-m", __name__, str(clock.file), "--listen", "127.0.0.1:0", "--grpc", "off", *flags]
    with support.process(own, folder) as one:
        assert one.stdout is not None
        yield one.stdout.readline().split()[1], one


def main() -> int:
    """The collector's own command line, once time is another's."""
    time.time = Clock(Path(sys.argv[1]))

    from collector.cli import main as collect

    return collect(sys.argv[2:])


if __name__ == "__main__":
    sys.exit(main())
