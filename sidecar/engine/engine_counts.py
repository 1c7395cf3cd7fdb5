"""An engine's own counters, read off a page of its metrics: tokens, ended requests by outcome, and values of 0.

Whole numbers since the engine began, by series, since each resets by itself. Of series that differ in the engine's
duplicate labels alone, the highest is the true one. A value that `engine_requests` gives no meaning to is left out.
"""

from collections.abc import Iterator
from typing import NamedTuple

from sidecar.engine.engine_histograms import MAX_COUNT, Apart, apart_of, chosen, model_of
from sidecar.engine.engine_requests import ATTRIBUTE, STARTED, Count, Pairs, Told
from sidecar.engine.engines import Engine, Series
from sidecar.engine.metrics_text import Page, Sample
from slo.signals import Metric


class CountKey(NamedTuple):
    """One series of the page: our metric, the attribute it counts under (none for values of 0), its model, its name
    and labels."""

    metric: Metric
    attributes: Pairs
    model: str | None
    name: str
    apart: Apart


def read_counts(page: Page, engine: Engine, told: Told) -> dict[CountKey, int]:
    """Every counter that `told` names."""
    found: dict[CountKey, int] = {}
    for row in told.counts:
        for name, sample in _samples(page, row.at):
            value = _meaning(row, sample)
            if value is not None:
                key = _key(row.metric, ((ATTRIBUTE[row.metric], value),), name, sample, engine)
                found[key] = max(found.get(key, 0), int(sample.value))
    return found


def read_zeros(page: Page, engine: Engine, told: Told) -> dict[CountKey, int]:
    """How many values of 0 in a histogram stand for requests without a value."""
    found: dict[CountKey, int] = {}
    for histogram, _ in chosen(page, told):
        for name, sample in _samples(page, histogram.zeros):
            key = _key(histogram.metric, (), name, sample, engine)
            found[key] = max(found.get(key, 0), int(sample.value))
    return found


def started_s(page: Page) -> float | None:
    """When the process behind the page began; None when it does not tell, or several do."""
    told = page.samples.get(STARTED, ())
    return told[0].value if len(told) == 1 else None


def _samples(page: Page, candidates: tuple[Series, ...]) -> Iterator[tuple[str, Sample]]:
    """The samples of the first candidate that the page has."""
    for series in candidates:
        name = next((name for name in series.names if name in page), "")
        found = [
            sample
            for sample in page.samples.get(name, ())
            if 0 <= sample.value <= MAX_COUNT and all(sample.labels.get(key) == value for key, value in series.match)
        ]
        if found:
            yield from ((name, sample) for sample in found)
            return


def _key(metric: Metric, attributes: Pairs, name: str, sample: Sample, engine: Engine) -> CountKey:
    return CountKey(metric, attributes, model_of(sample.labels, engine), name, apart_of(sample.labels.items(), engine))


def _meaning(row: Count, sample: Sample) -> str | None:
    if not row.label:
        return row.value
    text = sample.labels.get(row.label, "")
    return next((value for begins, value in row.values if text.startswith(begins)), None)
