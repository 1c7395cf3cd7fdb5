"""When a cause is sought, what it is compared with, and what stands of it: over ticks, restarts, other collectors."""

import asyncio
from collections.abc import Callable, Coroutine
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from sqlalchemy import Connection, select

from collector import schema
from collector.errors import UnavailableError
from collector.judging.cause import Cause
from collector.keeping.reader import Reader
from collector.keeping.store import Store
from collector.storage.leader import Alone
from collector.ticking import attributing
from collector.ticking.attributing import MAX_AT_ONCE, REFRESH_S, Attributing, questions
from collector.ticking.ticks import Ticks
from collector.values.alerting import CAUSE, Alert
from slo import signals
from slo.signals import REQUEST_MODEL
from tests.collector import exports, messages
from tests.collector.stores import Clock, batch
from tests.collector.ticking.test_ticks import Ears, ticking


class Following(Alone):
    """One of several, of which another leads."""

    term = None


def second(at_s: float, *, bad: int) -> object:
    """A second of ten requests that the engine answers, of which so many fail."""
    outcomes = [
        messages.counter(
            signals.REQUESTS.name,
            *(
                messages.number(
                    count, at_s=at_s, start_s=at_s - 1, attributes={REQUEST_MODEL: "m", signals.OUTCOME: outcome}
                )
                for outcome, count in (("ok", 10 - bad), ("error", bad))
            ),
        )
    ]
    return exports.export(
        exports.events(good=10 - bad, bad=bad, at_s=at_s),
        outcomes,
        exports.heartbeat(at_s=at_s),
        exports.gauge(signals.IN_FLIGHT, 2, at_s=at_s),
        exports.gauge(signals.ENGINE_RUNNING, 2, at_s=at_s),
    )


async def seconds(one: Store, loop: Ticks, clock: Clock, *, count: int, bad: int) -> None:
    """Seconds of traffic, with a tick after each."""
    for _ in range(count):
        clock.now_s += 1
        await one.count(b"%d" % clock.now_s, batch(second(clock.now_s - 0.5, bad=bad)))  # type: ignore[arg-type]
        await loop.tick()
        await loop.attributing.settled()


def said(loop: Ticks) -> set[str]:
    """What the burn alerts of all models say of their cause."""
    mine = (alert for alert in loop.alerts if alert.key.tier and alert.key.model == "*")
    return {dict(alert.annotations).get(CAUSE, "").split(",")[0] for alert in mine}


@pytest.fixture(name="file")
def _file(tmp_path: Path) -> str:
    return f"sqlite:///{tmp_path / 'firsttoken.db'}"


def played(database: str, work: Callable[[Store, Ticks, Ears, Clock], Coroutine[Any, Any, None]]) -> None:
    async def story() -> None:
        clock = Clock()
        async with ticking(database, clock) as (one, loop, ears):
            await seconds(one, loop, clock, count=20, bad=0)
            await work(one, loop, ears, clock)

    asyncio.run(story())


def stored(connection: Connection) -> list[Any]:
    table = schema.alert_cause
    return list(connection.execute(select(table).where(table.c.model == "*").order_by(table.c.since_s)))


def test_who_is_told_of_an_alert_is_told_its_cause_at_once(file: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(attributing, "WAIT_S", 60.0)
    monkeypatch.setattr(attributing, "WAIT_OF_TICK", 60.0)

    async def work(one: Store, loop: Ticks, ears: Ears, clock: Clock) -> None:
        while not any(notice.label("burn_tier") for notice in ears.heard[-1]):
            await seconds(one, loop, clock, count=1, bad=9)
        told = [dict(notice.annotations) for notice in ears.heard[-1] if notice.label("burn_tier")]
        assert {one[CAUSE].partition(":")[0] for one in told} == {"requests fail, 100 % sure"}
        await loop.settled()
        (row,) = [row for row in await one.read(stored) if row.tier == "fast"]
        assert (row.kind, row.confidence) == ("errors", 1.0)
        assert row.at_s >= row.since_s > row.before_s + row.length_s - 3

    played(file, work)


def test_a_cause_outlives_a_restart_and_what_comes_after_the_trouble(database: str) -> None:
    async def story() -> None:
        clock = Clock()
        async with ticking(database, clock) as (one, loop, _):
            await seconds(one, loop, clock, count=20, bad=0)
            await seconds(one, loop, clock, count=20, bad=9)
            assert said(loop) == {"requests fail"}
        async with ticking(database, clock) as (one, loop, _):
            assert said(loop) == {"requests fail"}
            before = await one.read(stored)
            await seconds(one, loop, clock, count=1, bad=9)
            assert said(loop) == {"requests fail"}
            # As it ends the long window burns on, and nothing of now is the cause of that.
            for _ in range(60):
                await seconds(one, loop, clock, count=1, bad=0)
                assert said(loop) <= {"requests fail"}
            assert not said(loop)
            await loop.settled()
            assert [row.since_s for row in await one.read(stored)] == [row.since_s for row in before]
            ended = await one.read(lambda c: c.scalars(select(schema.alert_event.c.annotations)).all())
            assert all(CAUSE in text for text in ended[-1:])

    asyncio.run(story())


def test_who_does_not_lead_shows_what_the_leader_found(file: str) -> None:
    async def story() -> None:
        clock = Clock()
        async with ticking(file, clock) as (one, loop, _):
            await seconds(one, loop, clock, count=20, bad=0)
            await seconds(one, loop, clock, count=20, bad=9)
            await loop.settled()
            other = Ticks(one, Ears(), "http://c", clock, leader=Following())
            await other.tick()
            assert said(other) == {"requests fail"}
            assert other.attributing.unsaved == ()
            await other.stop()

    asyncio.run(story())


def test_a_database_that_is_away_delays_nobody_for_long(file: str, monkeypatch: pytest.MonkeyPatch) -> None:
    async def away(*_: object) -> object:
        raise UnavailableError("away")

    async def work(one: Store, loop: Ticks, ears: Ears, clock: Clock) -> None:
        monkeypatch.setattr(Reader, "read", away)
        await seconds(one, loop, clock, count=20, bad=9)
        assert {alert.state for alert in loop.alerts if alert.key.tier} == {"firing"}
        assert said(loop) == {""}
        assert loop.tallies.failures == 0
        monkeypatch.undo()
        await seconds(one, loop, clock, count=2, bad=9)
        assert said(loop) == {"requests fail"}

    played(file, work)


def test_it_is_sought_anew_each_minute_and_no_less_sure_one_takes_its_place(
    file: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def work(one: Store, loop: Ticks, ears: Ears, clock: Clock) -> None:
        await seconds(one, loop, clock, count=20, bad=9)
        (key,) = [alert.key for alert in loop.alerts if (alert.key.tier, alert.key.model) == ("fast", "*")]
        first_s = loop.attributing._found[key].at_s
        for kind, confidence, stands in (
            ("unknown", 0.0, "errors"),
            ("queue", 0.7, "errors"),
            ("unreachable", 1.0, "unreachable"),
        ):
            cause = Cause(kind, confidence)  # type: ignore[arg-type]
            monkeypatch.setattr(attributing, "attribute_apart", lambda *_, cause=cause, **__: cause)
            for at, found in loop.attributing._found.items():
                loop.attributing._found[at] = replace(found, at_s=found.at_s - REFRESH_S)
            await seconds(one, loop, clock, count=1, bad=9)
            assert loop.attributing._found[key].cause.kind == stands
            assert loop.attributing._found[key].at_s > first_s

    played(file, work)


def test_only_so_many_are_asked_at_once_the_most_urgent_first(file: str) -> None:
    async def work(one: Store, loop: Ticks, ears: Ears, clock: Clock) -> None:
        await seconds(one, loop, clock, count=20, bad=9)
        assert loop.latest is not None
        firing = next(alert for alert in loop.latest.alerts if alert.key.tier == "fast" and alert.key.model == "*")
        many: list[Alert] = [
            replace(firing, key=replace(firing.key, model=f"m{number}"), state="pending") for number in range(20)
        ]
        gone = replace(firing, key=replace(firing.key, objective="gone"))
        state = replace(firing, key=replace(firing.key, name="LLMQueueGrowing"))
        evaluation = replace(loop.latest, alerts=(*many, gone, state, firing), transitions=())
        asked = questions(evaluation, {}, plan=one.ledger.plan)
        assert len(asked) == MAX_AT_ONCE
        assert asked[0].alert == firing
        assert {one.alert.key.name for one in asked} == {firing.key.name}

    played(file, work)


def test_what_is_found_is_kept_once_and_forgotten_with_its_alert(file: str) -> None:
    async def work(one: Store, loop: Ticks, ears: Ears, clock: Clock) -> None:
        await seconds(one, loop, clock, count=20, bad=9)
        await loop.settled()
        assert loop.attributing.unsaved == ()
        assert loop.latest is not None
        quiet = replace(loop.latest, alerts=(), transitions=())
        await loop.attributing.seek(quiet)
        assert loop.attributing.told(quiet) is quiet
        again = Attributing(one)
        await again.resume()
        assert again.told(loop.latest).alerts == loop.latest.alerts

    played(file, work)
