"""Two collectors on one database, one of them killed every 20 s under load: nothing is lost, nothing counts twice."""

import random
import signal
import time
from contextlib import ExitStack
from pathlib import Path
from subprocess import Popen

import pytest

from tests.collector import support
from tests.collector.torture import LONG, books
from tests.collector.torture.load import load
from tests.collector.torture.test_kill import FLAGS, SPEC, speaks

KILLS, EVERY_S = (15, 20.0) if LONG else (1, 0.2)


class Place:
    """One of the two, whoever lives there at the moment."""

    def __init__(self, folder: Path, database: str) -> None:
        folder.mkdir()
        self.folder, self._database = folder, database
        self._life = ExitStack()
        self.process: Popen[str] | None = None

    def begin(self) -> "Popen[str]":
        self.process = self._life.enter_context(support.spawned(self.folder, *FLAGS, self._database, spec=SPEC))
        return self.process

    def kill(self) -> None:
        assert self.process is not None
        self.process.kill()
        assert self.process.wait() == -signal.SIGKILL, (self.folder / support.LOG).read_text()
        self._life.close()

    def end(self) -> None:
        self._life.close()


@pytest.mark.tools
@pytest.mark.timeout(120 + 60 * KILLS)
def test_two_collectors_with_one_killed_again_and_again(tmp_path: Path, shared_database: str) -> None:
    dice = random.Random()
    places = [Place(tmp_path / name, shared_database) for name in ("one", "other")]
    with ExitStack() as ended, load(senders=4 if LONG else 2, collectors=len(places)) as sent:
        for place, doors in zip(places, sent.places, strict=True):
            ended.callback(place.end)
            assert speaks(place.begin(), doors)
        for _ in range(KILLS):
            sent.goes_on(bodies=2)
            time.sleep(EVERY_S * dice.random())
            number = dice.randrange(len(places))
            places[number].kill()
            acknowledged, counted = sent.acknowledged, books.counted(shared_database)
            assert acknowledged <= counted <= sent.tried, (acknowledged, counted, sent.tried)
            sent.goes_on(bodies=2)  # the other one takes all that comes
            time.sleep(EVERY_S * dice.random())
            assert speaks(places[number].begin(), sent.places[number])
        sent.goes_on(bodies=4)
        total = sent.finish()
        assert books.counted(shared_database) == total
        first, second = (books.shown(doors.url, total) for doors in sent.places)
        assert first == second
        assert sent.faults == []
