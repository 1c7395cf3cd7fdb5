"""What the tables say of a stretch of time, on real databases: added up, of whom it was asked, and of no other time."""

import asyncio
from collections.abc import Callable
from typing import TypeVar

import pytest
from sqlalchemy import Connection

from collector.judging.evidence import Latency, Level, Total
from collector.judging.quiet import Step, Stretch
from collector.storage import commit, evidence_past
from collector.storage.evidence_past import Whose
from collector.values.deltas import CounterRow, Deltas, GaugeRow
from slo.signals import ENGINE_RUNNING, HEARTBEAT, IN_FLIGHT, REQUESTS, TPOT
from tests.collector import scene
from tests.collector.stores import NOW_S, store

T = TypeVar("T")
SPAN = Stretch(NOW_S - 60, NOW_S)
ALL, ONE = Whose("", "chat", "*"), Whose("", "chat", "m")


def asked(database: str, rows: Deltas, work: Callable[[Connection], T], *, coarse: Deltas | None = None) -> T:
    async def story() -> T:
        async with store(database) as one:
            await one.write(lambda c: commit.write_deltas(c, rows, step_s=10, at_s=NOW_S))
            if coarse is not None:
                await one.write(lambda c: commit.write_deltas(c, coarse, step_s=60, at_s=NOW_S))
            return await one.read(work)

    return asyncio.run(story())


def counted(start_s: int, value: float, *, model: str = "m", outcome: str = "ok", class_: str = "") -> CounterRow:
    of = (("class", class_), ("outcome", outcome))
    return CounterRow("", "chat", model, "i1", "proxy", REQUESTS.sql, of, start_s, value)


def gauged(start_s: int, value: float, *, name: str = IN_FLIGHT.sql, model: str = "m") -> GaugeRow:
    return GaugeRow("", "chat", model, "i1", name, "", start_s, value, value + 1, 2 * value, 2, value, start_s * 10**9)


def test_counters_are_added_up_over_the_stretch_and_nothing_else(database: str) -> None:
    rows = Deltas(
        counters=(
            counted(NOW_S - 70, 100),
            counted(NOW_S - 60, 1),
            counted(NOW_S - 10, 2),
            counted(NOW_S - 10, 7, class_="synthetic"),
            counted(NOW_S, 100),
            CounterRow("", "chat", "m", "i1", "proxy", HEARTBEAT.sql, (), NOW_S - 20, 10),
            CounterRow("", "other", "m", "i1", "proxy", REQUESTS.sql, (), NOW_S - 20, 10),
        )
    )
    seen = asked(database, rows, lambda c: evidence_past.seen(c, ALL, SPAN))
    assert seen.totals == (Total("i1", REQUESTS.sql, (("class", ""), ("outcome", "ok")), 3),)
    assert seen.length_s == 60


@pytest.mark.parametrize(("whose", "values"), [(ALL, 6), (ONE, 3)])
def test_a_model_is_asked_for_alone_with_what_names_none(database: str, whose: Whose, values: float) -> None:
    rows = Deltas(counters=tuple(counted(NOW_S - 10, 1 + (m == "n") * 2, model=m) for m in ("m", "n", "unknown", "")))
    seen = asked(database, rows, lambda c: evidence_past.seen(c, whose, SPAN))
    assert sum(one.value for one in seen.totals) == values


def test_gauges_have_their_mean_their_highest_and_both_ends(database: str) -> None:
    rows = Deltas(
        gauges=(
            gauged(NOW_S - 60, 2),
            gauged(NOW_S - 30, 3),
            gauged(NOW_S - 10, 10),
            gauged(NOW_S - 30, 4, name=ENGINE_RUNNING.sql, model=""),
        )
    )
    seen = asked(database, rows, lambda c: evidence_past.seen(c, ALL, SPAN))
    assert sorted(seen.levels, key=lambda one: one.name) == [
        Level("i1", "", ENGINE_RUNNING.sql, "", 4, 5, 2, NOW_S - 30.0),
        Level("i1", "m", IN_FLIGHT.sql, "", 5, 11, 6, NOW_S - 10.0, first=2, last=10),
    ]


def test_latencies_are_counted_and_added(database: str) -> None:
    rows = Deltas(
        latencies=(
            scene.values(NOW_S - 60, (0.25, 0.75), signal=TPOT.sql),
            scene.values(NOW_S - 10, (1.0,), signal=TPOT.sql),
            scene.values(NOW_S - 10, (3.0,), signal=TPOT.sql, censored=True),
        )
    )
    seen = asked(database, rows, lambda c: evidence_past.seen(c, ALL, SPAN))
    assert seen.latencies == (Latency("i1", TPOT.sql, "proxy", 3, 2.0),)


def test_what_was_folded_into_longer_steps_is_found_too(database: str) -> None:
    fine = Deltas(counters=(counted(NOW_S - 10, 1),), slo=(scene.slo(NOW_S - 10, 3, 1),))
    coarse = Deltas(counters=(counted(NOW_S - 60, 5),), slo=(scene.slo(NOW_S - 60, 9, 0),))
    seen, events = asked(
        database,
        fine,
        lambda c: (evidence_past.seen(c, ALL, SPAN), evidence_past.events(c, ALL, "ttft", SPAN)),
        coarse=coarse,
    )
    assert sum(one.value for one in seen.totals) == 6
    assert sorted(events, key=lambda step: step.start_s) == [Step(NOW_S - 60, 9, 0), Step(NOW_S - 10, 3, 1)]


def test_events_are_of_one_objective_and_of_whom_was_asked(database: str) -> None:
    rows = Deltas(
        slo=(
            scene.slo(NOW_S - 10, 3, 1),
            scene.slo(NOW_S - 10, 5, 2, model="n"),
            scene.slo(NOW_S - 10, 50, 20, name="tpot"),
            scene.slo(NOW_S, 50, 20),
        )
    )
    both = asked(database, rows, lambda c: [evidence_past.events(c, whose, "ttft", SPAN) for whose in (ALL, ONE)])
    assert both == [[Step(NOW_S - 10, 8, 3)], [Step(NOW_S - 10, 3, 1)]]


def test_too_many_to_tell_whether_they_rose_is_not_told(database: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(evidence_past, "MAX_ROWS", 2)
    rows = Deltas(gauges=(gauged(NOW_S - 60, 2), gauged(NOW_S - 10, 10)))
    (found,) = asked(database, rows, lambda c: evidence_past.seen(c, ALL, SPAN)).levels
    assert (found.first, found.last) == (0, 0)
