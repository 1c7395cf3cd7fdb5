"""An engine's own histograms of latency, read off a page of its metrics.

A series of buckets becomes one `EdgeBuckets`: the engine's own edges in seconds, and the count between each two of
them since the engine began. What contradicts itself (counts that fall along the edges, or are no whole numbers) is
none, and costs nothing but itself. Of series that differ in the engine's duplicate labels alone, the one with the most
values is the true one; ranks stay apart, since each resets by itself.
"""

import math
from collections.abc import Iterable, Iterator
from itertools import pairwise
from typing import NamedTuple

from sidecar.counting.histogram import EdgeBuckets
from sidecar.engine.engine_requests import Histogram, Told
from sidecar.engine.engines import Engine
from sidecar.engine.metrics_text import Labels, Page
from slo.signals import Metric

Apart = tuple[tuple[str, str], ...]
MAX_COUNT = 1 << 48
_EDGE = "le"


class SeriesKey(NamedTuple):
    """One series of the page: our metric, its name there, its model (None where it names none), and all its labels."""

    metric: Metric
    name: str
    model: str | None
    apart: Apart


def read_histograms(page: Page, engine: Engine, told: Told) -> dict[SeriesKey, EdgeBuckets]:
    """Every series of the histograms that `told` names, cumulative since the engine began."""
    found: dict[SeriesKey, EdgeBuckets] = {}
    running = _models(page, engine)
    for row, name in chosen(page, told):
        for key, buckets in _series(page, engine, row, name):
            foreign = row.of_running and running and key.model not in running
            if not foreign and (key not in found or found[key].count < buckets.count):
                found[key] = buckets
    return found


def chosen(page: Page, told: Told) -> Iterator[tuple[Histogram, str]]:
    """Of each metric the row and the name that the page has; the first of several."""
    done: set[Metric] = set()
    for row in told.histograms:
        name = next((name for name in row.names if f"{name}_bucket" in page), None)
        if name is not None and row.metric not in done:
            done.add(row.metric)
            yield row, name


def model_of(labels: Labels, engine: Engine) -> str | None:
    """The model that a series names."""
    return next((labels[key] for key in engine.model_labels if labels.get(key)), None)


def apart_of(labels: Iterable[tuple[str, str]], engine: Engine) -> Apart:
    """What tells a series from others of its name; what only repeats it is left out."""
    return tuple(sorted(item for item in labels if item[0] not in engine.duplicate_labels))


def _models(page: Page, engine: Engine) -> frozenset[str | None]:
    names = (name for series in engine.running for name in series.names)
    return frozenset(model_of(sample.labels, engine) for name in names for sample in page.samples.get(name, ()))


def _series(page: Page, engine: Engine, row: Histogram, name: str) -> Iterator[tuple[SeriesKey, EdgeBuckets]]:
    """Each series of a histogram that is whole; its duplicates too."""
    edges: dict[frozenset[tuple[str, str]], dict[float, float]] = {}
    for sample in page.samples[f"{name}_bucket"]:
        labels = frozenset(item for item in sample.labels.items() if item[0] != _EDGE)
        edge = _number(sample.labels.get(_EDGE, ""))
        if edge is not None and labels.isdisjoint(row.without):
            edges.setdefault(labels, {})[edge] = sample.value
    sums, counts = (
        {frozenset(sample.labels.items()): sample.value for sample in page.samples.get(f"{name}_{part}", ())}
        for part in ("sum", "count")
    )
    for labels, found in edges.items():
        buckets = _buckets(found, counts.get(labels), sums.get(labels), per_s=row.per_s)
        if buckets is not None:
            yield SeriesKey(row.metric, name, model_of(dict(labels), engine), apart_of(labels, engine)), buckets


def _number(text: str) -> float | None:
    try:
        value = float(text)
    except ValueError:
        return None
    return value if value >= 0 else None


def _buckets(edges: dict[float, float], count: float | None, total: float | None, *, per_s: int) -> EdgeBuckets | None:
    """The counts between the edges of a cumulative histogram; None when it contradicts itself."""
    last = edges.get(math.inf, count)
    bounds = sorted(edge for edge in edges if edge < math.inf)
    if last is None or not bounds:
        return None
    reached = [*(edges[bound] for bound in bounds), last]
    counts = [reached[0], *(after - before for before, after in pairwise(reached))]
    if last > MAX_COUNT or any(each < 0 or not each.is_integer() for each in counts):
        return None
    told = None if total is None or total < 0 else total / per_s
    return EdgeBuckets(tuple(bound / per_s for bound in bounds), tuple(map(int, counts)), told)


def increase(before: EdgeBuckets | None, now: EdgeBuckets) -> EdgeBuckets | None:
    """What came to a series between two pages; one that began anew counts from 0.

    None when a line of it was lost on the way (an edge or the sum is missing, nothing has fallen): then the page says
    nothing of it, and the next one says all.
    """
    if before is None or now.count < before.count:
        return now
    if set(now.bounds) < set(before.bounds) or (now.sum is None and before.sum is not None):
        return None
    if now.bounds != before.bounds or any(n < b for n, b in zip(now.counts, before.counts, strict=True)):
        return now
    grown = tuple(n - b for n, b in zip(now.counts, before.counts, strict=True))
    total = None if now.sum is None or before.sum is None else max(now.sum - before.sum, 0.0)
    return EdgeBuckets(now.bounds, grown, total)


def added(many: Iterable[EdgeBuckets]) -> EdgeBuckets:
    """All values of several, at the edges that all have: counts at an edge are exact, so joining two buckets is."""
    first, *others = many
    shared = set(first.bounds).intersection(*(one.bounds for one in others))
    bounds = tuple(bound for bound in first.bounds if bound in shared)
    parts = [at_edges(one, bounds) for one in (first, *others)]
    sums = [one.sum for one in parts if one.sum is not None]
    counts = tuple(map(sum, zip(*(one.counts for one in parts), strict=True)))
    return EdgeBuckets(bounds, counts, sum(sums) if len(sums) == len(parts) else None)


def at_edges(one: EdgeBuckets, bounds: tuple[float, ...]) -> EdgeBuckets:
    """The same values at fewer edges, all of which it has."""
    if bounds == one.bounds:
        return one
    reached = dict(one.cumulative())
    counts = (reached[bound] for bound in (*bounds, math.inf))
    return EdgeBuckets(bounds, tuple(after - before for before, after in pairwise((0, *counts))), one.sum)


def without_zeros(one: EdgeBuckets, zeros: int) -> EdgeBuckets:
    """The same without `zeros` values of 0, as far as the first bucket holds them."""
    first, *others = one.counts
    return EdgeBuckets(one.bounds, (max(first - zeros, 0), *others), one.sum)


def within(one: EdgeBuckets, threshold_s: float) -> int | None:
    """How many values are at or under a threshold; None unless it is an edge."""
    return dict(one.cumulative()).get(threshold_s) if threshold_s in one.bounds else None
