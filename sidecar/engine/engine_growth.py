"""What came to an engine's requests between two pages of its metrics.

The first page of an engine is where counting begins: what it counted before nobody was there to judge. A series that
appears later was born since and counts from 0, as does one that fell, and every one of a process that began anew. A
series that a page lacks is waited for: what comes with its return counts then. Increases are taken series by series
and only then added up, so that the restart of one rank hides nothing of another.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import TypeVar

from sidecar.counting.histogram import EdgeBuckets
from sidecar.engine.engine_counts import CountKey, read_counts, read_zeros, started_s
from sidecar.engine.engine_histograms import SeriesKey, added, increase, read_histograms, without_zeros
from sidecar.engine.engine_requests import TOLD, Pairs
from sidecar.engine.engines import Engine
from sidecar.engine.metrics_text import Page
from slo.signals import Metric

MAX_SERIES = 4096
_RESTART_S = 1.0  # a start that moved by less is the same one, told with another rounding

Of = tuple[Metric, str | None]
"""A metric of a model; None where the engine names none."""
CountOf = tuple[Metric, Pairs, str | None]
"""A counter at its attribute, of a model."""
K = TypeVar("K")
V = TypeVar("V")


@dataclass(frozen=True, slots=True)
class Growth:
    """The increase between two pages. A histogram stands here as soon as the page shows it, empty ones too."""

    histograms: dict[Of, EdgeBuckets] = field(default_factory=dict)
    counts: dict[CountOf, int] = field(default_factory=dict)


class Grower:
    """Remembers the last page of one engine, series by series; at most `MAX_SERIES` of each kind."""

    def __init__(self) -> None:
        self._forget()

    def _forget(self) -> None:
        self._engine = ""
        self._started_s: float | None = None
        self._histograms: dict[SeriesKey, EdgeBuckets] = {}
        self._counts: dict[CountKey, int] = {}
        self._zeros: dict[CountKey, int] = {}

    def page(self, page: Page, engine: Engine) -> Growth:
        """What came since the last page; nothing when this one is the first of its engine."""
        told = TOLD[engine.name]
        histograms, counts = read_histograms(page, engine, told), read_counts(page, engine, told)
        if not histograms and not counts and not any(name in page for name in engine.probe):
            return Growth()  # a page that shows nothing of the engine: where it counted from is still not known
        if engine.name != self._engine:
            self._forget()
        first, self._engine = not self._engine, engine.name
        if self._began_anew(started_s(page)):
            self._histograms, self._counts, self._zeros = {}, {}, {}
        zeros = self._counted(self._zeros, read_zeros(page, engine, told), first=first)
        return Growth(self._filled(histograms, zeros, first=first), self._counted(self._counts, counts, first=first))

    def _began_anew(self, now_s: float | None) -> bool:
        before_s, self._started_s = self._started_s, now_s if now_s is not None else self._started_s
        return now_s is not None and before_s is not None and abs(now_s - before_s) >= _RESTART_S

    def _filled(
        self, read: Mapping[SeriesKey, EdgeBuckets], zeros: Mapping[CountOf, int], *, first: bool
    ) -> dict[Of, EdgeBuckets]:
        grown: dict[Of, list[EdgeBuckets]] = {}
        for key, now in _known(self._histograms, read):
            more = increase(now if first else self._histograms.get(key), now)
            if more is not None:
                self._histograms[key] = now
                grown.setdefault((key.metric, key.model), []).append(more)
        return {
            of: without_zeros(whole, zeros.get((of[0], (), of[1]), 0))
            for of, parts in grown.items()
            if (whole := added(parts)).bounds
        }

    def _counted(self, held: dict[CountKey, int], read: Mapping[CountKey, int], *, first: bool) -> dict[CountOf, int]:
        grown: dict[CountOf, int] = {}
        for key, now in _known(held, read):
            before = now if first else held.get(key, 0)
            held[key] = now
            at = key.metric, key.attributes, key.model
            grown[at] = grown.get(at, 0) + (now - before if now >= before else now)
        return grown


def _known(held: Mapping[K, object], read: Mapping[K, V]) -> Iterator[tuple[K, V]]:
    """The series that are remembered, and new ones while there is room."""
    for key, value in read.items():
        if key in held or len(held) < MAX_SERIES:
            yield key, value
