"""Burn and budget of the engine in cases that a recording has not (the rest is compared in `test_mirror`)."""

import pytest

from collector.clickhouse import promises, questions
from collector.clickhouse.burn_views import budget_view, burn_rate_view
from collector.clickhouse.engine import Engine, Row, parameters
from collector.clickhouse.tables import INSTANCE, KNOWN, OBJECTIVE, SLO_COUNT
from slo.objective import parse

AT_S = 1_800_000_000
SPEC = """\
service: chat
objectives:
  - {name: ttft, signal: ttft, percentile: 95, threshold: 500ms, window: 7d}
"""
OTHER = SPEC.replace("500ms", "400ms")


def test_both_ask_one_question() -> None:
    assert burn_rate_view().count("FROM tracked(") == budget_view().count("FROM tracked(") == 1


def judged(engine: Engine, *events: tuple[str, int, int, int], spec: str = SPEC) -> None:
    """Events of hashes, at ages, and a service that was known for a minute, five minutes ago."""
    engine.insert(OBJECTIVE, promises.rows(parse(spec), written_s=7), token="spec")
    rows = [("", "chat", "m", "ttft", of, "o", AT_S - age_s, good, bad) for of, age_s, good, bad in events]
    engine.insert(SLO_COUNT, rows, token="events")
    engine.insert(KNOWN, [("", "chat", "o", AT_S - age_s) for age_s in range(250, 310, 10)], token="known")
    engine.insert(INSTANCE, [("", "chat", "proxy", "i", AT_S - 300, AT_S, 1)], token="instance")


def burns(engine: Engine, window_s: int = 300) -> list[Row]:
    return list(engine.ask(f"SELECT * FROM burn_rate{parameters(at_s=AT_S, window_s=window_s, tick_s=10)}"))


@pytest.mark.clickhouse
def test_the_worst_of_two_rules_in_force_speaks(clickhouse: Engine) -> None:
    now, old = (parse(one)[0].objectives[0].hash for one in (SPEC, OTHER))
    judged(clickhouse, (now, 20, 90, 10), (old, 30, 50, 50), ("gone", 1000, 0, 999))
    assert {(row[3], row[6], row[7]) for row in burns(clickhouse)} == {("*", 50, 50), ("m", 50, 50)}
    assert burns(clickhouse)[0][8] == pytest.approx(0.5 / 0.05)


@pytest.mark.clickhouse
def test_an_objective_that_nothing_is_heard_of_stands_with_zeros(clickhouse: Engine) -> None:
    judged(clickhouse)
    assert burns(clickhouse) == [(AT_S, "", "chat", "*", "ttft", 300, 0, 0, None, 0.0, "counts", 0)]
    question = f"SELECT * FROM budget{parameters(at_s=AT_S, tick_s=10)}"
    assert clickhouse.ask(question) == [(AT_S, "", "chat", "*", "ttft", 0, 0, 0.0, 1.0, None, 0.0, "counts")]


@pytest.mark.clickhouse
@pytest.mark.parametrize(("spec", "coverage"), [(SPEC, 0.1), (SPEC + "elastic: true\n", 0.5)])
def test_coverage_is_that_of_the_service(clickhouse: Engine, spec: str, coverage: float) -> None:
    judged(clickhouse, (parse(spec)[0].objectives[0].hash, 5000, 1, 0), spec=spec)
    assert burns(clickhouse, 600)[0][9] == pytest.approx(coverage)


@pytest.mark.clickhouse
def test_a_spec_that_was_told_later_stands_in_for_the_earlier(clickhouse: Engine) -> None:
    judged(clickhouse, (parse(OTHER)[0].objectives[0].hash, 20, 1, 1))
    clickhouse.insert(OBJECTIVE, promises.rows(parse(SPEC.replace("95", "90")), written_s=8), token="later")
    assert [row[8] for row in burns(clickhouse)] == pytest.approx([0.5 / 0.1] * 2)
    (row,) = clickhouse.ask(questions.objectives())
    assert promises.told([row], [row])
    assert row[OBJECTIVE.names.index("written_s")] == 8
