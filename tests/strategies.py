"""Shared Hypothesis strategies: latencies, histograms, rows."""

from hypothesis import strategies as st

from collector.values.deltas import Deltas, KnownRow, LatencyKey, LatencyRow, SeriesKey, SloRow
from collector.values.histogram import Histogram, Layout, from_values

BOUNDS = (0.1, 0.25, 0.5, 1.0, 2.5)

latencies_s = st.one_of(
    st.just(0.0),
    st.floats(1e-4, 1e4, allow_nan=False),
    st.sampled_from([2.0**power for power in range(-13, 13)]),
    st.floats(1e-300, 1e300, allow_nan=False),
)
"""Latencies in seconds: zeros, usual ones, edges of buckets, absurd ones."""

usual_latencies_s = st.floats(1e-3, 100, allow_nan=False)


def value_lists(max_size: int = 30) -> st.SearchStrategy[list[float]]:
    return st.lists(latencies_s, max_size=max_size)


scales = st.integers(-3, 8)


@st.composite
def exponential_histograms(draw: st.DrawFn) -> Histogram:
    """Histograms of some values at some scale."""
    return from_values(draw(value_lists()), Layout(draw(scales)))


@st.composite
def explicit_histograms(draw: st.DrawFn) -> Histogram:
    return from_values(draw(value_lists()), Layout(None, BOUNDS))


models = st.sampled_from(["a", "b", "other"])


@st.composite
def latency_rows(draw: st.DrawFn, *, until_s: int, step_s: int = 10) -> LatencyRow:
    """A few values of one of a handful of series, in a step that starts before `until_s`."""
    key = LatencyKey("", "chat", draw(models), "ttft", draw(st.sampled_from(["proxy", "engine"])))
    layout = draw(st.sampled_from([Layout(5), Layout(2), Layout(None, BOUNDS)]))
    values = draw(st.lists(usual_latencies_s, min_size=1, max_size=4))
    start_s = draw(st.integers(0, (until_s - 1) // step_s)) * step_s
    return LatencyRow(SeriesKey(key, draw(st.sampled_from(["i1", "i2"])), layout), start_s, from_values(values, layout))


@st.composite
def slo_rows(draw: st.DrawFn, *, until_s: int, step_s: int = 10) -> SloRow:
    start_s = draw(st.integers(0, (until_s - 1) // step_s)) * step_s
    good, bad = draw(st.integers(0, 20)), draw(st.integers(0, 5))
    return SloRow("", "chat", draw(models), "ttft", "abc", start_s, good, bad)


@st.composite
def deltas(draw: st.DrawFn, *, until_s: int, step_s: int = 10) -> Deltas:
    """Rows as a store would commit them, of any time before `until_s`."""
    latencies = draw(st.lists(latency_rows(until_s=until_s, step_s=step_s), max_size=3))
    slo = draw(st.lists(slo_rows(until_s=until_s, step_s=step_s), max_size=3))
    known = tuple(KnownRow("", "chat", row.start_s) for row in slo)
    return Deltas(latencies=tuple(latencies), slo=tuple(slo), known=known)
