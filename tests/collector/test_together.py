"""Collectors as processes on one PostgreSQL: together they are one, and any of them may go at any moment."""

import asyncio
import random
import signal
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import asyncpg
import pytest

from slo import signals
from tests.collector import exports, messages, support
from tests.collector.support import Running, ask, collector, send, until

pytestmark = pytest.mark.tools

TAKEN_OVER_S = 15.0
SPEC = """
service: chat
objectives:
  - name: ttft
    signal: ttft
    percentile: 95
    threshold: 500ms
    window: 2m
    alerts: {tiers: [{name: fast, budget: 20%, long: 24s, short: 3s, notify: page}]}
"""


@contextmanager
def two(folder: Path, database: str, *flags: str) -> Iterator[tuple[Running, Running]]:
    """Two collectors of one database. The first leads."""
    folders = [folder / name for name in ("one", "other")]
    for each in folders:
        each.mkdir()
    common = ("--tick", "1s", "--grpc", "off", "--database", database, *flags)
    with collector(folders[0], *common, spec=SPEC) as one, collector(folders[1], *common, spec=SPEC) as other:
        yield one, other


def asked(database: str, question: str) -> list[Any]:
    async def story() -> list[Any]:
        connection = await asyncpg.connect(database)
        try:
            return [tuple(row) for row in await connection.fetch(question)]
        finally:
            await connection.close()

    return asyncio.run(story())


def status(running: Running) -> Any:
    return ask(f"{running.url}/api/v1/status").json


def budget(running: Running) -> tuple[int, int]:
    (found,) = (one["budget"] for one in status(running)["objectives"] if one["model"] == "*")
    return found["good"], found["bad"]


@dataclass
class Load(threading.Thread):
    """A second of traffic after the other, each body to one of the collectors at random and some to both at once;
    one without an answer is sent again, to whichever, until it has one. Beside it a counter that only grows."""

    urls: list[str]
    number: int
    good: int = 3
    bad: int = 1
    acknowledged: int = 0
    is_done: bool = False
    faults: list[str] = field(default_factory=list)

    def __hash__(self) -> int:
        return id(self)

    def __post_init__(self) -> None:
        super().__init__(daemon=True)
        self._dice = random.Random(self.number)
        self._began_s = time.time() - 1

    def run(self) -> None:
        while not self.is_done:
            body = exports.second(good=self.good, bad=self.bad, at_s=int(time.time()), instance=f"i{self.number}")
            body.resource_metrics[0].schema_url = f"{self.number} {self.acknowledged}"
            beats = messages.number(
                self.acknowledged + 1, at_s=time.time(), start_s=self._began_s, attributes={"of": f"{self.number}"}
            )
            growing = messages.counter(signals.TOKENS.name, beats, temporality=messages.CUMULATIVE)
            body.resource_metrics[0].scope_metrics[0].metrics.append(growing)
            self._deliver(body)

    def _deliver(self, body: Any) -> None:
        """Until somebody has it. Also when all is to end: what was tried may be committed already."""
        while True:
            both = self._dice.random() < 0.2
            urls = self.urls if both else [self._dice.choice(self.urls)]
            answers: list[int] = []
            threads = [threading.Thread(target=self._send, args=(url, body, answers)) for url in urls]
            for thread in threads:
                thread.start()
            for thread in threads:
                thread.join()
            if 200 in answers:
                self.acknowledged += 1
                return
            time.sleep(0.05)

    def _send(self, url: str, body: Any, answers: list[int]) -> None:
        try:
            answers.append(send(url, body).status)
        except OSError as error:
            self.faults.append(str(error))


@contextmanager
def load(*running: Running, senders: int = 3, good: int = 3, bad: int = 1) -> Iterator[list[Load]]:
    threads = [Load([one.url for one in running], number, good, bad) for number in range(senders)]
    for thread in threads:
        thread.start()
    try:
        yield threads
    finally:
        for thread in threads:
            thread.is_done = True
        for thread in threads:
            thread.join(60)
            assert not thread.is_alive()


COUNTED = """
SELECT (SELECT sum(good) FROM slo_count), (SELECT sum(bad) FROM slo_count), (SELECT sum(count) FROM rollup),
       (SELECT sum(value) FROM counter WHERE name = 'tokens'), (SELECT count(*) FROM batch)
"""


def test_together_they_count_everything_once_and_show_the_same(tmp_path: Path, shared_database: str) -> None:
    with two(tmp_path, shared_database) as (one, other):
        with load(one, other) as threads:
            until(lambda: min(thread.acknowledged for thread in threads) > 40)
        bodies = sum(thread.acknowledged for thread in threads)
        assert [thread.faults for thread in threads] == [[], [], []]
        assert asked(shared_database, COUNTED) == [(3 * bodies, bodies, 4 * bodies, bodies, bodies)]
        for each in (one, other):
            until(lambda each=each: budget(each) == (3 * bodies, bodies))
        figures = until(lambda: _alike(one, other))
        (wide,) = (found["percentiles"]["1h"] for found in figures[0]["objectives"] if found["model"] == "m")
        assert wide["count"] == 4 * bodies
        assert wide["p50"] == pytest.approx(0.1, rel=0.011)
        assert wide["p95"] == pytest.approx(2.0, rel=0.011)
        assert (figures[0]["evaluator"], figures[1]["evaluator"]) == (True, False)


def _alike(one: Running, other: Running) -> list[Any] | None:
    """What both say of one tick, once it is the same. (The cause of an alert is found by one of them, and read by the
    other with its next tick.)"""
    found = [status(one), status(other)]
    is_alike = all(found[0][name] == found[1][name] for name in ("at_s", "objectives"))
    return found if is_alike else None


def pages(kept: support.Receiver) -> list[str]:
    bodies: list[Any] = [body for _, body in kept.told]
    return [body["status"] for body in bodies if body["receiver"] == "firsttoken-page"]


@pytest.mark.timeout(400)
@pytest.mark.parametrize("how", [signal.SIGKILL, signal.SIGSTOP])
def test_whoever_evaluates_may_go_and_a_page_rings_once(
    tmp_path: Path, shared_database: str, how: signal.Signals
) -> None:
    """In the middle of an incident, at a random moment: killed, or stopped for longer than its lease and let go on."""
    with support.receiver() as kept, two(tmp_path, shared_database, "--webhook", f"{kept.url}/hook") as (one, other):
        with load(one, other, senders=2, good=0, bad=10) as threads:
            until(lambda: pages(kept) == ["firing"])
            time.sleep(random.Random().random())
            for thread in threads:
                thread.urls = [other.url]
            one.process.send_signal(how)
            until(lambda: status(other)["evaluator"], patience_s=TAKEN_OVER_S)
            until(lambda: _latest(shared_database) > time.time() - 3)
            if how == signal.SIGSTOP:
                one.process.send_signal(signal.SIGCONT)
                until(lambda: not status(one)["evaluator"])
                for thread in threads:
                    thread.urls = [one.url, other.url]
            terms = asked(shared_database, "SELECT term FROM leader")
            until(lambda: {found["state"] for found in status(other)["alerts"]} >= {"firing"})
            for thread in threads:
                thread.good, thread.bad = 1000, 0
            until(lambda: pages(kept) == ["firing", "resolved"], patience_s=240)
        assert asked(shared_database, "SELECT term FROM leader") == terms == [(2,)]
        fired = "SELECT count(*) FROM alert_event WHERE state = 'firing' AND tier = 'fast' AND model = '*'"
        assert asked(shared_database, fired) == [(1,)]
        assert other.stop() == 0
    assert pages(kept) == ["firing", "resolved"]


def _latest(database: str) -> int:
    ((latest,),) = asked(database, "SELECT max(at_s) FROM burn_rate")
    return int(latest)


def test_one_that_ends_in_order_hands_over_at_once(tmp_path: Path, shared_database: str) -> None:
    with two(tmp_path, shared_database) as (one, other):
        assert one.stop() == 0
        assert asked(shared_database, "SELECT until_s = 0 OR term = 2 FROM leader") == [(True,)]
        until(lambda: status(other)["evaluator"])
