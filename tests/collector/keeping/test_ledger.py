"""Memory mirrors the database: what is read back at a start judges as what was kept live."""

import asyncio
from pathlib import Path

import pytest
from sqlalchemy import delete, select

from collector import schema
from collector.judging.evaluate import evaluate
from collector.keeping.ledger import empty
from collector.keeping.store import Store
from collector.storage.journal import Entry, Mark
from collector.values.deltas import Deltas
from slo import signals
from tests.collector import exports, messages, scene
from tests.collector.stores import NOW_S, Clock, a_plan, batch, store, totals
from tests.collector.support import SPEC


def test_a_ledger_read_back_evaluates_like_the_one_kept_live(database: str) -> None:
    async def story() -> None:
        clock = Clock()
        async with store(database, clock=clock) as one:
            for number in range(50):
                message = exports.second(good=20, bad=number % 3, at_s=NOW_S - 11 * number)
                await one.count(b"%d" % number, batch(message))
            windows = one.ledger.windows
            windows.advance(NOW_S)
            live = evaluate(windows, alerts={}, now_s=NOW_S)
            seen = one.ledger.seen
        async with store(database, clock=clock) as again:
            again.ledger.windows.advance(NOW_S)
            read = evaluate(again.ledger.windows, alerts={}, now_s=NOW_S)
            assert read == live
            assert again.ledger.seen == seen
            assert any(row.bad for row in read.burns)
            assert any(row.p99 for row in read.percentiles)

    asyncio.run(story())


def test_recall_under_another_plan_keeps_every_count(database: str) -> None:
    async def story() -> None:
        async with store(database) as one:
            await one.count(b"a", batch(exports.second(good=5, bad=1, at_s=NOW_S - 5)))
            await one.recall(a_plan(SPEC.replace("percentile: 95", "percentile: 90")))
            one.ledger.windows.advance(NOW_S)
            budget = evaluate(one.ledger.windows, alerts={}, now_s=NOW_S).budgets.row(0)
            assert (budget.good, budget.bad) == (5, 1)
            await one.count(b"b", batch(exports.second(good=2, bad=0, at_s=NOW_S - 5)))
            budget = evaluate(one.ledger.windows, alerts={}, now_s=NOW_S).budgets.row(0)
            assert (budget.good, budget.bad) == (7, 1)

    asyncio.run(story())


def test_folding_changes_nothing(database: str) -> None:
    async def story() -> None:
        async with store(database) as one:
            body = batch(exports.second(good=5, bad=1, at_s=NOW_S - 5))
            first, parts = one.ledger.folded([body, body], now_s=NOW_S, max_series=100)
            second, _ = one.ledger.folded([body, body], now_s=NOW_S, max_series=100)
            assert len(parts) == 2
            assert first.slo == second.slo
            assert sum(row.good for row in first.slo) == 10
            assert not one.ledger.seen

    asyncio.run(story())


def test_cumulative_streams_that_stopped_are_forgotten(tmp_path: Path) -> None:
    async def story() -> None:
        async with store(f"{tmp_path}/a.db") as one:
            for number, at_s in enumerate((NOW_S - 100, NOW_S - 5)):
                point = messages.number(1, at_s=at_s, start_s=at_s - 9, attributes={"worker": number})
                beats = messages.counter(signals.HEARTBEAT.name, point, temporality=messages.CUMULATIVE)
                await one.count(b"%d" % number, batch(messages.metrics(beats)))
            assert len(one.ledger.streams) == 2
            one.ledger.forget_streams(before_s=NOW_S - 50)
            (left,) = one.ledger.streams.values()
            assert left.end_ns == (NOW_S - 5) * messages.NS

    asyncio.run(story())


def test_the_names_of_series_are_written_once_and_now_and_then_again(tmp_path: Path) -> None:
    async def story() -> None:
        async with store(f"{tmp_path}/a.db") as one:

            async def named(digest: bytes) -> int:
                """How many are stored after a body more, whoever lost those of before."""
                await one.write(lambda connection: connection.execute(delete(schema.series)))
                await one.count(digest, batch(exports.second(good=5, bad=1, at_s=NOW_S - 5)))
                return await one.read(lambda connection: len(connection.execute(select(schema.series)).all()))

            first = await named(b"a")
            assert first > 0
            assert await named(b"b") == 0
            one.ledger.forget_streams(before_s=0)
            assert await named(b"c") == first

    asyncio.run(story())


def test_the_latest_step_of_a_series_is_the_latest_that_was_committed(tmp_path: Path) -> None:
    """Late data does not turn it back: rows would be taken for new that are there."""

    async def story() -> None:
        async with store(f"{tmp_path}/a.db") as one:
            for number, age_s in enumerate((25, 5, 45, 5)):
                await one.count(b"%d" % number, batch(exports.second(good=5, bad=1, at_s=NOW_S - age_s)))
            assert set(one.ledger.latest_s.values()) == {(NOW_S - 5) // 10 * 10}
            assert (await one.read(totals))["values"] == 24

    asyncio.run(story())


@pytest.mark.parametrize("what", ["upkeep", "a restart"])
def test_late_data_after_it_writes_over_nothing(what: str, database: str) -> None:
    """The ledger has forgotten what it knew of the series; and then the late data comes first."""

    async def story() -> None:
        async with store(database) as one:
            await one.count(b"0", batch(exports.second(good=5, bad=1, at_s=NOW_S - 5)))
            if what == "upkeep":
                one.ledger.forget_streams(before_s=0)
                await late(one)
        async with store(database) as one:
            if what == "a restart":
                await late(one)
            assert (await one.read(totals))["values"] == 18

    async def late(one: Store) -> None:
        for number, age_s in enumerate((45, 5), start=1):
            await one.count(b"%d" % number, batch(exports.second(good=5, bad=1, at_s=NOW_S - age_s)))

    asyncio.run(story())


TWO = SPEC + "  - {name: e2e, signal: e2e, percentile: 99, threshold: 5s, window: 10m}\n"
ADOPTED = {
    "nothing": (TWO, TWO, True),
    "a target": (TWO, TWO.replace("percentile: 95", "percentile: 90"), True),
    "an owner": (TWO, TWO.replace("signal: e2e", "signal: e2e, owner: us"), True),
    "an objective less": (TWO, SPEC, True),
    "an objective more": (SPEC, TWO, False),
    "a threshold": (TWO, TWO.replace("500ms", "400ms"), False),
    "a window": (TWO, TWO.replace("window: 10m", "window: 20m"), False),
    "a service": (TWO, TWO.replace("service: chat", "service: talk"), False),
}


@pytest.mark.parametrize("what", ADOPTED)
def test_a_plan_is_adopted_where_what_is_held_answers_for_it(what: str) -> None:
    before, after, adopted = ADOPTED[what]
    one = empty(a_plan(before), now_s=NOW_S)
    assert one.adopt(a_plan(after)) is adopted
    assert one.plan == one.windows.plan == a_plan(after if adopted else before)


def test_a_plan_of_another_tick_is_not_adopted() -> None:
    assert not empty(a_plan(), now_s=NOW_S).adopt(a_plan(tick_s=5))


def test_what_was_dropped_is_read_anew_when_it_comes_back() -> None:
    one = empty(a_plan(TWO), now_s=NOW_S)
    assert one.adopt(a_plan(SPEC))
    assert not one.adopt(a_plan(TWO))


def test_a_reload_reads_the_past_only_where_it_must(database: str, monkeypatch: pytest.MonkeyPatch) -> None:
    async def story() -> None:
        async with store(database, spec=TWO) as one:
            await one.count(b"a", batch(exports.second(good=5, bad=1, at_s=NOW_S - 5)))
            held = one.ledger
            await one.follow(a_plan(TWO.replace("percentile: 95", "percentile: 90")))
            assert one.ledger is held
            budget = evaluate(held.windows, alerts={}, now_s=NOW_S).budgets.row(0)
            assert (budget.good, budget.bad) == (5, 1)
            await one.follow(a_plan(TWO.replace("500ms", "100ms")))
            assert one.ledger is not held
            assert one.ledger.seen == held.seen

    asyncio.run(story())


def test_commits_of_the_journal_are_taken_in_their_place_alone() -> None:
    one = empty(a_plan(), now_s=NOW_S)
    entries = [Entry(Mark(seq, seq), Deltas(slo=(scene.slo(NOW_S - 60, 1, 0),))) for seq in (1, 2, 3)]
    for entry in (entries[1], entries[0], entries[0], entries[2], entries[1], entries[2]):
        one.take(entry)
    assert one.mark == Mark(3, 3)
    assert one.windows.events.held(one.windows.events.keys("", "chat", "ttft"), 3600).good == 3
