"""Between the collector's values and the rows of its tables: pure, in both directions.

Rows are tuples in the order of the table's columns (`schema`). Bins are JSON text rather than a blob: any SQL can read
them, they are shorter than eight bytes a bin, and reading one back costs microseconds.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import repeat
from typing import Any

import numpy as np
import orjson

from collector.storage.upsert import Row
from collector.values import bins
from collector.values.alerting import Alert, AlertKey
from collector.values.columns import or_none
from collector.values.deltas import (
    CounterRow,
    GaugeRow,
    InstanceRow,
    KnownRow,
    LatencyKey,
    LatencyRow,
    SeriesKey,
    SloRow,
    StreamRow,
    latency_rows,
)
from collector.values.histogram import Counts, Facts, Histogram, Layout, histogram, of_plain, plain
from collector.values.histograms import Cells, Histograms, side_by_side

_COMMA, _ZERO = b",0"
_LARGEST_DIGIT = 9

Stored = Any
"""A row as SQLAlchemy gives it: its columns are attributes."""


def series(key: SeriesKey) -> Row:
    of = key.latency
    labels = of.environment, of.service, of.model, of.signal, of.source, key.instance
    return (key.id, *labels, key.layout.text, int(key.censored))


def series_key(row: Stored) -> SeriesKey:
    latency = LatencyKey(row.environment, row.service, row.model, row.signal, row.source)
    return SeriesKey(latency, row.instance, Layout.parse(row.layout), bool(row.censored))


def rollups(rows: Sequence[LatencyRow], *, step_s: int) -> list[Row]:
    """The rows of histograms. There are thousands at once, so they stay columns until the last moment."""
    held = latency_rows(rows)
    if not held:
        return []
    of = held.histograms
    scales = [layout.scale for layout in of.layout_at()]
    place = repeat(step_s, len(held)), held.starts_s.tolist(), held.ids.tolist()
    facts = of.totals.tolist(), of.sums.tolist(), or_none(of.mins), or_none(of.maxs)
    return list(zip(*place, *facts, scales, of.zero_counts.tolist(), of.offsets.tolist(), _bins(of), strict=True))


def _bins(of: Histograms) -> list[str]:
    """The bins of each, as JSON. Most counts have one digit: all of a body are written as if they had, a comma and
    a digit each, and the histograms that have longer ones once more."""
    digits = np.full((of.counts.size, 2), _COMMA, dtype=np.uint8)
    digits[:, 1] = of.counts.astype(np.uint8)  # a longer one is cut here, and written below
    digits[:, 1] += _ZERO
    found = _listed(digits.tobytes(), 2 * of.lows, 2 * of.highs)
    longer = np.flatnonzero(of.counts > _LARGEST_DIGIT)
    places = np.flatnonzero(np.searchsorted(longer, of.lows) < np.searchsorted(longer, of.highs))
    if places.size:  # a longer one may also lie in the share of none of them, as of a point that was refused
        cells = np.concatenate([of.counts[low:high] for low, high in _edges(of.lows[places], of.highs[places])])
        text, begins = _written(cells)
        sizes = of.highs[places] - of.lows[places]
        edges = begins[np.cumsum(sizes) - sizes], begins[np.cumsum(sizes)]
        for place, one in zip(places.tolist(), _listed(text, *edges), strict=True):
            found[place] = one
    return found


def _written(counts: Cells) -> tuple[bytes, Counts]:
    """Counts in decimal, a comma before each, and where each begins, and at last where all end."""
    longest = len(str(int(counts.max(initial=0))))
    lengths = np.full(counts.size, 2)
    for place in range(1, longest):
        lengths += counts >= 10**place
    begins = np.concatenate(([0], np.cumsum(lengths)))
    text, at = np.full(begins[-1], _COMMA, dtype=np.uint8), begins[1:] - 1
    rest = counts.astype(np.min_scalar_type(10**longest))
    for _ in range(longest):
        tenth = rest // 10
        text[at] = _ZERO + (rest - 10 * tenth)
        more = np.flatnonzero(tenth)
        rest, at = tenth[more], at[more] - 1
    return text.tobytes(), begins


def _listed(text: bytes, begins: Counts, ends: Counts) -> list[str]:
    """Parts of a text as lists of JSON; each of them begins with a comma, or is empty."""
    decoded = text.decode("latin-1")
    return [f"[{decoded[begin:end]}]" for begin, end in _edges(begins + 1, ends)]


def _edges(begins: Counts, ends: Counts) -> Iterator[tuple[int, int]]:
    return zip(begins.tolist(), ends.tolist(), strict=True)


def rollup_histogram(row: Stored, layout: Layout) -> Histogram:
    counts = np.array(orjson.loads(row.bins), dtype=np.int64)
    facts = Facts(row.sum, row.min, row.max)
    return histogram(layout, row.bin_offset, counts, zero_count=row.zero_count, facts=facts)


def rollup_histograms(several: Iterable[Row], layouts: tuple[Layout, ...], layout_of: Counts) -> Histograms:
    """The histograms of many rows, of which each has one of the layouts."""
    columns = list(zip(*several, strict=True))
    if not columns:
        return side_by_side(())
    *_, counts, sums, mins, maxs, _, zeros, offsets, texts = columns
    totals, zero_counts, first_bins = (np.array(column, dtype=np.int64) for column in (counts, zeros, offsets))
    facts = (np.array(column, dtype=np.float64) for column in (sums, mins, maxs))  # NULL becomes NaN
    cells = bins.runs(bins.parsed(texts, first_bins, zero_counts))
    return Histograms(layouts, layout_of, zero_counts, *cells, totals, *facts)


def slo_count(row: SloRow, *, step_s: int) -> Row:
    key = (row.environment, row.service, row.model, row.objective, row.objective_hash)
    return (step_s, row.start_s, *key, row.good, row.bad)


def gauge(row: GaugeRow, *, step_s: int) -> Row:
    key = (row.environment, row.service, row.model, row.instance, row.name, row.attribute)
    values = (row.min, row.max, row.sum / row.samples, row.last, row.last_ns, row.samples)
    return (step_s, row.start_s, *key, *values)


def counter(row: CounterRow, *, step_s: int) -> Row:
    key = (row.environment, row.service, row.model, row.instance, row.source, row.name, _json(dict(row.attributes)))
    return (step_s, row.start_s, *key, row.value)


def known(row: KnownRow, *, step_s: int) -> Row:
    return (step_s, row.start_s, row.environment, row.service)


def instance(row: InstanceRow) -> Row:
    key = (row.environment, row.service, row.instance, row.source)
    return (*key, row.first_s, row.last_s, int(row.periodic))


def stream(row: StreamRow, *, at_s: int) -> Row:
    value = plain(row.value) if isinstance(row.value, Histogram) else row.value
    return (row.stream, row.start_ns, row.end_ns, orjson.dumps(value).decode(), at_s)


def stream_row(row: Stored) -> StreamRow:
    value = orjson.loads(row.value)
    return StreamRow(row.stream, row.start_ns, row.end_ns, of_plain(value) if isinstance(value, list) else value)


def alert(one: Alert) -> Row:
    labels = dict(one.labels)
    key = one.key
    names = (key.environment, key.service, key.name, key.model, key.objective, key.tier)
    state = (one.state, one.since_s, labels.get("severity", ""), labels.get("notify", ""), one.fired_s)
    return (*names, *state, _json(labels), _json(dict(one.annotations)))


def alert_of(row: Stored) -> Alert:
    """The alert of a row of `alert`, or as it was at a transition, of one of `alert_event`."""
    key = AlertKey(
        name=row.name,
        environment=row.environment,
        service=row.service,
        model=row.model,
        objective=row.objective,
        tier=row.tier,
    )
    return Alert(
        key=key,
        state=row.state,
        since_s=row.at_s if hasattr(row, "at_s") else row.since_s,
        fired_s=row.fired_s,
        labels=tuple(sorted(orjson.loads(row.labels).items())),
        annotations=tuple(sorted(orjson.loads(row.annotations).items())),
    )


def alert_event(one: Alert) -> Row:
    key = one.key
    names = (key.environment, key.service, key.name, key.model, key.objective, key.tier)
    return (one.since_s, *names, one.state, one.fired_s, _json(dict(one.labels)), _json(dict(one.annotations)))


def _json(values: Mapping[str, str]) -> str:
    return orjson.dumps(values, option=orjson.OPT_SORT_KEYS).decode()
