"""A real llama.cpp's own pages beside what the sidecar makes of them: before it, and only scraping."""

import contextlib
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from slo.signals import ENGINE_RUNNING, ENGINE_WAITING, KV_AT_ARRIVAL, KV_MAX, KV_OCCUPANCY, SIGNALS
from tests.engines.agreement import PATIENCE_S, Trace, begin, post, spans_of
from tests.engines.beside import POLL_S, Beside, beside
from tests.engines.llamacpp_server import CONTEXT, KINDS, Engine, Timings, ask, running
from tests.sidecar.process import scraping
from tests.sidecar.receiver import Receiver, eventually

SLOTS = 4
CELLS = SLOTS * CONTEXT
LONG = CONTEXT - 200
"""Tokens of an answer that takes seconds."""


@pytest.fixture(scope="module")
def engine(model: Path) -> Iterator[Engine]:
    with running(model, slots=SLOTS) as engine:
        yield engine


@contextlib.contextmanager
def answering(port: int, count: int, *fields: str) -> Iterator[None]:
    """So many long answers under way; their clients leave in the end."""
    with contextlib.ExitStack() as clients:
        for _ in range(count):
            clients.enter_context(begin(port, *ask("native", tokens=LONG, words=30), *fields))
        yield


def next_but_one(measured: Callable[[], float | None]) -> float:
    """A value that was measured after this call: the second change, since the first may have been under way."""
    last, changes, end_s = measured(), 0, time.monotonic() + PATIENCE_S
    while changes < 2:
        assert time.monotonic() < end_s, f"the value stays {last}"
        if (now := measured()) is not None and now != last:
            last, changes = now, changes + 1
    assert last is not None
    return last


def test_state_is_what_the_server_says_of_itself(engine: Engine, tmp_path: Path) -> None:
    with beside(engine, tmp_path) as watched:

        def state() -> tuple[float | None, ...]:
            return watched.value(ENGINE_RUNNING), watched.value(ENGINE_WAITING), watched.value(KV_OCCUPANCY)

        assert state() == (0, 0, 0)
        with answering(watched.port, SLOTS + 3):
            eventually(lambda: state()[:2] == (SLOTS, 3))
            told = engine.metrics()
            assert (told["requests_processing"], told["requests_deferred"]) == (SLOTS, 3)
            eventually(lambda: engine.cells() > CELLS / 10)  # from here on two polls are little beside it
            low = engine.cells()
            between = next_but_one(lambda: state()[2]) * CELLS
            high = engine.cells()
            assert len(engine.busy()) == SLOTS, "an answer ended too early to compare"
            assert low <= between <= high + SLOTS  # the token that was sampled last is not in the cache yet
            assert high < 1.5 * low, "the cache filled too fast to compare"
        eventually(lambda: state() == (0, 0, 0))


def test_spans_have_the_occupancy_at_arrival_and_the_highest_of_their_time(engine: Engine, tmp_path: Path) -> None:
    long, short = Trace(), Trace()
    with beside(engine, tmp_path) as watched:
        with answering(watched.port, SLOTS - 1, long.header):
            eventually(lambda: engine.cells() > CELLS / 20)
            low = engine.cells()
            time.sleep(1.5)  # the sidecar looks once a second
            post(watched.port, *ask("native", tokens=2), short.header)
            high = engine.cells()
        eventually(lambda: {long.id, short.id} <= spans_of(watched.receiver).keys())
        at_arrival = spans_of(watched.receiver)[short.id][1][KV_AT_ARRIVAL]
        highest = spans_of(watched.receiver)[long.id][1][KV_MAX]
    assert isinstance(at_arrival, float)
    assert isinstance(highest, float)
    assert low <= at_arrival * CELLS <= high
    assert at_arrival <= highest <= 1.1 * high / CELLS


def test_scraping_alone_counts_the_tokens_of_the_requests_that_were_sent(engine: Engine, tmp_path: Path) -> None:
    with scraping(f"{engine.url}/metrics", "--scrape-interval", POLL_S, cwd=tmp_path) as process:
        eventually(lambda: process.get("/readyz") == (200, "ready\n"))
        page = Beside(process, Receiver())
        before = page.tokens()
        asks = [ask(kind, tokens=5 + number, stream=number % 2 > 0) for kind in KINDS for number in range(6)]
        answers = [post(engine.port, *each) for each in asks]
        timings = [Timings.of(each.events[-1][1] if each.events else each.document) for each in answers]
        sent = tuple(sum(each) for each in zip(*((t.input_tokens, t.output_tokens) for t in timings), strict=True))
        eventually(lambda: page.tokens() == (before[0] + sent[0], before[1] + sent[1]))
        said = "".join(process.errors)
        assert "engine llamacpp" in said
        for signal in ("ttft", "tpot", "e2e", "availability"):
            assert f"{SIGNALS[signal].title} cannot be backed: " in said
        assert not any(f"{SIGNALS[signal].title} cannot be" in said for signal in ("kv_occupancy", "queue"))
        assert (page.value(KV_OCCUPANCY), page.value(ENGINE_WAITING)) == (0, 0)
