"""Rows folded: one a key and step, in one order, the same whatever order they came in."""

from collections.abc import Callable, Iterable, Sequence
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from collector.values import deltas
from collector.values.deltas import (
    CounterRow,
    Deltas,
    GaugeRow,
    InstanceRow,
    KnownRow,
    LatencyKey,
    LatencyRow,
    SeriesKey,
    SloRow,
    StreamRow,
    concat,
    joined_latencies,
    latency_rows,
    series_at,
    series_of,
)
from collector.values.histogram import Layout, from_values, histogram
from collector.values.measurement import Resource, Tally, Whose
from tests.strategies import BOUNDS
from tests.strategies import deltas as some_deltas

KEY = SeriesKey(LatencyKey("", "chat", "m", "ttft", "proxy"), "i", Layout(5))
EXPLICIT = SeriesKey(KEY.latency, "i", Layout(None, BOUNDS))
OF = ("", "chat", "m")


def gauge(last: float, last_ns: int) -> GaugeRow:
    return GaugeRow(*OF, "i", "kv", "", 0, last, last, last, 1, last, last_ns)


FOLDED: dict[str, tuple[Callable[[Iterable[Any]], tuple[Any, ...]], Sequence[Any], Sequence[Any]]] = {
    "histograms of one series and step merge": (
        deltas.folded_latencies,
        [LatencyRow(KEY, 10, histogram(Layout(5), 0, [1])), LatencyRow(KEY, 10, histogram(Layout(5), 1, [2]))],
        [LatencyRow(KEY, 10, histogram(Layout(5), 0, [1, 2]))],
    ),
    "histograms of two layouts stay apart": (
        deltas.folded_latencies,
        [LatencyRow(KEY, 10, from_values([1.0])), LatencyRow(EXPLICIT, 10, from_values([1.0], Layout(None, BOUNDS)))],
        [LatencyRow(EXPLICIT, 10, from_values([1.0], Layout(None, BOUNDS))), LatencyRow(KEY, 10, from_values([1.0]))],
    ),
    "events add up by hash": (
        deltas.folded_slo,
        [SloRow(*OF, "o", "h2", 0, 1, 0), SloRow(*OF, "o", "h1", 0, 1, 2), SloRow(*OF, "o", "h2", 0, 0, 4)],
        [SloRow(*OF, "o", "h1", 0, 1, 2), SloRow(*OF, "o", "h2", 0, 1, 4)],
    ),
    "of a gauge the latest is the last": (
        deltas.folded_gauges,
        [gauge(0.5, 20), gauge(0.9, 10)],
        [GaugeRow(*OF, "i", "kv", "", 0, 0.5, 0.9, 1.4, 2, 0.5, 20)],
    ),
    "counters add up by attributes": (
        deltas.folded_counters,
        [CounterRow(*OF, "i", "proxy", "n", (("a", value),), 0, 1.5) for value in ("y", "x", "y")],
        [CounterRow(*OF, "i", "proxy", "n", (("a", value),), 0, total) for value, total in (("x", 1.5), ("y", 3.0))],
    ),
    "a step is known once": (
        deltas.folded_known,
        [KnownRow("", "chat", 10), KnownRow("", "chat", 0), KnownRow("", "chat", 10)],
        [KnownRow("", "chat", 0), KnownRow("", "chat", 10)],
    ),
    "an instance was heard from its first to its last": (
        deltas.folded_instances,
        [
            InstanceRow("", "chat", "i", "otel", 10, 20, periodic=False),
            InstanceRow("", "chat", "i", "otel", 5, 8, periodic=True),
        ],
        [InstanceRow("", "chat", "i", "otel", 5, 20, periodic=True)],
    ),
    "of a stream the latest point counts": (
        deltas.folded_streams,
        [StreamRow("s", 0, 20, 7.0), StreamRow("s", 0, 10, 5.0)],
        [StreamRow("s", 0, 20, 7.0)],
    ),
    "tallies add up by reason": (
        deltas.tallied,
        [Tally("b", 1), Tally("a", 2), Tally("b", 3), Tally("c", 0)],
        [Tally("a", 2), Tally("b", 4)],
    ),
}


@pytest.mark.parametrize("name", FOLDED)
def test_rows_fold(name: str) -> None:
    fold, rows, expected = FOLDED[name]
    assert fold(rows) == fold(reversed(rows)) == tuple(expected)


@given(st.lists(some_deltas(until_s=60), max_size=4))
def test_a_commit_of_several_bodies_is_the_same_in_any_order(parts: list[Deltas]) -> None:
    one, other = concat(parts), concat(reversed(parts))
    assert (one.slo, one.known) == (other.slo, other.known)
    assert [(row.series, row.start_s, row.histogram.counts.tolist()) for row in one.latencies] == [
        (row.series, row.start_s, row.histogram.counts.tolist()) for row in other.latencies
    ]
    assert sum(row.good + row.bad for row in one.slo) == sum(row.good + row.bad for part in parts for row in part.slo)
    assert sum(row.histogram.count for row in one.latencies) == sum(
        row.histogram.count for part in parts for row in part.latencies
    )
    keys = [(row.start_s, row.series.id) for row in one.latencies]
    assert keys == sorted(set(keys))


@given(st.lists(some_deltas(until_s=60), max_size=4))
def test_rows_of_latencies_are_the_same_as_columns(parts: list[Deltas]) -> None:
    plain = [tuple(part.latencies) for part in parts]
    together = joined_latencies(plain)
    rows = [row for part in plain for row in part]
    assert together == tuple(rows)
    assert tuple(rows) == together
    assert latency_rows(together) is together
    assert [together[place] for place in range(len(together))] == rows
    assert together[1:3] == tuple(rows[1:3])
    assert together.ids.tolist() == [row.series.id for row in rows]
    assert together.where(lambda series: series.instance == "i1") == tuple(
        row for row in rows if row.series.instance == "i1"
    )


def test_the_series_of_many_are_those_of_each_and_kept() -> None:
    resources = [Resource("", "chat", f"i{number}", "proxy") for number in range(3)]
    whose = [Whose(one, model, "ttft", censored) for one in resources for model in "ab" for censored in (False, True)]
    for layout in (Layout(5), Layout(None, (0.1, 1.0))):
        found = series_at(whose, layout)
        alone = [series_of(one.resource, one.model, one.signal, layout, censored=one.censored) for one in whose]
        assert found == alone
        again = series_at([*whose, Whose(resources[0], "c", "ttft")], layout)
        assert all(one is other for one, other in zip(found, again, strict=False))
        assert again[-1].latency.model == "c"


def test_columns_of_rows_equal_rows_alone_and_are_no_key() -> None:
    rows = latency_rows([LatencyRow(KEY, 10, from_values([1.0]))])
    assert rows != latency_rows([LatencyRow(KEY, 20, from_values([1.0]))])
    assert rows != "rows"
    with pytest.raises(TypeError):
        hash(rows)
