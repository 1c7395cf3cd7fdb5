"""The eye of several workers: their reports become one set of counts, as if one process had served every request.

Each report brings what its worker has counted since the one before, and that is added to a tally which lives here. So
no sum ever falls: what a worker had told outlives it, and its successor begins at nothing. What it had not told yet, at
most the last second, is lost with it.

Requests in flight in a worker that dies are broken: their clients met the end of the connection. Nobody saw them end,
so each report says what those in flight would count as, and for a worker that is gone this is counted: an error each,
bad for the objectives whose verdict was still open, and no latency. It is as true as the last report was: a request
that ended since counts as broken, one that began since does not count.

Counted here alone, once for all workers: heartbeats, what the engine says, and the seconds of objectives over the
engine's state. Labels are let in here alone too: a name that this set has no room for is `other` in the sum, whatever
its worker called it.
"""

from collections.abc import Iterable
from dataclasses import replace

from sidecar.counting.tally import Attributes, Increment, Number
from sidecar.judging.deadlines import users_in_flight
from sidecar.judging.eye import Eye
from sidecar.telling.emit import Count
from sidecar.workers.worker_pipe import Report, State
from slo.objective import Spec
from slo.signals import (
    HEARTBEAT,
    LAST_TOKEN_AGE,
    OLDEST_AGE,
    REQUEST_MODEL,
    SLO_EVENTS,
    TTFT_PREDICTED,
    WORKER_DEATHS,
    WORKERS,
)

_LONGEST = frozenset((OLDEST_AGE.name, TTFT_PREDICTED.name))
"""Gauges that are as long as in the worker where they are longest."""


class Heard:
    """What is to be known of a server by all who decide whether to ask it for its usage."""

    def __init__(self) -> None:
        self.engine: str | None = None
        self.outages = 0

    def engine_is(self, name: str) -> None:
        """The engine was recognised."""
        self.engine = name

    def server_gone(self) -> None:
        """The server cannot be reached."""
        self.outages += 1


class WorkersEye:
    """Watches the requests of all workers. `eye` has none of its own: it holds the counts, the labels and the spec;
    `count` takes what became of the exports of workers."""

    def __init__(self, eye: Eye, count: Count) -> None:
        self._eye, self._count_export = eye, count
        self.tally, self.labels, self.look = eye.tally, eye.labels, eye.look
        self.overload_429, self.usage = False, Heard()
        self._kv_occupancy: float | None = None
        self._last: dict[int, Report] = {}
        self._shown: dict[tuple[str, Attributes], Number] = {}
        self._busy_since_ns = self._last_token_ns = 0
        self.reached = False
        self.tally.create(WORKER_DEATHS, ())

    def load(self, spec: Spec | None) -> None:
        """Judge by `spec`: what workers still count by another is left out of the sum."""
        self._eye.load(spec)

    def introduce(self, models: Iterable[str]) -> None:
        """Make every label set of these models exist, at 0."""
        self._eye.introduce(models)

    def catch_up(self) -> None:
        """Reports come by themselves."""

    # Workers.

    @property
    def in_flight(self) -> int:
        """Requests in flight in all workers."""
        return sum(report.in_flight for report in self._last.values())

    def reported(self, worker: int, report: Report) -> None:
        """Add what a worker tells."""
        for model in report.models:
            self._eye.learn(model)
        self.tally.grow(self._whole(report.increment))
        for metric, lane, reason, more in report.exports:
            self._count_export(metric, lane, reason, more)
        self._note_times(report)
        self.reached = self.reached or report.reached
        self._last[worker] = replace(report, increment=Increment())

    def _note_times(self, report: Report) -> None:
        """When all together last had nothing to do, and when any of them last saw a token."""
        self._last_token_ns = max(self._last_token_ns, report.last_token_ns)
        if report.in_flight:
            idle = not self.in_flight
            self._busy_since_ns = report.busy_since_ns if idle else min(self._busy_since_ns, report.busy_since_ns)

    def lost(self, worker: int, *, unasked: bool) -> int:
        """A worker is gone; how many requests it had in flight, which count as broken from now on."""
        self.tally.add(WORKER_DEATHS, (), int(unasked))
        report = self._last.pop(worker, None)
        if report is None:
            return 0
        self.tally.grow(self._whole(Increment(report.at_stake)))
        return report.in_flight

    def _whole(self, increment: Increment) -> Increment:
        """An increment in the labels of all, without events of objectives that are not judged by any more."""
        return Increment(
            tuple(
                self._named(number)
                for number in increment.counters
                if number.metric.name != SLO_EVENTS.name or self._eye.judges(number.attributes)
            ),
            tuple((metric, self._label(attributes), latency) for metric, attributes, latency in increment.latencies),
        )

    def _named(self, number: Number) -> Number:
        return replace(number, attributes=self._label(number.attributes))

    def _label(self, attributes: Attributes) -> Attributes:
        return tuple((key, self.labels.of(value) if key == REQUEST_MODEL else value) for key, value in attributes)

    def state(self) -> State:
        """What workers have to know."""
        return State(
            kv_occupancy=self._kv_occupancy,
            overload_429=self.overload_429,
            engine=self.usage.engine,
            outages=self.usage.outages,
            served=self.labels.served,
            models=self.labels.known,
        )

    # Time and state.

    def second(self, now_ns: int, *, kv_occupancy: float | None, waiting: float | None, heartbeats: int) -> None:
        """What each second brings: life itself, and the seconds of objectives over the engine's state."""
        self.tally.add(HEARTBEAT, (), heartbeats)
        self._kv_occupancy = kv_occupancy
        synthetic = sum(report.synthetic_in_flight for report in self._last.values())
        in_flight = users_in_flight(self.in_flight, synthetic)
        self._eye.count_state(now_ns, kv_occupancy=kv_occupancy, waiting=waiting, in_flight=in_flight)

    def gauges(self, now_ns: int) -> list[Number]:
        """How many requests stand where in all workers and how long the oldest of any has waited, by model, and the age
        of the last token of any."""
        # What was shown once stays, at 0: a reader must not take its last value for the present one.
        sums = {key: replace(number, value=0) for key, number in self._shown.items()}
        told = (self._named(n) for report in self._last.values() for n in report.gauges)
        for number in (*self._eye.gauges(now_ns), *told):
            if number.metric.name != LAST_TOKEN_AGE.name:
                key = number.metric.name, number.attributes
                before = sums[key].value if key in sums else 0
                both = max(before, number.value) if number.metric.name in _LONGEST else before + number.value
                sums[key] = replace(number, value=both)
        self._shown = {key: number for key, number in sums.items() if number.metric.name != TTFT_PREDICTED.name}
        found = [*sums.values(), Number(WORKERS, (), len(self._last))]
        if self.in_flight:
            since_ns = max(self._last_token_ns, self._busy_since_ns)
            found.append(Number(LAST_TOKEN_AGE, (), max(0, now_ns - since_ns) / 1e9))
        return found
