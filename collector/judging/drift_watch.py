"""Which latencies are watched for drift, and what is found: evaluations in, rows of `drift` out. Pure.

Watched is the p95 over `WINDOW_S`, once a minute, of at most `MAX_WATCHED` latencies: those with the most requests in
the last day, looked for anew each hour. One that is watched stays so while anybody asks for it. What all models of a
service do together is not watched: another share of one of them would look like drift, and so would it in `other`.

A minute burns when a burn alert fires on that signal, of that model or of all of them. A drift of the time to first
token is told apart by prompt lengths (`mix`) once a whole window lies behind its beginning.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace

from collector.judging.drift import ACCEPTED_S, Detector, Drift, Minute
from collector.judging.evaluate import Evaluation
from collector.judging.mix import Stratum, parts
from collector.judging.percentiles import PercentileRow
from collector.values.alerting import Alert
from collector.values.columns import Columns
from collector.values.verdicts import DriftKind, DriftRow
from collector.windowing.latencies import STRATUM_WINDOWS_S
from collector.windowing.windows import LATENCY_SIGNALS
from slo.quantity import HOUR_S, MINUTE_S
from slo.signals import ALL_MODELS, OTHER_MODEL, SIGNALS, TTFT, TTFT_STRATA

WINDOW_S, LONG_WINDOW_S, DAY_S = STRATUM_WINDOWS_S
MAX_WATCHED = 200
MIN_TOLD_APART = 100
"""Requests of one prompt length before a drift, and of all together in a window of it, to tell whose doing it is."""
SIGNAL_OF_ALERT = {signal.alert: signal.name for signal in SIGNALS.values()}

Key = tuple[str, str, str, str, str]
"""Environment, service, model, signal, source: a latency."""


@dataclass(slots=True)
class _Watched:
    """One latency: its detector, the row of its open drift, and the day's p95 of each prompt length before that, taken
    down once an hour while there is none."""

    detector: Detector
    row: DriftRow | None = None
    before: Mapping[str, float] = field(default_factory=dict)
    before_s: int = 0


class DriftWatch:
    """The watch over all of them; drifts that are open in `rows` go on."""

    def __init__(self, rows: Iterable[DriftRow] = ()) -> None:
        self._resumed: dict[Key, DriftRow] = {row.latency: row for row in rows}
        self._watched: dict[Key, _Watched] = {}
        self._unsaved: dict[tuple[Key, int], DriftRow] = {}
        self._chosen_s = self._seen_s = 0

    @property
    def open(self) -> tuple[DriftRow, ...]:
        """The drifts that last, sorted by latency."""
        rows = {key: one.row for key, one in self._watched.items() if one.row is not None} | self._resumed
        return tuple(rows[key] for key in sorted(rows))

    @property
    def unsaved(self) -> tuple[DriftRow, ...]:
        """The rows that changed since they were last saved."""
        return tuple(self._unsaved[at] for at in sorted(self._unsaved))

    def saved(self, rows: Iterable[DriftRow]) -> None:
        """These were kept as they are."""
        for row in rows:
            if self._unsaved.get((row.latency, row.since_s)) is row:
                del self._unsaved[row.latency, row.since_s]

    def wanted(self, evaluation: Evaluation) -> dict[Key, Detector]:
        """Detectors for latencies that are to be watched from now on, once they have learnt what there is to learn
        (`admit`). Most of the time none."""
        if evaluation.at_s // HOUR_S == self._chosen_s // HOUR_S:
            return {}
        self._chosen_s = evaluation.at_s
        busy = _busy(evaluation.percentiles)
        self._watched = {key: one for key, one in self._watched.items() if key in busy or one.row is not None}
        fresh = [key for key in busy if key not in self._watched][: MAX_WATCHED - len(self._watched)]
        series = len(self._watched) + len(fresh)
        return {key: Detector(series=series, phase_s=MINUTE_S * number) for number, key in enumerate(fresh)}

    def forgo(self) -> None:
        """Those wanted could not learn: they are wanted again at the next evaluation."""
        self._chosen_s = 0

    def admit(self, detectors: Mapping[Key, Detector]) -> None:
        """Watch these."""
        for key, detector in detectors.items():
            row = self._resumed.pop(key, None)
            if row is not None:
                detector.resume(Drift(row.since_s, row.before_s, row.effect, row.count))
            self._watched[key] = _Watched(detector, row)

    def observe(self, evaluation: Evaluation) -> None:
        """Judge what the first evaluation of each minute says."""
        if evaluation.at_s // MINUTE_S <= self._seen_s // MINUTE_S:
            return
        self._seen_s = evaluation.at_s
        self._end_unseen(evaluation.at_s)
        levels = _Levels(evaluation)
        burning = set(_burning(evaluation.alerts))
        for key, one in self._watched.items():
            value_s, count = levels.at(key, WINDOW_S)
            if value_s is None:
                continue
            burns = any((*key[:2], model, key[3]) in burning for model in (key[2], ALL_MODELS))
            minute = Minute(evaluation.at_s, value_s, requests_a_minute(count), burns)
            self._follow(key, one, one.detector.watch(minute), levels)

    def _follow(self, key: Key, one: _Watched, drift: Drift | None, levels: "_Levels") -> None:
        """Have the row say what the detector found."""
        if drift is None:
            self._end(one.row, levels.at_s)
            one.row = None
            if levels.at_s - one.before_s >= HOUR_S:
                one.before, one.before_s = _known(levels.by_prompt(key, DAY_S)), levels.at_s
            return
        kind: DriftKind = "unknown" if one.row is None else one.row.kind
        if kind == "unknown":
            kind = _kind(drift, one.before, levels, key)
        one.row = DriftRow(drift.since_s, *key, drift.effect, drift.before, drift.after, drift.count, kind)
        self._unsaved[key, drift.since_s] = one.row

    def _end_unseen(self, at_s: int) -> None:
        """End the drifts of which nothing is heard any more once they would be the new normal."""
        over = [key for key, row in self._resumed.items() if at_s - row.since_s > ACCEPTED_S]
        for key in over:
            self._end(self._resumed.pop(key), at_s)
        unheard = [
            key for key, one in self._watched.items() if one.row and at_s - one.row.since_s > ACCEPTED_S + HOUR_S
        ]
        for key in unheard:
            self._end(self._watched.pop(key).row, at_s)

    def _end(self, row: DriftRow | None, at_s: int) -> None:
        if row is not None:
            self._unsaved[row.latency, row.since_s] = replace(row, until_s=at_s)


def requests_a_minute(count: int) -> int:
    """Of so many in a window: each counts once, though five windows hold it."""
    return count * MINUTE_S // WINDOW_S


class _Levels:
    """The p95 and the requests of each latency over the windows of one evaluation."""

    def __init__(self, evaluation: Evaluation) -> None:
        self.at_s = evaluation.at_s
        self._rows = evaluation.percentiles
        self._values, self._counts = self._rows.column("p95"), self._rows.column("count")
        self._places: dict[int, dict[Key, int]] = {}

    def at(self, key: Key, window_s: int) -> tuple[float | None, int]:
        """The p95, None where it is not known, and the requests that it is of."""
        if window_s not in self._places:
            self._places[window_s] = _places(self._rows, window_s)
        place = self._places[window_s].get(key)
        return (None, 0) if place is None else (self._values[place], self._counts[place])

    def by_prompt(self, key: Key, window_s: int) -> dict[str, tuple[float | None, int]]:
        """The same of each class of prompt lengths; of none where the latency is not told by them."""
        signals = TTFT_STRATA.values() if key[3] == TTFT.sql else ()
        return {signal: self.at((*key[:3], signal, key[4]), window_s) for signal in signals}


def _places(rows: Columns[PercentileRow], window_s: int) -> dict[Key, int]:
    """Where the row of each latency over one window stands."""
    keys = zip(*(rows.column(name) for name in ("environment", "service", "model", "signal", "source")), strict=True)
    windows_s = rows.column("window_s")
    return {key: place for place, (key, of_s) in enumerate(zip(keys, windows_s, strict=True)) if of_s == window_s}


def _busy(rows: Columns[PercentileRow]) -> dict[Key, int]:
    """The latencies that had requests in the last day and how many, the busiest first."""
    counts = rows.column("count")
    found = {
        key: counts[place]
        for key, place in _places(rows, DAY_S).items()
        if key[3] in LATENCY_SIGNALS and key[2] not in (ALL_MODELS, OTHER_MODEL) and counts[place]
    }
    return dict(sorted(found.items(), key=lambda pair: (-pair[1], pair[0])))


def _burning(alerts: Iterable[Alert]) -> Iterable[tuple[str, str, str, str]]:
    """Environment, service, model and signal of each burn alert that fires."""
    for alert in alerts:
        key = alert.key
        if alert.state == "firing" and key.name in SIGNAL_OF_ALERT:
            yield key.environment, key.service, key.model, SIGNAL_OF_ALERT[key.name]


def _known(found: Mapping[str, tuple[float | None, int]]) -> dict[str, float]:
    """The values of those that have one, of enough requests."""
    return {signal: value for signal, (value, count) in found.items() if value is not None and count >= MIN_TOLD_APART}


def _kind(drift: Drift, before: Mapping[str, float], levels: _Levels, key: Key) -> DriftKind:
    """Whose doing a drift is, by the longest window that lies behind its beginning."""
    lasted_s = levels.at_s - drift.since_s
    if lasted_s < WINDOW_S:
        return "unknown"
    window_s = LONG_WINDOW_S if lasted_s >= LONG_WINDOW_S else WINDOW_S
    now = levels.by_prompt(key, window_s)
    strata = [Stratum(before.get(signal), value, count) for signal, (value, count) in now.items()]
    if sum(one.count for one in strata) < MIN_TOLD_APART:
        return "unknown"
    found = parts(drift.effect, strata)
    return "unknown" if found is None else found.kind
