"""What is kept of drifts, and what a detector may learn from: on real databases."""

import asyncio
import itertools
from collections.abc import Callable
from dataclasses import replace
from typing import TypeVar

from sqlalchemy import Connection, select

from collector import schema
from collector.judging.percentiles import PercentileRow
from collector.storage import drift_past, upsert
from collector.storage.drift_past import COARSE_PAGE_S, FINE_PAGE_S, PAST_S
from collector.values.verdicts import DriftRow
from tests.collector.drift_scene import DRIFT, latency, row
from tests.collector.stores import NOW_S, added, store

T = TypeVar("T")
KEY = DRIFT.latency


def kept(database: str, *works: Callable[[Connection], T]) -> list[T]:
    """What each work answers, one transaction after the other."""

    async def story() -> list[T]:
        async with store(database) as one:
            return [await one.write(work) for work in works]

    return asyncio.run(story())


def test_rows_are_kept_as_they_are_now(database: str) -> None:
    first, later = replace(DRIFT, since_s=NOW_S), replace(DRIFT, since_s=NOW_S, effect=0.3, count=9000)
    other = replace(first, model="n", until_s=NOW_S + 900)
    *_, lasting, everything = kept(
        database,
        lambda c: drift_past.write(c, [first, other]),
        lambda c: drift_past.write(c, [later]),
        lambda c: drift_past.write(c, []),
        drift_past.lasting,
        lambda c: [DriftRow(*found) for found in c.execute(select(schema.drift).order_by(schema.drift.c.model))],
    )
    assert lasting == [later]
    assert everything == [later, other]


def test_drifts_of_a_time_that_has_not_come_are_forgotten(database: str) -> None:
    before, after = replace(DRIFT, since_s=NOW_S), replace(DRIFT, since_s=NOW_S + 60)
    *_, lasting = kept(
        database,
        lambda c: drift_past.write(c, [before, after]),
        lambda c: drift_past.forget(c, after_s=NOW_S),
        drift_past.lasting,
    )
    assert lasting == [before]


def test_nobody_learns_from_a_drift_nor_from_before_a_new_normal(database: str) -> None:
    over = replace(DRIFT, since_s=NOW_S - 9000, until_s=NOW_S - 6000)
    lasts = replace(DRIFT, since_s=NOW_S - 3000)
    accepted = replace(DRIFT, model="n", since_s=NOW_S - 3 * 86400, until_s=NOW_S - 2 * 86400)
    ancient = replace(DRIFT, model="n", since_s=NOW_S - PAST_S - 9000, until_s=NOW_S - PAST_S - 1)
    _, found = kept(
        database,
        lambda c: drift_past.write(c, [over, lasts, accepted, ancient]),
        lambda c: drift_past.unquiet(c, now_s=NOW_S),
    )
    assert found is not None
    assert sorted(found.of(KEY)) == [(NOW_S - 9000, NOW_S - 6000), (NOW_S - 3000, NOW_S)]
    assert found.of(("", "chat", "n", "ttft", "proxy")) == [(0, NOW_S - 2 * 86400)]
    assert found.of(("", "chat", "m", "ttft", "engine")) == []


def burns(connection: Connection) -> None:
    """One that fires, one that is over, one that only loomed, and one of another kind."""

    def alert(name: str, model: str, state: str, fired_s: int | None) -> tuple[object, ...]:
        return "", "chat", name, model, "o", "fast", state, NOW_S - 60, "critical", "page", fired_s, "{}", "{}"

    def event(model: str, state: str, at_s: int, fired_s: int | None) -> tuple[object, ...]:
        return at_s, "", "chat", "LLMTPOTBudgetBurn", model, "o", "fast", state, fired_s, "{}", "{}"

    upsert.ALERT.write(
        connection,
        [
            alert("LLMLatencyDrift", "m", "firing", NOW_S - 700),
            alert("LLMTTFTBudgetBurn", "*", "firing", NOW_S - 600),
            alert("LLMTTFTBudgetBurn", "m", "pending", None),
        ],
    )
    upsert.ALERT_EVENT.write(
        connection,
        [
            event("m", "firing", NOW_S - 5000, NOW_S - 5000),
            event("m", "resolved", NOW_S - 4000, NOW_S - 5000),
            event("m", "resolved", NOW_S - 3000, None),
        ],
    )


def test_nobody_learns_from_minutes_that_burned(database: str) -> None:
    _, found = kept(database, burns, lambda c: drift_past.unquiet(c, now_s=NOW_S))
    assert found is not None
    assert found.of(KEY) == [(NOW_S - 600, NOW_S)]
    assert found.of(("", "chat", "n", "ttft", "proxy")) == [(NOW_S - 600, NOW_S)]
    assert found.of(("", "chat", "m", "tpot", "engine")) == [(NOW_S - 5000, NOW_S - 4000)]
    assert found.of(("", "search", "m", "ttft", "proxy")) == []


def test_the_pages_cover_the_past_once_and_end_now() -> None:
    for first_s in (NOW_S - PAST_S, NOW_S - 3 * 86400, NOW_S - 50, NOW_S):
        found = list(drift_past.pages(first_s, NOW_S))
        assert (found[0][0], found[-1][1]) == (first_s, NOW_S)
        assert all(last + 1 == first for (_, last), (first, _) in itertools.pairwise(found))
        assert all(last - first < COARSE_PAGE_S for first, last in found)
        recent = [last - first for first, last in found if first > NOW_S - 2 * 86400]
        assert all(length < FINE_PAGE_S for length in recent)


def rows(connection: Connection) -> None:
    found: list[PercentileRow] = []
    for number in range(3):
        at_s = NOW_S - 60 * number
        found += latency(at_s, 0.4 + number)
        found += latency(at_s, 0.5, model="n")
        found += latency(at_s, 0.6, source="engine")
    found.append(row(NOW_S - 240, None))
    found.append(row(NOW_S - 300, 0.9, count=7))
    added(
        connection, schema.percentile, [tuple(getattr(one, c.name) for c in schema.percentile.columns) for one in found]
    )


def test_the_minutes_of_the_latencies_that_are_asked_for(database: str) -> None:
    keys = [KEY, ("", "chat", "n", "ttft", "proxy")]
    _, found, begins_s = kept(
        database,
        rows,
        lambda c: drift_past.minutes(c, keys, (NOW_S - 300, NOW_S - 60)),
        lambda c: drift_past.begin_s(c, now_s=NOW_S),
    )
    assert found is not None
    assert [(at_s - NOW_S, key[2], value, count) for at_s, key, value, count in sorted(found)] == [
        (-300, "m", 0.9, 1),
        (-120, "m", 2.4, 120),
        (-120, "n", 0.5, 120),
        (-60, "m", 1.4, 120),
        (-60, "n", 0.5, 120),
    ]
    assert [at_s for at_s, *_ in found] == sorted(at_s for at_s, *_ in found)
    assert begins_s == NOW_S - 300
