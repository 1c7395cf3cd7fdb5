"""The past that the page shows, read from real databases."""

from typing import Any

from sqlalchemy import Connection

from collector import commit, history, upsert
from collector.evaluate import Alert, AlertKey
from slo.signals import KV_OCCUPANCY
from tests.collector import test_status as made
from tests.collector.test_commit import after

KEY = ("", "chat", "m", "ttft")


def test_percentiles_and_burns_in_order_of_time(database: str) -> None:
    def at(at_s: int) -> Any:
        row = made.percentile("m")
        figures = made.evaluation(
            rows=(type(row)(at_s, *[getattr(row, name) for name in list(row.__dataclass_fields__)[1:]]),),
            burns=(made.BurnRow(at_s, "", "chat", "m", "ttft", 300, 1, 1, 2.0, 1.0, "counts", 0),),
        )
        return lambda c: commit.write_evaluation(c, type(figures)(at_s, figures.percentiles, figures.burns, (), (), ()))

    times = [made.AT_S - history.SPAN_S - 60, made.AT_S - 120, made.AT_S - 60]
    found = after(database, *map(at, times), lambda c: history.history(c, until_s=made.AT_S))
    assert found.percentiles[KEY]["p95"] == [(times[1], 0.4), (times[2], 0.4)]
    assert found.burns[KEY] == [(times[1], 2.0), (times[2], 2.0)]


def test_of_several_instances_the_fullest_is_shown(database: str) -> None:
    def write(connection: Connection) -> None:
        key = ("", "chat", "m")
        rows = [
            (10, made.AT_S - 20, *key, instance, KV_OCCUPANCY.sql, "", full, full, full, full, 1, 1)
            for instance, full in (("i1", 0.2), ("i2", 0.7))
        ]
        upsert.GAUGE.write(connection, [*rows, (60, made.AT_S - 7200, *rows[0][2:])])

    found = after(database, write, lambda c: history.history(c, until_s=made.AT_S))
    assert found.gauges["chat", KV_OCCUPANCY.sql] == [(made.AT_S - 7200, 0.2), (made.AT_S - 20, 0.7)]


def test_alerts_that_fired_and_ended_the_latest_first(database: str) -> None:
    def transition(tier: str, state: str, at_s: int, fired_s: int | None) -> Alert:
        key = AlertKey("LLMTTFTBudgetBurn", "", "chat", "*", "ttft", tier)
        return Alert(key, state, at_s, fired_s, (), (("summary", "S."),))  # type: ignore[arg-type]

    told = [
        transition("fast", "firing", 10, 10),
        transition("fast", "resolved", 20, 10),
        transition("slow", "resolved", 30, None),
        transition("medium", "resolved", 40, 15),
    ]
    found = after(database, lambda c: commit.write_alerts(c, told, told), lambda c: history.history(c, until_s=99))
    assert [(one.tier, one.fired_s, one.ended_s) for one in found.ended] == [("medium", 15, 40), ("fast", 10, 20)]


def test_an_empty_past() -> None:
    assert history.empty(5) == history.History(5, {}, {}, {}, ())
