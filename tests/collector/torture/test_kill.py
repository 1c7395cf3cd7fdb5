"""kill -9 at any moment, also while it starts, under load: nothing acknowledged is lost, nothing counts twice."""

import random
import signal
import threading
from pathlib import Path
from subprocess import Popen

import pytest

from tests.collector import support
from tests.collector.torture import LONG, books
from tests.collector.torture.load import Doors, Load, load

KILLS = 50 if LONG else 3
SPEC = """
service: chat
objectives:
  - {name: ttft, signal: ttft, percentile: 95, threshold: 500ms, window: 1d}
"""
FLAGS = ("--tick", "1s", "--database")


def speaks(process: "Popen[str]", to: Doors) -> bool:
    """Wait until the collector says where it listens, and tell the senders; whether it lived to say it."""
    assert process.stdout is not None
    lines = [process.stdout.readline() for _ in range(2)]
    if not all(line.endswith("\n") for line in lines):
        return False
    to.url, to.rpc = lines[0].split()[1], lines[1].rpartition("//")[2].strip()
    return True


def killed(folder: Path, database: str, to: Load, dice: random.Random) -> None:
    """One life, ended at random: one in four while it starts, but never the first, the others while it works."""
    with support.spawned(folder, *FLAGS, database, spec=SPEC) as process:
        if to.doors.url and dice.random() < 0.25:
            threading.Timer(3 * dice.random(), process.kill).start()
            speaks(process, to.doors)
        else:
            assert speaks(process, to.doors), (folder / support.LOG).read_text()
            to.goes_on(bodies=1)
            threading.Timer(2 * dice.random(), process.kill).start()
        assert process.wait() == -signal.SIGKILL


@pytest.mark.timeout(120 + 40 * KILLS)
def test_kill_9_loses_nothing_acknowledged_and_doubles_nothing(tmp_path: Path, database: str) -> None:
    dice = random.Random()
    with load() as sent:
        for _ in range(KILLS):
            killed(tmp_path, database, sent, dice)
            acknowledged, counted = sent.acknowledged, books.counted(database)
            assert acknowledged <= counted <= sent.tried, (acknowledged, counted, sent.tried)
            assert books.is_sound(database)
        with support.spawned(tmp_path, *FLAGS, database, spec=SPEC) as process:
            assert speaks(process, sent.doors)
            sent.goes_on()
            total = sent.finish()
            assert books.counted(database) == total
            figures = books.shown(sent.doors.url, total)
            process.kill()
        assert sent.faults == []
    with support.collector(tmp_path, *FLAGS, database, spec=SPEC) as running:
        assert books.shown(running.url, total) == figures
        assert books.counted(database) == total
        assert running.stop() == 0
