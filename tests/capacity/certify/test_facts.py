"""Numbers of a run, counted by hand."""

import pytest

from capacity.certify.facts import at_work, crowd, facts, flood_rate
from capacity.record import Record


def record(due_s: float, end_s: float, first_s: float | None = None) -> Record:
    return Record("m", due_s, end_s, "ok", due_s, due_s, first_s, end_s, 4, 8)


def test_a_crowd_is_counted_over_time() -> None:
    found = crowd([record(0, 6), record(2, 4), record(8, 14)], 0, 10)
    assert found.mean == pytest.approx((6 + 2 + 2) / 10)
    assert found.p95 == 2
    assert found.by_little == pytest.approx((6 + 2 + 6) / 10)
    assert found.residual == pytest.approx(0.4)


def test_the_two_means_agree_where_nothing_crosses_the_edges() -> None:
    assert crowd([record(at, at + 0.7) for at in range(9)], 0, 10).residual == pytest.approx(0)


def test_an_empty_span_holds_nobody() -> None:
    assert crowd([record(0, 1)], 3, 3).mean == 0


def test_facts_are_of_what_was_due_in_the_span() -> None:
    found = facts("t", [record(0, 1), record(5, 6), record(6, 7)], 4, 8)
    assert found.summary.planned == 2
    assert found.output_tokens == 8
    assert found.as_json()["concurrency"] == {"mean": 0.5, "p95": 1.0, "by_little": 0.5, "residual": 0.0}


def test_the_ceiling_is_the_slope_between_filling_and_draining() -> None:
    slow_begin, steady, slow_end = [0.0, 3.0], [4 + 0.1 * n for n in range(36)], [9.0, 12.0]
    rate, error = flood_rate([*slow_begin, *steady, *slow_end])
    assert rate == pytest.approx(10, rel=0.05)
    assert error < 1


def test_answers_under_way_are_those_between_first_token_and_end() -> None:
    assert at_work([record(0, 10, 9.0 - n) for n in range(8)]) == 8
    assert at_work([record(0, 1)]) == 0
