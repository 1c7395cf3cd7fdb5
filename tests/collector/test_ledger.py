"""Memory mirrors the database: what is read back at a start judges as what was kept live."""

import asyncio
from pathlib import Path

from collector.evaluate import evaluate
from slo import signals
from tests.collector import exports, messages
from tests.collector.stores import NOW_S, Clock, batch, store


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
    from tests.collector.stores import a_plan
    from tests.collector.support import SPEC

    async def story() -> None:
        async with store(database) as one:
            await one.count(b"a", batch(exports.second(good=5, bad=1, at_s=NOW_S - 5)))
            await one.recall(a_plan(SPEC.replace("percentile: 95", "percentile: 90")))
            one.ledger.windows.advance(NOW_S)
            budget = evaluate(one.ledger.windows, alerts={}, now_s=NOW_S).budgets[0]
            assert (budget.good, budget.bad) == (5, 1)
            await one.count(b"b", batch(exports.second(good=2, bad=0, at_s=NOW_S - 5)))
            budget = evaluate(one.ledger.windows, alerts={}, now_s=NOW_S).budgets[0]
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
