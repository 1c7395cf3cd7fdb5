"""What is read for one objective alone: from real databases, kept for a while, and never at the page's cost."""

import asyncio
import threading
from typing import Any
from urllib.parse import parse_qsl, urlsplit

import pytest

from collector.answering.asked import WhatIfAsked
from collector.answering.desk import Desk
from collector.answering.hindsight import KEPT_S, MAX_ASKED, MAX_KEPT
from collector.errors import RefusedError, UnavailableError
from collector.replaying import replay_past, whatif
from slo.signals import ENVIRONMENT
from tests.collector import exports, messages, stores
from tests.collector.answering.test_desk import a_desk
from tests.collector.stores import NOW_S


def ask(percentile: str = "", threshold: str = "", *, objective: str = "ttft", **of: str) -> WhatIfAsked:
    return WhatIfAsked(service="chat", objective=objective, percentile=percentile, threshold=threshold, **of)


def test_another_target_is_answered_from_the_stored_past(database: str) -> None:
    async def act() -> None:
        async with a_desk(database) as one:
            found = await one.hindsight.whatif(ask("50"), now_s=NOW_S)
            assert found.asked is not None
            assert (found.asked.total, found.asked.bad.likely) == (10, 1)
            assert found.asked.remaining.likely > (found.promised.remaining.likely if found.promised else 1)
            other = await one.hindsight.whatif(ask(threshold="100ms"), now_s=NOW_S)
            assert (other.asked, other.why) == (None, "neither events nor a histogram of it are stored")

    asyncio.run(act())


def test_what_was_answered_is_kept_for_a_while(tmp_path: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    reads: list[float] = []
    honest = replay_past.read

    def counted(*given: Any) -> Any:
        reads.append(1)
        return honest(*given)

    monkeypatch.setattr(replay_past, "read", counted)

    async def act() -> None:
        async with a_desk(f"sqlite:///{tmp_path}/f.db") as one:
            first = await one.hindsight.whatif(ask("50"), now_s=NOW_S)
            assert await one.hindsight.whatif(ask("50"), now_s=NOW_S + KEPT_S - 1) is first
            assert len(reads) == 1
            await one.hindsight.whatif(ask("50"), now_s=NOW_S + KEPT_S)
            assert len(reads) == 2
            for number in range(MAX_KEPT):
                await one.hindsight.whatif(ask(f"60.{number}"), now_s=NOW_S + KEPT_S)
            await one.hindsight.whatif(ask("50"), now_s=NOW_S + KEPT_S)
            assert len(reads) == MAX_KEPT + 3, "of more questions than are kept the oldest is forgotten"

    asyncio.run(act())


def test_the_page_of_an_environment_answers_for_it(tmp_path: Any) -> None:
    async def act() -> None:
        async with a_desk(f"sqlite:///{tmp_path}/f.db") as one:
            events = exports.events(good=3, bad=1, at_s=NOW_S - 30)
            elsewhere = messages.metrics(*events, resource=exports.RESOURCE | {ENVIRONMENT: "us"})
            await one.store.count(b"z" * 32, stores.batch(elsewhere))
            await one.ticks.tick()
            cards = {card.environment: card for card in (await one.page()).cards}
            totals = {}
            for name, card in cards.items():
                query = dict(parse_qsl(urlsplit(card.url).query)) | {"percentile": "50"}
                page = await one.drill("chat", "ttft", query)
                assert page is not None
                assert page[1].card.environment == name
                found = (await one.hindsight.of(card, query, now_s=NOW_S)).whatif
                assert found is not None
                assert found.promised is not None
                assert found.asked is not None
                totals[name] = found.promised.total, found.asked.total
            assert totals == {"": (10, 10), "us": (4, 4)}
            assert await one.drill("chat", "ttft", {"environment": "eu"}) is None
            assert await refused(one, ask("50")) == "environment: chat is heard from none, us: name one"

    asyncio.run(act())


def slowed(monkeypatch: pytest.MonkeyPatch) -> tuple[list[str], threading.Event, threading.Event]:
    """Every replay that begins; set when one did; and what lets them end."""
    begun: list[str] = []
    first_begun, go, honest = threading.Event(), threading.Event(), whatif.answered

    def slow(question: Any, past: Any, **of: Any) -> Any:
        begun.append(str(question.objectives[1].goal))
        first_begun.set()
        assert go.wait(30)
        return honest(question, past, **of)

    monkeypatch.setattr(whatif, "answered", slow)
    return begun, first_begun, go


def test_those_who_ask_the_same_wait_for_one_replay(tmp_path: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    begun, first_begun, go = slowed(monkeypatch)

    async def act() -> None:
        async with a_desk(f"sqlite:///{tmp_path}/f.db") as one:
            impatient, *others = (
                asyncio.create_task(one.hindsight.whatif(ask("50"), now_s=NOW_S)) for _ in range(MAX_ASKED + 1)
            )
            assert await asyncio.to_thread(first_begun.wait, 30)
            impatient.cancel()
            await asyncio.wait([impatient])
            go.set()
            first, *rest = await asyncio.gather(*others)
            assert all(other is first for other in rest)
            assert begun == ["0.5"]

    asyncio.run(act())


def test_one_replay_runs_at_once_and_only_so_many_wait(tmp_path: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    begun, first_begun, go = slowed(monkeypatch)

    async def act() -> None:
        async with a_desk(f"sqlite:///{tmp_path}/f.db") as one:
            asked = [
                asyncio.create_task(one.hindsight.whatif(ask(f"5{number}"), now_s=NOW_S)) for number in range(MAX_ASKED)
            ]
            assert await asyncio.to_thread(first_begun.wait, 30)
            with pytest.raises(UnavailableError, match="more is replayed at once"):
                await one.hindsight.whatif(ask("90"), now_s=NOW_S)
            assert begun == ["0.5"]
            go.set()
            assert len(await asyncio.gather(*asked)) == len(begun) == MAX_ASKED
            assert await one.hindsight.whatif(ask("90"), now_s=NOW_S)

    asyncio.run(act())


async def refused(one: Desk, asked: WhatIfAsked) -> str:
    with pytest.raises(RefusedError) as error:
        await one.hindsight.whatif(asked, now_s=NOW_S)
    return str(error.value)


def test_what_cannot_be_asked_is_refused(tmp_path: Any) -> None:
    async def act() -> None:
        async with a_desk(f"sqlite:///{tmp_path}/f.db") as one:
            assert (await refused(one, ask("101"))).startswith("percentile: 101 leaves nothing")
            assert (await refused(one, ask(objective="no"))).startswith("objective: chat has none named no")

    asyncio.run(act())


def test_the_page_tells_what_went_wrong_and_stays(tmp_path: Any) -> None:
    async def away(_work: Any) -> Any:
        raise UnavailableError("the database cannot be read: gone")

    async def act() -> None:
        async with a_desk(f"sqlite:///{tmp_path}/f.db") as one:
            found = await one.drill("chat", "ttft", {"percentile": "many"})
            assert found is not None
            assert found[1].answer is not None
            assert found[1].answer.trouble.startswith("percentile: many is not a share")
            one.reader.read = away  # type: ignore[method-assign]
            found = await one.drill("chat", "ttft", {})
            assert found is not None
            assert found[1].answer is not None
            assert found[1].answer.trouble == "the database cannot be read: gone"
            assert await one.drill("chat", "no", {}) is None

    asyncio.run(act())


def test_a_look_at_an_objective_asks_the_database_once(tmp_path: Any) -> None:
    async def act() -> None:
        async with a_desk(f"sqlite:///{tmp_path}/f.db") as one:
            await one.drill("chat", "ttft", {"percentile": "50"})
            reads: list[Any] = []
            honest = one.reader.read

            async def counted(work: Any) -> Any:
                reads.append(work)
                return await honest(work)

            one.reader.read = counted  # type: ignore[method-assign]
            await one.page()
            assert reads == [], "what the front page shows was read at the tick"
            await one.drill("chat", "ttft", {"percentile": "50"})
            assert len(reads) == 1, "its own past alerts; the answer to the same question is kept"

    asyncio.run(act())
