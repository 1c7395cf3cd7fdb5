"""The database away, locked or full, the clock set back: senders are told to come again, and in the end all counts."""

import os
import resource
import signal
import sqlite3
import subprocess
import time
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, closing, contextmanager
from dataclasses import dataclass
from pathlib import Path

import pytest

from tests.collector import support
from tests.collector.support import Running, ask
from tests.collector.torture import LONG, books, stepped
from tests.collector.torture.load import Load, load

SPEC = """
service: chat
objectives:
  - {name: ttft, signal: ttft, percentile: 95, threshold: 500ms, window: 1d}
"""
LOCKED_S = 20 if LONG else 10
AWAY_S = 60 if LONG else 12
TMPFS_BYTES = 8 << 20

pytestmark = pytest.mark.timeout(300)


@contextmanager
def working(folder: Path, database: str) -> Iterator[tuple[Running, Load]]:
    """A collector under load that takes what it is sent; when the block ends it must have counted all of it."""
    with (
        load() as sent,
        support.collector(folder, "--tick", "1s", "--database", database, spec=SPEC) as running,
    ):
        sent.doors.url, sent.doors.rpc = running.url, running.rpc_target()
        sent.goes_on()
        yield running, sent
        sent.goes_on()
        total = sent.finish()
        assert sent.faults == []
        assert books.counted(database) == total
        assert books.is_sound(database)
        books.shown(running.url, total)
        assert running.stop() == 0


def nothing_gets_through(sent: Load, *, for_s: float) -> None:
    """So long, or longer: until senders were told to come again. Nobody is told anything else."""
    until_s = time.monotonic() + for_s
    refused, acknowledged = sent.refused, sent.acknowledged["bodies"]
    support.until(lambda: sent.refused > refused and time.monotonic() > until_s, patience_s=for_s + 60)
    # A body may have been on its way when it began.
    assert sent.acknowledged["bodies"] <= acknowledged + len(sent.senders)


# Locked.


@contextmanager
def locked_sqlite(database: str) -> Iterator[None]:
    with closing(sqlite3.connect(books.file_of(database), timeout=30, isolation_level=None)) as connection:
        connection.execute("BEGIN IMMEDIATE")
        yield
        connection.execute("ROLLBACK")


def test_a_database_that_somebody_else_writes_to(tmp_path: Path) -> None:
    database = f"sqlite:///{tmp_path}/firsttoken.db"
    with working(tmp_path, database) as (running, sent), locked_sqlite(database):
        nothing_gets_through(sent, for_s=LOCKED_S)
        assert ask(f"{running.url}/healthz").status == 200
        assert ask(f"{running.url}/readyz").status == 503


# Full.


@contextmanager
def full_disk(folder: Path, _running: Running) -> Iterator[None]:
    """Another program takes every byte that is left."""
    filler = folder / "filler"
    with filler.open("wb", buffering=0) as file:
        try:
            while True:
                file.write(bytes(4096))
        except OSError:
            pass
        yield
    filler.unlink()


@contextmanager
def longest_file(folder: Path, running: Running) -> Iterator[None]:
    """No file of the collector may become longer than its longest is."""
    longest = max(path.stat().st_size for path in folder.iterdir())
    before = resource.prlimit(running.process.pid, resource.RLIMIT_FSIZE)
    # The log of what SQLite is about to write grows from its start again; so it may not grow to where it does.
    resource.prlimit(running.process.pid, resource.RLIMIT_FSIZE, (min(longest, 256 << 10), before[1]))
    yield
    resource.prlimit(running.process.pid, resource.RLIMIT_FSIZE, before)


@contextmanager
def small_disk(folder: Path) -> Iterator[Path]:
    """A file system of a few MB of our own."""
    place = folder / "disk"
    place.mkdir()
    mount = ["mount", "-t", "tmpfs", "-o", f"size={TMPFS_BYTES}", "tmpfs", str(place)]
    subprocess.run(mount, check=True, capture_output=True)
    try:
        yield place
    finally:
        subprocess.run(["umount", "--lazy", str(place)], check=True)


@contextmanager
def any_disk(folder: Path) -> Iterator[Path]:
    """The one that is there."""
    yield folder


def _may_mount() -> bool:
    """Whether a file system may be mounted by us, here."""
    probe = ["unshare", "--mount", "mount", "-t", "tmpfs", "tmpfs", "/mnt"]
    return os.geteuid() == 0 and subprocess.run(probe, capture_output=True).returncode == 0


@dataclass(frozen=True)
class Shortage:
    """Where the database lies, and how it finds no room."""

    disk: Callable[[Path], AbstractContextManager[Path]]
    begins: Callable[[Path, Running], AbstractContextManager[None]]


SHORTAGES = {"no longer file": Shortage(any_disk, longest_file)}
if _may_mount():
    SHORTAGES["no room"] = Shortage(small_disk, full_disk)


@pytest.mark.parametrize("how", SHORTAGES)
def test_a_disk_that_is_full(tmp_path: Path, how: str) -> None:
    shortage = SHORTAGES[how]
    with shortage.disk(tmp_path) as place:
        database = f"sqlite:///{place}/firsttoken.db"
        with working(tmp_path, database) as (running, sent), shortage.begins(place, running):
            nothing_gets_through(sent, for_s=3)
            assert ask(f"{running.url}/healthz").status == 200


# Away.


class Server:
    """The processes of a PostgreSQL of our own, by the folder in its URL."""

    def __init__(self, url: str) -> None:
        folder = Path(url.rpartition("host=")[2])
        self._pid_file = folder / "data" / "postmaster.pid"
        self.url, self._folder = url, folder
        self.pid = int(self._pid_file.read_text().split()[0])
        self._command = Path(f"/proc/{self.pid}/cmdline").read_bytes().decode().split("\0")[:-1]
        self._is_ready = Path(self._command[0]).parent / "pg_isready"
        self._owner = self._pid_file.stat()
        self._again: subprocess.Popen[bytes] | None = None

    @contextmanager
    def stopped(self) -> Iterator[None]:
        """None of its processes does anything, and connections stay open."""
        children = Path(f"/proc/{self.pid}/task/{self.pid}/children")
        os.kill(self.pid, signal.SIGSTOP)
        pids = [self.pid, *map(int, children.read_text().split())]
        for pid in pids[1:]:
            os.kill(pid, signal.SIGSTOP)
        try:
            yield
        finally:
            for pid in pids:
                os.kill(pid, signal.SIGCONT)

    @contextmanager
    def crashed(self) -> Iterator[None]:
        """It is gone at once, and comes back."""
        os.kill(self.pid, signal.SIGQUIT)
        support.until(lambda: not self._pid_file.exists())
        yield
        support.until(self._is_up_again)

    def _is_up_again(self) -> bool:
        """Whether it answers. One that could not start, as what the old one left was still in use, is started anew."""
        if self._again is None or self._again.poll() is not None:
            who = {"user": self._owner.st_uid, "group": self._owner.st_gid, "extra_groups": []}
            identity = who if os.geteuid() == 0 else {}
            with (self._folder / "again.log").open("ab") as log:
                self._again = subprocess.Popen(self._command, cwd=self._folder, stdout=log, stderr=log, **identity)
        return subprocess.run([self._is_ready, "-h", self._folder, "-q"]).returncode == 0

    def end(self) -> None:
        """End what came back."""
        if self._again is not None:
            self._again.send_signal(signal.SIGQUIT)
            self._again.wait(60)


@pytest.fixture
def server() -> Iterator[Server]:
    with support.postgresql() as url:
        one = Server(url)
        try:
            yield one
        finally:
            one.end()


@pytest.mark.tools
@pytest.mark.parametrize("how", [Server.stopped, Server.crashed])
def test_a_database_that_is_away(
    tmp_path: Path, server: Server, how: Callable[..., AbstractContextManager[None]]
) -> None:
    with working(tmp_path, server.url) as (running, sent), how(server):
        nothing_gets_through(sent, for_s=AWAY_S)
        assert ask(f"{running.url}/healthz").status == 200
        assert ask(f"{running.url}/readyz").status == 503


# The clock.


def test_a_clock_that_is_set_back_and_right_again(tmp_path: Path) -> None:
    """Collector and senders are on one machine. What is cumulative waits until the time it was last counted has come
    again; nothing is lost."""
    database, clock = f"sqlite:///{tmp_path}/firsttoken.db", stepped.Clock(tmp_path / "offset")
    (tmp_path / "slo.yaml").write_text(SPEC)
    with (
        load(clock=clock) as sent,
        stepped.collector(clock, "--tick", "1s", "--database", database, folder=tmp_path) as (url, process),
    ):
        sent.doors.url = url
        sent.goes_on()
        with sent.pause():  # what was made before and comes after would be refused: it is far in the future
            clock.offset_s = -600
        sent.goes_on()
        support.until(lambda: "set back" in (tmp_path / support.LOG).read_text())
        with sent.pause():
            clock.offset_s = 0
        sent.goes_on(4 * len(sent.senders))
        total = sent.finish()
        assert sent.faults == []
        assert books.counted(database) == total
        books.shown(url, total)
        process.send_signal(signal.SIGTERM)
        assert process.wait(support.PATIENCE_S) == 0
