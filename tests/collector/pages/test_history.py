"""The past that the page shows, read from real databases."""

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import pytest
from sqlalchemy import Connection

from collector.judging.evaluate import Evaluation
from collector.judging.percentiles import PercentileRow
from collector.pages import history
from collector.storage import commit, figures, upsert
from collector.values.alerting import Alert, AlertKey
from collector.values.columns import columns
from collector.values.verdicts import BurnRow
from slo.signals import KV_OCCUPANCY
from tests.collector.answering import test_status as made
from tests.collector.storage.test_commit import after

KEY = ("", "chat", "m", "ttft")
WANTED = {("chat", "ttft"): ("p50", "p95")}


def read_past(connection: Connection, *, until_s: int, recent: history.Recent) -> history.History:
    return history.history(connection, until_s=until_s, recent=recent, wanted=WANTED)


def evaluation(at_s: int, p95: float = 0.4) -> Evaluation:
    row = replace(made.percentile("m", p95=p95), at_s=at_s)
    other = replace(row, window_s=3600)
    burn = BurnRow(at_s, "", "chat", "m", "ttft", 300, 1, 1, 2.0, 1.0, "counts", 0)
    return replace(made.evaluation(rows=(row, other), burns=(burn,)), at_s=at_s)


def written(*times: int) -> Any:
    return [lambda c, at_s=at_s: figures.write(c, evaluation(at_s)) for at_s in times]


def test_percentiles_and_burns_in_order_of_time(database: str) -> None:
    times = [made.AT_S - history.SPAN_S - 60, made.AT_S - 120, made.AT_S - 60]
    read = lambda c: read_past(c, until_s=made.AT_S, recent=history.Recent(300))  # noqa: E731
    found = after(database, *written(*times), read)
    assert found.percentiles[KEY]["p95"] == [(times[1], 0.4), (times[2], 0.4)]
    assert found.burns[KEY] == [(times[1], 2.0), (times[2], 2.0)]


def test_what_is_recent_comes_from_memory_and_what_is_older_from_sql(database: str) -> None:
    recent = history.Recent(300)
    for at_s in (made.AT_S - 20, made.AT_S - 10, made.AT_S):
        recent.add(evaluation(at_s, p95=0.9))
    read = lambda c: read_past(c, until_s=made.AT_S, recent=recent)  # noqa: E731
    found = after(database, *written(made.AT_S - 130, made.AT_S - 70, made.AT_S - 10), read)
    assert found.percentiles[KEY]["p95"] == [
        *((made.AT_S - 130, 0.4), (made.AT_S - 70, 0.4), (made.AT_S - 20, 0.9), (made.AT_S - 10, 0.9)),
        (made.AT_S, 0.9),
    ]


def test_a_quantile_that_is_unknown_is_what_it_is_known_to_exceed(database: str) -> None:
    recent = history.Recent(300)
    row = replace(made.percentile("m", p95=None), at_least=3.5)
    recent.add(made.evaluation(rows=(row,)))
    found = after(database, lambda c: read_past(c, until_s=made.AT_S, recent=recent))
    assert found.percentiles[KEY]["p95"] == [(made.AT_S, 3.5)]
    assert found.percentiles[KEY]["p50"] == [(made.AT_S, 0.1)]


def test_a_young_past_starts_where_it_starts(database: str) -> None:
    def since_s(*times: int) -> int:
        read = lambda c: read_past(c, until_s=made.AT_S, recent=history.Recent(300))  # noqa: E731
        found: history.History = after(database, *written(*times), read)
        return found.since_s - made.AT_S

    assert since_s() == -history.SPAN_S
    assert since_s(made.AT_S - 10) == -history.LEAST_SPAN_S
    assert since_s(made.AT_S - 900) == -900
    assert since_s(made.AT_S - 2 * history.SPAN_S) == -900


def test_charts_show_the_shortest_window_of_a_minute_or_more() -> None:
    assert history.chart_window_s((15, 60, 300)) == 60
    assert history.chart_window_s((300, 3600)) == 300


def test_of_several_instances_the_fullest_is_shown(database: str) -> None:
    def write(connection: Connection) -> None:
        key = ("", "chat", "m")
        rows = [
            (10, made.AT_S - 20, *key, instance, KV_OCCUPANCY.sql, "", full, full, full, full, 1, 1)
            for instance, full in (("i1", 0.2), ("i2", 0.7))
        ]
        upsert.GAUGE.write(connection, [*rows, (60, made.AT_S - 7200, *rows[0][2:])])

    found = after(database, write, lambda c: read_past(c, until_s=made.AT_S, recent=history.Recent(300)))
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
    found = after(
        database,
        lambda c: commit.write_alerts(c, told, told),
        lambda c: read_past(c, until_s=99, recent=history.Recent(300)),
    )
    assert [(one.tier, one.fired_s, one.ended_s) for one in found.ended] == [("medium", 15, 40), ("fast", 10, 20)]


def test_the_alerts_of_one_objective_alone(database: str) -> None:
    def over(objective: str) -> Alert:
        key = AlertKey("LLMTTFTBudgetBurn", "", "chat", "*", objective, "fast")
        return Alert(key, "resolved", 20, 10, (), (("summary", "S."),))

    told = [over("ttft"), over("tpot")]
    of = {"environment": "", "service": "chat", "objective": "tpot"}
    found = after(database, lambda c: commit.write_alerts(c, told, told), lambda c: history.ended_of(c, **of))
    assert [one.objective for one in found] == ["tpot"]


def test_how_good_a_percentile_is_comes_with_it(database: str) -> None:
    recent = history.Recent(300)
    recent.add(made.evaluation(rows=(replace(made.percentile("m", p95=None), at_least=3.5),)))
    found = after(database, lambda c: read_past(c, until_s=made.AT_S, recent=recent))
    assert found.percentiles[KEY]["at_least"] == [(made.AT_S, 3.5)]
    assert found.percentiles[KEY]["rel_error"] == [(made.AT_S, 0.011)]


def test_burns_are_of_a_window_that_every_objective_has(database: str) -> None:
    recent = history.Recent(60)
    recent.add(evaluation(made.AT_S))
    found = after(database, *written(made.AT_S - 60), lambda c: read_past(c, until_s=made.AT_S, recent=recent))
    assert [at_s for at_s, _ in found.burns[KEY]] == [made.AT_S - 60, made.AT_S]


def test_an_empty_past() -> None:
    assert history.empty(5, window_s=300).percentiles == {}


def test_with_very_many_rows_the_past_is_shorter(database: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(history, "MAX_ROWS", 2)
    recent = history.Recent(300)
    for at_s in (made.AT_S - 20, made.AT_S - 10, made.AT_S):
        recent.add(evaluation(at_s))
    assert recent.since_s == made.AT_S, "a tick has two rows of the window"
    times = [made.AT_S - 60 * number for number in range(5, 0, -1)]
    read = lambda c: read_past(c, until_s=made.AT_S, recent=history.Recent(300))  # noqa: E731
    found = after(database, *written(*times), read)
    assert [at_s for at_s, _ in found.percentiles[KEY]["p95"]] == times[-2:], "the latest stay"


def test_only_what_is_promised_is_read(database: str) -> None:
    assert history.promised(made.SPECS)["chat", "ttft"] == {"p95"}
    recent = history.Recent(300)
    recent.add(
        replace(evaluation(made.AT_S), percentiles=columns(PercentileRow, (made.percentile("m"), other_signal())))
    )
    wrote = lambda c: figures.write(c, made.evaluation(rows=(other_signal(),)))  # noqa: E731
    found = after(database, wrote, lambda c: read_past(c, until_s=made.AT_S, recent=recent))
    assert set(found.percentiles) == {KEY}
    assert set(found.percentiles[KEY]) == {"p50", "p95", "at_least", "rel_error"}


def test_a_chart_is_of_one_source_the_best_that_saw_anything(database: str) -> None:
    """An engine that others ask too tells of their requests as well."""
    engine = replace(made.percentile("m"), source="engine", p50=9.0, p95=9.9)
    blind = replace(made.percentile("m"), p50=None, p90=None, p95=None, p99=None, p999=None, at_least=None)

    def shown(*rows: PercentileRow) -> Sequence[tuple[int, float | None]]:
        recent = history.Recent(300)
        recent.add(replace(evaluation(made.AT_S), percentiles=columns(PercentileRow, rows)))
        found = after(database, lambda c: read_past(c, until_s=made.AT_S, recent=recent))
        points: Sequence[tuple[int, float | None]] = found.percentiles[KEY]["p50"]
        return points

    seen = made.percentile("m")
    assert shown(engine, seen) == shown(seen, engine) == [(made.AT_S, seen.p50)]
    assert shown(engine, blind) == [(made.AT_S, 9.0)]


def other_signal() -> PercentileRow:
    return replace(made.percentile("m"), signal="e2e")
