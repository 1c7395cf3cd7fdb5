"""Quantiles against sorted lists, and the whole summary against counts done by hand."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from capacity.record import Load, Record
from capacity.summary import quantile, quantiles, summarise


@given(values=st.lists(st.floats(0, 100), min_size=1, max_size=200), percent=st.integers(1, 100))
def test_a_quantile_is_the_least_value_that_the_share_does_not_exceed(values: list[float], percent: int) -> None:
    found = quantile(sorted(values), percent / 100)
    assert 100 * sum(value <= found for value in values) >= percent * len(values)
    assert 100 * sum(value < found for value in values) < percent * len(values)


NEAREST_RANK = {
    "the median of one": ([7.0], 0.5, 7.0),
    "95 % of twenty is the nineteenth": ([float(n) for n in range(1, 21)], 0.95, 19.0),
    "95 % of twenty-one is the twentieth": ([float(n) for n in range(1, 22)], 0.95, 20.0),
    "all of them": ([1.0, 2.0, 3.0], 1.0, 3.0),
    "a share too small for any is the first": ([1.0, 2.0, 3.0], 0.01, 1.0),
}


@pytest.mark.parametrize(("values", "share", "right"), NEAREST_RANK.values(), ids=NEAREST_RANK.keys())
def test_nearest_rank(values: list[float], share: float, right: float) -> None:
    assert quantile(values, share) == right


def test_values_that_never_came_are_in_no_quantile() -> None:
    assert quantiles([3.0, None, 1.0]).count == 2
    assert quantiles([None]).p50 is None


def record(intended_s: float, outcome: str, late_s: float | None = 0.0) -> Record:
    is_ok = outcome == "ok"
    sent_s = None if late_s is None else intended_s + late_s
    first_s = intended_s + 0.5 if is_ok else None
    last_s = intended_s + 0.9 if is_ok else None
    return Record("m", intended_s, intended_s + 1, outcome, sent_s, sent_s, first_s, last_s, 3, 5 if is_ok else 0)


def test_a_summary_counts_outcomes_and_keeps_failures_out_of_latency_but_not_out_of_rates() -> None:
    records = (record(0.0, "ok"), record(1.0, "ok"), record(2.0, "error"), record(3.0, "cancelled", None))
    summary = summarise(Load("http://x:1", 0.0, 4.0, 9, records))
    assert (summary.planned, summary.sent) == (9, 3)
    assert summary.outcomes == {"cancelled": 1, "error": 1, "ok": 2}
    assert (summary.offered_rps, summary.completed_rps) == (1.0, 0.5)
    assert summary.output_tokens_per_s == pytest.approx(2.5)
    assert (summary.ttft.count, summary.ttft.p95) == (2, 0.5)
    assert summary.tpot.p50 == pytest.approx(0.1)
    assert not summary.is_client_late


def test_a_client_that_sends_late_is_named() -> None:
    assert summarise(Load("http://x:1", 0.0, 4.0, 1, (record(0.0, "ok", 0.2),))).is_client_late


def test_an_empty_load_has_a_summary() -> None:
    summary = summarise(Load("http://x:1", 0.0, 0.0, 0, ()))
    assert summary.outcomes == {}
    assert summary.ttft.p95 is None
