"""Questions about stored figures, on both databases: the right rows, in order, page by page."""

import asyncio
from collections.abc import Callable
from typing import Any, TypeVar

import pytest
from sqlalchemy import Connection

from collector.answering import reads
from collector.answering.asked import AlertsAsked, BudgetAsked, BurnAsked, PercentilesAsked
from collector.answering.reads import Found
from collector.judging.evaluate import Evaluation
from collector.judging.percentiles import PercentileRow
from collector.storage import commit, figures
from collector.values.alerting import Alert, AlertKey
from collector.values.columns import columns
from collector.values.deltas import Deltas
from collector.values.verdicts import BudgetRow, BurnRow
from tests.collector import scene, stores
from tests.collector.scene import NOW_S

T = TypeVar("T")
MODELS = ("*", "m", "n")
WINDOWS_S = (300, 3600)


def evaluation(at_s: int) -> Evaluation:
    burns = [
        BurnRow(at_s, "", service, model, "ttft", window_s, 90, 10, None if model == "n" else 2.0, 0.5, "counts", 0)
        for service in ("chat", "search")
        for model in MODELS
        for window_s in WINDOWS_S
    ]
    budgets = [BudgetRow(at_s, "", "chat", model, "ttft", 90, 10, 20.0, 0.5, None, 0.1, "counts") for model in MODELS]
    values = (100, 0, 0.1, 0.3, None, 0.6, 0.7, 0.8, 0.5, 0.011, 1.0)
    rows = [PercentileRow(at_s, "", "chat", "m", "ttft", "proxy", window_s, *values) for window_s in WINDOWS_S]
    return Evaluation(at_s, columns(PercentileRow, rows), columns(BurnRow, burns), columns(BudgetRow, budgets), (), ())


def alert(name: str, state: Any, since_s: int, service: str = "chat") -> Alert:
    key = AlertKey(name, "", service, "*", "ttft", "fast")
    labels = (("notify", "page"), ("severity", "critical"))
    return Alert(key, state, since_s, since_s, labels, (("summary", "it burns"),))


MOMENTS = [NOW_S - 60 * minute for minute in range(20, 0, -1)]


def over(database: str, ask: Callable[[Connection], T]) -> T:
    """What is answered over twenty minutes of figures, some alerts and one instance's histograms."""

    evaluations = [evaluation(at_s) for at_s in MOMENTS]
    rows = Deltas(latencies=(scene.values(NOW_S - 50, [0.1] * 10),), known=scene.known(NOW_S - 60, NOW_S))

    def fill(connection: Connection) -> None:
        for one in evaluations:
            figures.write(connection, one)
        history = [alert("Old", "firing", NOW_S - 200_000), alert("A", "firing", NOW_S - 50)]
        history += [alert("A", "resolved", NOW_S - 10), alert("B", "firing", NOW_S - 5, "search")]
        commit.write_alerts(connection, [history[2], history[3]], history)
        commit.write_deltas(connection, rows, step_s=10, at_s=NOW_S)

    async def act() -> T:
        async with stores.store(database) as store:
            await store.write(fill)
            return await store.read(ask)

    return asyncio.run(act())


def burns(database: str, **asked: Any) -> Found:
    return over(database, lambda connection: reads.burns(connection, BurnAsked.model_validate(asked), now_s=NOW_S))


def test_the_latest_figures_are_those_of_the_last_evaluation(database: str) -> None:
    found = burns(database)
    assert found.next is None
    assert {row["at_s"] for row in found.rows} == {MOMENTS[-1]}
    assert len(found.rows) == 12
    first = found.rows[0]
    assert (first["service"], first["model"], first["window"], first["window_s"]) == ("chat", "*", "5m", 300)
    assert (first["good"], first["bad"], first["burn"]) == (90, 10, 2.0)
    assert next(row for row in found.rows if row["model"] == "n")["burn"] is None


def test_each_filter_holds(database: str) -> None:
    found = burns(database, service="chat", model="m", window="1h", objective="ttft", environment="")
    assert [(row["service"], row["model"], row["window"]) for row in found.rows] == [("chat", "m", "1h")]
    assert burns(database, objective="other").rows == []
    assert burns(database, environment="prod").rows == []


def test_a_stretch_gives_every_moment_that_is_kept(database: str) -> None:
    found = burns(database, model="m", service="chat", window="5m", **{"from": MOMENTS[3], "to": MOMENTS[7]})
    assert [row["at_s"] for row in found.rows] == MOMENTS[3:8]


def test_a_step_gives_the_last_moment_in_it(database: str) -> None:
    asked = {"model": "m", "service": "chat", "window": "5m", "from": MOMENTS[0], "to": NOW_S, "step": "5m"}
    found = burns(database, **asked)
    lasts = {at_s // 300: at_s for at_s in MOMENTS}
    assert [row["at_s"] for row in found.rows] == list(lasts.values())


@pytest.mark.parametrize("more", [{}, {"from": MOMENTS[0]}, {"from": MOMENTS[0], "step": "3m"}], ids=str)
def test_pages_together_are_the_whole(database: str, more: dict[str, Any]) -> None:
    def ask(connection: Connection) -> tuple[list[reads.Row], list[reads.Row]]:
        whole = reads.burns(connection, BurnAsked.model_validate({**more, "limit": 5000}), now_s=NOW_S).rows
        pages: list[reads.Row] = []
        after: dict[str, str] = {}
        while True:
            asked = BurnAsked.model_validate({**more, **after, "limit": 7})
            page = reads.burns(connection, asked, now_s=NOW_S)
            assert len(page.rows) <= 7
            pages += page.rows
            if page.next is None:
                return list(whole), pages
            after = {"next": page.next}

    whole, pages = over(database, ask)
    assert pages == whole
    assert len(whole) >= 12


def test_the_next_page_of_the_latest_goes_on_when_a_tick_came_between(database: str) -> None:
    def ask(connection: Connection) -> list[str]:
        first = reads.burns(connection, BurnAsked(limit=7), now_s=NOW_S)
        return [first.next or "", *(row["model"] for row in first.rows)]

    async def act() -> None:
        async with stores.store(database) as store:
            await store.write(lambda connection: figures.write(connection, evaluation(NOW_S)))
            after, *seen = await store.read(ask)
            await store.write(lambda connection: figures.write(connection, evaluation(NOW_S + 10)))
            rest = await store.read(lambda connection: reads.burns(connection, BurnAsked(next=after), now_s=NOW_S + 10))
            assert len(seen) + len(rest.rows) == 12
            assert {row["at_s"] for row in rest.rows} == {NOW_S + 10}

    asyncio.run(act())


def test_budgets_and_percentiles_are_read_alike(database: str) -> None:
    budgets = over(database, lambda c: reads.budgets(c, BudgetAsked(model="m"), now_s=NOW_S)).rows
    assert [(row["remaining"], row["exhausted_in_s"]) for row in budgets] == [(0.5, None)]
    asked = PercentilesAsked.model_validate({"signal": "ttft", "source": "proxy", "window": "5m"})
    (row,) = over(database, lambda c: reads.percentiles(c, asked, now_s=NOW_S, tick_s=10)).rows
    assert (row["p50"], row["p95"], row["at_least"], row["window"]) == (0.1, None, 0.5, "5m")


def test_one_instance_is_read_from_its_histograms(database: str) -> None:
    one = {"service": "chat", "model": "m", "signal": "ttft", "window": "5m"}
    asked = [PercentilesAsked.model_validate(one | {"instance": name}) for name in ("i1", "nobody")]
    found, nobody = over(
        database, lambda c: [reads.percentiles(c, each, now_s=NOW_S + 3, tick_s=10).rows for each in asked]
    )
    assert [(row["count"], row["window"], row["at_s"]) for row in found] == [(10, "5m", NOW_S)]
    assert found[0]["p50"] == pytest.approx(0.1, rel=0.011)
    assert nobody == []


def test_alerts_are_those_of_now_and_what_happened_to_them(database: str) -> None:
    def ask(connection: Connection) -> tuple[list[reads.Row], Found, Found, Found]:
        return (
            reads.present(connection, AlertsAsked()),
            reads.transitions(connection, AlertsAsked(), now_s=NOW_S),
            reads.transitions(connection, AlertsAsked.model_validate({"from": 0, "limit": 1}), now_s=NOW_S),
            reads.transitions(connection, AlertsAsked(service="search"), now_s=NOW_S),
        )

    now, today, first, search = over(database, ask)
    assert [(one["name"], one["state"], one["notify"]) for one in now] == [("B", "firing", "page")]
    assert now[0]["annotations"] == {"summary": "it burns"}
    assert now[0]["cause"] is None
    assert [(one["name"], one["state"]) for one in today.rows] == [("B", "firing"), ("A", "resolved"), ("A", "firing")]
    assert (len(first.rows), first.next is None) == (1, False)
    assert [one["name"] for one in search.rows] == ["B"]


def test_the_history_of_alerts_is_paged_backwards(database: str) -> None:
    def ask(connection: Connection) -> list[str]:
        names, after = [], None
        while True:
            asked = AlertsAsked.model_validate({"from": 0, "limit": 1, "next": after})
            page = reads.transitions(connection, asked, now_s=NOW_S)
            names += [row["name"] for row in page.rows]
            after = page.next
            if after is None:
                return names

    assert over(database, ask) == ["B", "A", "A", "Old"]
