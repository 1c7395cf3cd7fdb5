"""A trouble's whole way: bodies in, ticks, rows in SQL, a ticket; told once, whatever is restarted meanwhile."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from google.protobuf.message import Message
from sqlalchemy import Connection, select

from collector import schema
from collector.answering.status import status
from collector.keeping.store import Store
from collector.ticking.ticks import Ticks
from slo import signals
from slo.objective import parse
from slo.trouble import ABOVE_CERTIFIED, BUDGET_POLICY, EMPTY_REPLIES, QUEUE_GROWING
from tests.collector import exports, messages
from tests.collector.stores import Clock, added, batch, store
from tests.collector.support import SPEC
from tests.collector.ticking.test_ticks import Ears

STEP_S = 20
MINUTE = 60 // STEP_S
POLICY = SPEC + "    policy: [{budget_left: 50%, do: freeze}]\n"


def body(*, empty: int, waiting: float, bad: int, at_s: float) -> Message:
    """A step of ten requests, some of which come to nothing."""
    points = [
        messages.number(count, at_s=at_s, start_s=at_s - STEP_S, attributes={signals.OUTCOME: outcome})
        for outcome, count in (("ok", 10 - empty), ("no_output", empty))
    ]
    return exports.export(
        [messages.counter(signals.REQUESTS.name, *points)],
        exports.gauge(signals.ENGINE_WAITING, waiting, at_s=at_s),
        exports.events(good=10 - bad, bad=bad, at_s=at_s),
        exports.heartbeat(at_s=at_s),
    )


class Service:
    """A service whose queue grows while it is ill."""

    def __init__(self) -> None:
        self.waiting = 0.0

    async def minutes(self, number: int, one: Store, loop: Ticks, clock: Clock, *, ill: bool) -> None:
        for _ in range(number * MINUTE):
            clock.now_s += STEP_S
            self.waiting = self.waiting + 1 if ill else 0
            said = body(empty=3 if ill else 0, waiting=self.waiting, bad=5 if ill else 0, at_s=clock.now_s - 1)
            await one.count(b"%d" % clock.now_s, batch(said))
            await loop.tick()
        await loop.settled()


@asynccontextmanager
async def ticking(database: str, clock: Clock) -> AsyncIterator[tuple[Store, Ticks, Ears]]:
    async with store(database, clock=clock, tick_s=STEP_S, spec=POLICY) as one:
        ears = Ears()
        loop = Ticks(one, ears, "http://c", clock)
        await loop.resume()
        yield one, loop, ears
        await loop.stop()


def transitions(connection: Connection) -> dict[str, list[str]]:
    table = schema.alert_event.c
    found: dict[str, list[str]] = {}
    for row in connection.execute(select(table.name, table.tier, table.state).order_by(table.at_s)):
        found.setdefault(f"{row.name} {row.tier}".strip(), []).append(row.state)
    return found


def told(ears: Ears) -> dict[str, set[tuple[int, bool]]]:
    """Since when what fires, by the last word."""
    found: dict[str, set[tuple[int, bool]]] = {}
    for notice in ears.heard[-1]:
        found.setdefault(notice.label("alertname"), set()).add((notice.starts_at_s, notice.fires))
    return found


def test_troubles_are_told_once_over_a_restart_and_end(database: str) -> None:
    clock, service = Clock(), Service()
    watched = {EMPTY_REPLIES, QUEUE_GROWING, BUDGET_POLICY}

    async def story() -> None:
        async with ticking(database, clock) as (one, loop, ears):
            await service.minutes(5, one, loop, clock, ill=False)
            assert not loop.alerts
            await service.minutes(12, one, loop, clock, ill=True)
            before = {name: since for name, since in told(ears).items() if name in watched}
            assert set(before) == watched
            front = status(parse(POLICY), loop.latest, loop.alerts)
            assert watched <= {alert["name"] for alert in front["alerts"]}
        async with ticking(database, clock) as (one, loop, ears):
            clock.now_s += STEP_S
            await loop.tick()
            assert {name: since for name, since in told(ears).items() if name in watched} == before
            await service.minutes(20, one, loop, clock, ill=False)
            assert {alert.key.name for alert in loop.alerts} & watched == set()
            found = await one.read(transitions)
        assert found[f"{EMPTY_REPLIES} 5%"] == ["firing", "resolved"]
        assert found[QUEUE_GROWING] == ["pending", "firing", "resolved"]
        assert found[f"{BUDGET_POLICY} 50%"] == ["firing", "resolved"]

    asyncio.run(story())


def test_a_load_above_what_was_certified_is_told(database: str) -> None:
    clock, service = Clock(), Service()
    figures = (0.4, None, None, None, None, None, None, None, None)
    found = (60, "", "chat", "m", "certify", "http://a", "certified", "ttft", *figures, "{}")

    async def story() -> None:
        async with ticking(database, clock) as (one, loop, _):
            await service.minutes(8, one, loop, clock, ill=False)
            await one.write(lambda connection: added(connection, schema.capacity_result, [found]))
            await service.minutes(12, one, loop, clock, ill=False)
            assert {alert.key.name for alert in loop.alerts if alert.state == "firing"} == {ABOVE_CERTIFIED}

    asyncio.run(story())


def test_a_wait_that_had_begun_goes_on_after_a_restart(database: str) -> None:
    clock, service = Clock(), Service()

    async def story() -> None:
        async with ticking(database, clock) as (one, loop, _):
            await service.minutes(4, one, loop, clock, ill=True)
            assert {alert.state for alert in loop.alerts if alert.key.name == QUEUE_GROWING} == {"pending"}
        async with ticking(database, clock) as (one, loop, _):
            await service.minutes(4, one, loop, clock, ill=True)
            assert {alert.state for alert in loop.alerts if alert.key.name == QUEUE_GROWING} == {"firing"}

    asyncio.run(story())
