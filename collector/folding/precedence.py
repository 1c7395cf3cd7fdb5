"""A request that comes both as a span and in a histogram counts once: the histogram wins.

A foreign service may send `gen_ai.latency.*` spans, histograms of the same latencies, or both. For each (environment,
service, model, latency) there is one moment, fixed when the first histogram is seen: spans that end up to it count, and
so do histogram intervals that begin at it or later; what lies on the other side is ignored by name. Where no span was
counted before, the moment is the beginning of time and spans never count. Where spans were, it is the end of that first
interval, or of the last span counted if that is later, so that the spans keep what they have already told; an interval
that the moment cuts is left to them, and what of it lies behind the moment is lost, once. When no histogram has come
for as long as streams are remembered, spans count again.

A model that is not named may be any: a span without one yields to a histogram of any model of its service, and a
histogram without one makes all spans of its service yield.

What is remembered are rows beside those of cumulative streams, committed and read back with them: one for the spans
(`end_ns` of the last counted), one for the histograms (`start_ns` is the moment), of each model and of all together.
"""

import functools
import hashlib
from collections.abc import Callable
from dataclasses import dataclass

from collector.values.deltas import StreamRow
from collector.values.measurement import Resource
from slo.signals import ALL_MODELS, UNKNOWN_MODEL

Recall = Callable[[str], StreamRow | None]
Remember = Callable[[StreamRow], None]


@dataclass(frozen=True, slots=True)
class _Rows:
    """The identities of the rows of one kind, spans or histograms: where a model's is kept, and which speak of it."""

    kept: tuple[str, str]
    asked: tuple[str, ...]


class Precedence:
    """The rule, on a memory of rows by their identity."""

    def __init__(self, recall: Recall, remember: Remember) -> None:
        self._recall = recall
        self._remember = remember

    def spans_end_ns(self, of: Resource, model: str, signal: str) -> int | None:
        """The moment up to which spans count; None when they count without an end."""
        _, histograms = _rows(of.environment, of.service, signal, model)
        rows = [self._recall(one) for one in histograms.asked]
        return min((row.start_ns for row in rows if row is not None), default=None)

    def spans_counted(self, of: Resource, model: str, signal: str, *, end_ns: int) -> None:
        """Remember that spans which end up to then were counted."""
        spans, _ = _rows(of.environment, of.service, signal, model)
        self._move(spans, 0, end_ns)

    def histogram_counts(self, of: Resource, model: str, signal: str, *, start_ns: int, end_ns: int) -> bool:
        """Whether a histogram over (start_ns, end_ns] counts; `start_ns` 0 when it is not known. Remembers it."""
        spans, histograms = _rows(of.environment, of.service, signal, model)
        known = self._recall(histograms.kept[0])
        if known is None:
            moment_ns = self._moment_ns(spans, start_ns=start_ns, end_ns=end_ns)
        else:
            moment_ns = known.start_ns
            start_ns = start_ns or min(known.end_ns, end_ns)
        if known is None or end_ns > known.end_ns:
            self._move(histograms, moment_ns, end_ns)
        return start_ns >= moment_ns and end_ns > moment_ns

    def _moment_ns(self, spans: _Rows, *, start_ns: int, end_ns: int) -> int:
        rows = [self._recall(one) for one in spans.asked]
        told_ns = max((row.end_ns for row in rows if row is not None), default=0)
        return told_ns if told_ns <= start_ns else max(told_ns, end_ns)

    def _move(self, rows: _Rows, start_ns: int, end_ns: int) -> None:
        """Remember `end_ns` if it is the latest; the `start_ns` that came first stays."""
        for identity in rows.kept:
            known = self._recall(identity)
            if known is None:
                self._remember(StreamRow(identity, start_ns, end_ns, 0.0))
            elif end_ns > known.end_ns:
                self._remember(StreamRow(identity, known.start_ns, end_ns, 0.0))


@functools.lru_cache(maxsize=4_096)
def _rows(environment: str, service: str, signal: str, model: str) -> tuple[_Rows, _Rows]:
    """The rows of spans and of histograms that concern one model."""
    others = (ALL_MODELS,) if model == UNKNOWN_MODEL else (model, UNKNOWN_MODEL)

    def identity(kind: str, one: str) -> str:
        parts = ("precedence", kind, environment, service, signal, one)
        return hashlib.blake2b(repr(parts).encode(), digest_size=16).hexdigest()

    spans, histograms = (
        _Rows((identity(kind, model), identity(kind, ALL_MODELS)), tuple(identity(kind, one) for one in others))
        for kind in ("span", "histogram")
    )
    return spans, histograms
