"""What is read once for everybody, and what happens to it while the database is away."""

import asyncio
import threading
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from typing import Any

import orjson
import pytest
from sqlalchemy import Connection

from collector.answering import desk as desk_room
from collector.answering.asked import StatusAsked
from collector.answering.desk import Desk
from collector.answering.hindsight import Hindsight
from collector.errors import UnavailableError
from collector.pages import history, view
from collector.pages.filters import Filters
from collector.telling.notify import Notifier
from collector.ticking.ticks import Ticks
from slo import signals
from tests.collector import exports, stores
from tests.collector.stores import NOW_S, Clock
from tests.collector.support import SPEC


@asynccontextmanager
async def a_desk(database: str, clock: Clock | None = None, *, models: int = 1) -> AsyncIterator[Desk]:
    """A desk over a store that counted events of some models, evaluated once."""
    clock = clock or Clock()
    async with stores.store(database, clock=clock) as store:
        for number in range(models):
            events = exports.events(good=9, bad=1, at_s=NOW_S - 30, model=f"m{number}")
            await store.count(bytes([number]) * 32, stores.batch(exports.export(events)))
        ticks = Ticks(store, Notifier([]), "http://here", clock=clock)
        await ticks.resume()
        await ticks.tick()
        yield Desk(store, ticks, "1")
        await ticks.stop()


async def read(one: Desk, **asked: Any) -> Any:
    return orjson.loads(await one.status_body(StatusAsked(**asked)))


def test_the_past_is_read_once_a_tick_however_many_look(database: str, monkeypatch: pytest.MonkeyPatch) -> None:
    read_for: list[int] = []
    honest = history.history

    def counted(connection: Connection, *, until_s: int, **asked: Any) -> history.History:
        read_for.append(until_s)
        return honest(connection, until_s=until_s, **asked)

    monkeypatch.setattr(history, "history", counted)
    clock = Clock()

    async def act() -> None:
        async with a_desk(database, clock) as one:
            first, *others = await asyncio.gather(*(one.past() for _ in range(20)))
            assert all(other is first for other in others)
            assert await one.past() is first
            clock.now_s += 10
            await one.ticks.tick()
            assert (await one.past()).until_s == NOW_S + 10

    asyncio.run(act())
    assert read_for == [NOW_S, NOW_S + 10]


def test_one_who_leaves_does_not_take_the_past_of_the_others_along(database: str) -> None:
    async def act() -> None:
        async with a_desk(database) as one:
            impatient, patient = asyncio.create_task(one.past()), asyncio.create_task(one.past())
            await asyncio.sleep(0)
            impatient.cancel()
            assert (await patient).until_s == NOW_S
            assert impatient.cancelled() or impatient.done()

    asyncio.run(act())


def test_while_the_database_is_away_the_page_shows_what_it_knew(tmp_path: Any) -> None:
    async def away(_work: Callable[[Connection], Any]) -> Any:
        raise UnavailableError("the database cannot be read: gone")

    clock = Clock()

    async def act() -> None:
        async with a_desk(f"sqlite:///{tmp_path}/f.db", clock) as one:
            before = await one.past()
            honest, one.reader.read = one.reader.read, away  # type: ignore[method-assign]
            clock.now_s += 10
            await one.ticks.tick()
            assert await one.past() is before
            assert (await one.page()).at_s == NOW_S + 10
            one.reader.read = honest  # type: ignore[method-assign]
            assert (await one.past()).until_s == NOW_S + 10

    asyncio.run(act())


def test_the_status_is_made_once_a_tick(tmp_path: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    made: list[int] = []
    honest = desk_room.status

    def counted(specs: Any, evaluation: Any, alerts: Any) -> Any:
        made.append(evaluation.at_s)
        return honest(specs, evaluation, alerts)

    monkeypatch.setattr(desk_room, "status", counted)
    clock = Clock()

    async def act() -> None:
        async with a_desk(f"sqlite:///{tmp_path}/f.db", clock) as one:
            first, second = await asyncio.gather(*(one.status_body(StatusAsked()) for _ in range(2)))
            assert first == second
            assert await one.status_body(StatusAsked()) is await one.status_body(StatusAsked())
            assert (await read(one, model="*"))["total"] == 1
            await one.page()
            clock.now_s += 10
            await one.ticks.tick()
            assert (await read(one))["at_s"] == NOW_S + 10

    asyncio.run(act())
    assert made == [NOW_S, NOW_S + 10]


def test_the_status_is_filtered_and_paged(tmp_path: Any) -> None:
    async def act() -> None:
        async with a_desk(f"sqlite:///{tmp_path}/f.db", models=5) as one:
            whole = await read(one)
            assert [row["model"] for row in whole["objectives"]] == ["*", "m0", "m1", "m2", "m3", "m4"]
            assert (whole["total"], whole["next"]) == (6, None)
            assert [row["model"] for row in (await read(one, model="m3"))["objectives"]] == ["m3"]
            assert (await read(one, service="search"))["objectives"] == []
            first = await read(one, limit=4)
            rest = await read(one, limit=4, offset=first["next"])
            assert first["objectives"] + rest["objectives"] == whole["objectives"]
            assert (first["total"], rest["next"]) == (6, None)

    asyncio.run(act())


def asked_slowly(one: Desk, monkeypatch: pytest.MonkeyPatch) -> tuple[asyncio.Event, asyncio.Event]:
    """Set when what a page about an objective asks for is being read, and what lets it be read."""
    begun, go, honest = asyncio.Event(), asyncio.Event(), Hindsight.of

    async def slow(*given: Any, **of: Any) -> Any:
        begun.set()
        await go.wait()
        return await honest(*given, **of)

    monkeypatch.setattr(Hindsight, "of", slow)
    return begun, go


def test_a_page_that_is_read_while_the_specs_change_is_as_of_before(
    tmp_path: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def act() -> None:
        async with a_desk(f"sqlite:///{tmp_path}/f.db") as one:
            begun, go = asked_slowly(one, monkeypatch)
            looking = asyncio.create_task(one.drill("chat", "ttft", {}))
            await begun.wait()
            await one.store.follow(stores.a_plan(SPEC.replace("chat", "search")))
            go.set()
            found = await looking
            assert found is not None
            assert (found[1].card.name, len(found[1].tiers)) == ("ttft", 1)
            assert await one.drill("chat", "ttft", {}) is None

    asyncio.run(act())


def test_a_page_drawn_across_a_tick_is_not_kept_as_the_new_one(tmp_path: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    drawing, drawn, honest, clock = threading.Event(), threading.Event(), view.page, Clock()

    def slow(seen: view.Seen) -> view.Page:
        if seen.filters.are_any and not drawing.is_set():
            drawing.set()
            assert drawn.wait(30)
        return honest(seen)

    async def act() -> None:
        async with a_desk(f"sqlite:///{tmp_path}/f.db", clock) as one:
            begun, go = asked_slowly(one, monkeypatch)
            monkeypatch.setattr(view, "page", slow)
            about, chat = asyncio.create_task(one.drill("chat", "ttft", {})), Filters(service="chat")
            await begun.wait()
            listing = asyncio.create_task(one.page(chat))
            assert await asyncio.to_thread(drawing.wait, 30)
            clock.now_s += 10
            await one.ticks.tick()
            go.set()
            found = await about
            assert found is not None
            drawn.set()
            assert (await listing).at_s == found[0].at_s == NOW_S
            assert (await one.page(chat)).at_s == NOW_S + 10

    asyncio.run(act())


def test_readiness_follows_the_store_and_the_ticks(tmp_path: Any) -> None:
    clock = Clock()

    async def act() -> None:
        async with a_desk(f"sqlite:///{tmp_path}/f.db", clock) as one:
            assert one.trouble() is None
            one.store.failing = "disk full"
            assert one.trouble() == "the database cannot commit: disk full"
            one.store.is_recalling = True
            assert "reading the past" in (one.trouble() or "")
            one.store.is_recalling, one.store.failing = False, None
            clock.now_s += 100
            assert "100 s old" in (one.trouble() or "")

    asyncio.run(act())


def test_its_own_metrics_know_the_size_of_the_database(database: str) -> None:
    async def act() -> None:
        async with a_desk(database) as one:
            said = {family.metric: family.samples for family in await one.own()}
            assert said[signals.DATABASE_SIZE][""] > 10_000
            assert (signals.DATABASE_WAL in said) == database.startswith("sqlite")
            assert said[signals.INTAKE_POINTS] == {"": 2}
            assert said[signals.INTAKE_LAG][""] == pytest.approx(30, abs=10)
            assert said[signals.EVALUATION_AGE] == {"": 0}

    asyncio.run(act())
