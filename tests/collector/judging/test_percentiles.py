"""All percentiles at once are those of each latency alone, and of sorted values."""

from collections import defaultdict
from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from collector.judging.percentiles import SHARES, PercentileRow, percentiles
from collector.values.deltas import Deltas, LatencyKey, LatencyRow
from collector.values.histogram import Layout
from collector.values.quantile import Buckets, Censored, quantiles, rank
from collector.windowing.coverage import of_series
from collector.windowing.windows import Windows
from slo.signals import ALL_MODELS, OVERDUE
from tests.collector import scene
from tests.collector.scene import NOW_S
from tests.strategies import BOUNDS, usual_latencies_s

AGES_S = (0, 100, 1000, 5000)
LAYOUTS = (Layout(5), Layout(2), Layout(None, BOUNDS))


@st.composite
def rows(draw: st.DrawFn) -> LatencyRow:
    """Values or waits of one of a few latencies, at some age, in some layout."""
    row = scene.values(
        NOW_S - draw(st.sampled_from(AGES_S)),
        draw(st.lists(usual_latencies_s | st.just(0.0), min_size=1, max_size=5)),
        model=draw(st.sampled_from("abc")),
        source=draw(st.sampled_from(["proxy", "engine"])),
        censored=draw(st.sampled_from([False, False, True])),
        layout=draw(st.sampled_from(LAYOUTS)),
    )
    return scene.of_service(row, draw(st.sampled_from(["chat", "chat", "other"])))


def waiting(windows: Windows, count: int) -> Deltas:
    """As many requests of model `a` wait past their deadline now."""
    now_s = windows.now_s
    gauge = scene.gauge(OVERDUE.sql, count, at_s=now_s, attribute="ttft", model="a", instance="i1")
    return Deltas(instances=(scene.heard(now_s - 60, now_s),), gauges=(gauge,))


def alone(windows: Windows, members: list[LatencyKey], line: LatencyKey, window_s: int, overdue: int) -> PercentileRow:
    """One row, as `quantile` gives it."""
    late = overdue if any((key.service, key.model, key.source) == ("chat", "a", "proxy") for key in members) else 0
    parts = [part for key in members for part in windows.latencies.values(key, window_s)]
    waits: list[Buckets] = [part for key in members for part in windows.latencies.waits(key, window_s)]
    censored = Censored(waits, late, 0.5 if late else 0.0)
    found = quantiles(parts, SHARES, censored=censored)
    p50, p90, p95, p99, p999, largest = (one.value for one in found)
    first_s = min(windows.latencies.first_s(key) for key in members)
    age_s = windows.now_s + windows.plan.tick_s - first_s
    return PercentileRow(
        windows.now_s,
        line.environment,
        line.service,
        line.model,
        line.signal,
        line.source,
        window_s,
        sum(part.count for part in parts),
        censored.count,
        p50,
        p90,
        p95,
        p99,
        p999,
        largest,
        next((one.at_least for one in found if one.value is None), None),
        max((one.rel_error for one in found if one.value is not None), default=None),
        of_series(windows.coverage((line.environment, line.service), window_s), window_s=window_s, age_s=age_s),
    )


@given(st.lists(rows(), max_size=12), st.sampled_from([0, 0, 3]), st.sampled_from([0, 300, 4000]))
@settings(max_examples=150, deadline=None)
def test_all_at_once_are_as_each_alone(came: list[LatencyRow], overdue: int, later_s: int) -> None:
    windows = scene.windows()
    windows.add(scene.live(NOW_S - 1800, NOW_S))
    windows.add(Deltas(latencies=tuple(came)))
    windows.advance(NOW_S + later_s)
    if overdue:
        windows.add(waiting(windows, overdue))
    lines: defaultdict[LatencyKey, list[LatencyKey]] = defaultdict(list)
    for key in windows.latencies.seen():
        lines[replace(key, model=ALL_MODELS)].append(key)
    lines = defaultdict(list, {line: members for line, members in lines.items() if len(members) > 1})
    lines.update({key: [key] for key in windows.latencies.seen()})
    expected = [
        alone(windows, lines[line], line, window_s, overdue)
        for line in sorted(lines)
        for window_s in windows.plan.service_windows_s(line.service)
    ]
    assert list(percentiles(windows)) == expected


@given(
    st.lists(st.tuples(st.sampled_from("ab"), usual_latencies_s), min_size=1, max_size=60),
    st.sampled_from([Layout(5), Layout(3)]),
)
@settings(deadline=None)
def test_each_percentile_lies_within_its_error_of_the_sorted_values(
    found: list[tuple[str, float]], layout: Layout
) -> None:
    """Also that over all models, whose histograms are added."""
    windows = scene.windows()
    came = tuple(scene.values(NOW_S, [value], model=model, layout=layout) for model, value in found)
    windows.add(Deltas(latencies=came))
    by_model: dict[str, list[float]] = {"a": [], "b": [], ALL_MODELS: []}
    for model, value in found:
        by_model[model].append(value)
        by_model[ALL_MODELS].append(value)
    for row in percentiles(windows):
        values = sorted(by_model[row.model])
        told = (row.p50, row.p90, row.p95, row.p99, row.p999, row.max)
        assert row.count == len(values)
        assert row.rel_error is not None
        for share, estimate in zip(SHARES, told, strict=True):
            exact = values[rank(share, len(values)) - 1]
            assert estimate is not None
            assert abs(estimate - exact) <= (row.rel_error + 1e-9) * exact


def test_waits_that_have_left_the_window_leave_its_percentiles_alone() -> None:
    windows = scene.windows()
    windows.add(Deltas(latencies=(scene.values(NOW_S - 1000, [9.0], censored=True), scene.values(NOW_S, [0.1] * 9))))
    by_window = {row.window_s: row for row in percentiles(windows)}
    assert (by_window[300].censored, by_window[300].max) == (0, pytest.approx(0.1, rel=0.011))
    assert (by_window[1800].censored, by_window[1800].max) == (1, None)


def test_those_that_wait_count_for_all_models_too() -> None:
    windows = scene.windows()
    windows.add(Deltas(latencies=tuple(scene.values(NOW_S, [0.1] * 9, model=model) for model in "ab")))
    windows.add(scene.live(NOW_S - 60, NOW_S))
    windows.add(waiting(windows, 2))
    by_model = {row.model: row for row in percentiles(windows) if row.window_s == 300}
    assert {model: (row.count, row.censored) for model, row in by_model.items()} == {
        "a": (9, 2),
        "b": (9, 0),
        ALL_MODELS: (18, 2),
    }
    assert by_model[ALL_MODELS].at_least == 0.5
