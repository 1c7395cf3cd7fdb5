"""What a stretch of time says about why a budget burns: rows of the database in, means out. Pure.

`Seen` holds what the tables know of one service, and of one of its models or all, over one stretch; `evidence` makes of
it the few figures that causes are told apart by, over all instances together or over one of them. An engine's own
gauges are the same for all of its models, so of several the highest stands; two instances are two engines, and their
mean stands. A figure that nobody told is None and speaks for nothing: never 0.

Means, and not percentiles: an engine's histograms have coarse buckets but exact sums, so a mean of theirs may be laid
beside one of ours.
"""

from collections.abc import Callable, Collection, Iterable
from dataclasses import dataclass
from statistics import fmean

from slo.signals import (
    E2E,
    ENGINE_PREEMPTIONS,
    ENGINE_RUNNING,
    ENGINE_WAITING,
    GPU_LOST,
    GPU_THROTTLE,
    IN_FLIGHT,
    KV_OCCUPANCY,
    LABELS,
    LAST_TOKEN_AGE,
    OLDEST_AGE,
    OUTCOME,
    REASON,
    REQUESTS,
    SOURCES,
    TOKEN_TYPE,
    TOKENS,
    TPOT,
    TTFT,
    WAITING_FIRST_TOKEN,
)
from slo.trouble import THROTTLE_REASONS

COUNTERS = tuple(metric.sql for metric in (REQUESTS, TOKENS, ENGINE_PREEMPTIONS, GPU_THROTTLE))
GAUGES = tuple(
    metric.sql
    for metric in (
        *(IN_FLIGHT, WAITING_FIRST_TOKEN, OLDEST_AGE, LAST_TOKEN_AGE, ENGINE_RUNNING, ENGINE_WAITING, KV_OCCUPANCY),
        GPU_LOST,
    )
)
ENDS = (IN_FLIGHT.sql, LAST_TOKEN_AGE.sql)
"""The gauges of which it is known how they stood at both ends of a stretch."""
LATENCIES = tuple(metric.sql for metric in (TTFT, TPOT, E2E))
ENGINE = "engine"
OURS = tuple(source for source in SOURCES if source != ENGINE)
_FAILED, _REFUSED = ("error", "timeout"), ("rejected",)
_LEFT_OUT = ("client_error", "quota")
"""Outcomes that are the client's doing; they say nothing of the server."""


@dataclass(frozen=True, slots=True)
class Total:
    """What a counter grew by; `attributes` are (label, value)."""

    instance: str
    name: str
    attributes: tuple[tuple[str, str], ...]
    value: float


@dataclass(frozen=True, slots=True)
class Level:
    """A gauge over the stretch: its mean, its highest value, of how many samples, the last of which is of `last_s`; and
    of those of `ENDS` how it stood at the beginning and at the end."""

    instance: str
    model: str
    name: str
    attribute: str
    mean: float
    max: float
    samples: int
    last_s: float = 0.0
    first: float = 0.0
    last: float = 0.0


@dataclass(frozen=True, slots=True)
class Latency:
    """The values of a latency: how many, and their sum in seconds."""

    instance: str
    signal: str
    source: str
    count: int
    sum_s: float


@dataclass(frozen=True, slots=True)
class Seen:
    """What the tables hold of one stretch of time."""

    length_s: int
    totals: tuple[Total, ...] = ()
    levels: tuple[Level, ...] = ()
    latencies: tuple[Latency, ...] = ()

    def instances(self) -> tuple[str, ...]:
        """Those whose requests or engine were watched, sorted."""
        watching = (ENGINE_RUNNING.sql, IN_FLIGHT.sql)
        return tuple(sorted({level.instance for level in self.levels if level.name in watching}))


@dataclass(frozen=True, slots=True)
class Evidence:
    """Figures of one stretch of time.

    `came` is how many requests did, `arrivals` and `preemptions` are per second; `in_tokens` and `out_tokens` of a
    request; `answers` and `engine_answers` of how many the time per token is known, to us and to the engine; `failed`
    and `refused` shares of the requests that ended; `running`, `waiting` in an engine, `unstarted` requests without a
    first token, of which the oldest waited for `oldest_s` at most; how long requests in flight went without a token of
    any: `token_age_s` until the end, `longest_gap_s` at most, `token_gap_s` in the mean of all looks, which is half of
    an engine's step; `throttled` the share of time in which the most throttled GPU was held back; `gpu_lost` how many
    are; `heard` the share of time in which the engine's own page was read, `unheard_s` for how long it no longer is, at
    the end.
    """

    came: float | None = None
    arrivals: float | None = None
    in_tokens: float | None = None
    out_tokens: float | None = None
    ttft_s: float | None = None
    tpot_s: float | None = None
    e2e_s: float | None = None
    answers: float | None = None
    engine_tpot_s: float | None = None
    engine_answers: float | None = None
    running: float | None = None
    waiting: float | None = None
    unstarted: float | None = None
    oldest_s: float | None = None
    preemptions: float | None = None
    kv_occupancy: float | None = None
    failed: float | None = None
    refused: float | None = None
    token_age_s: float | None = None
    longest_gap_s: float | None = None
    token_gap_s: float | None = None
    throttled: float | None = None
    gpu_lost: float | None = None
    heard: float | None = None
    unheard_s: float | None = None


def evidence(seen: Seen, instances: Collection[str] | None = None) -> Evidence:
    """The figures of all instances together, or of those named."""
    one = _Stretch(seen, instances)
    ended = one.total(REQUESTS.sql)
    judged = None if ended is None else ended - (one.requests(_LEFT_OUT) or 0.0)
    rise = one.level(IN_FLIGHT.sql, within=sum, across=sum, of=lambda level: level.last - level.first)
    came = None if ended is None else max(ended + (rise or 0.0), 0.0)
    return Evidence(
        came=came,
        arrivals=_ratio(came, seen.length_s),
        in_tokens=_ratio(one.tokens("input"), one.requests(("ok",))),
        out_tokens=_ratio(one.tokens("output"), one.requests(("ok", "cancelled"))),
        ttft_s=one.latency(TTFT.sql),
        tpot_s=one.latency(TPOT.sql),
        e2e_s=one.latency(E2E.sql),
        answers=one.values(TPOT.sql, OURS),
        engine_tpot_s=one.latency_by(TPOT.sql, (ENGINE,)),
        engine_answers=one.values(TPOT.sql, (ENGINE,)),
        running=one.level(ENGINE_RUNNING.sql),
        waiting=one.level(ENGINE_WAITING.sql),
        unstarted=one.level(WAITING_FIRST_TOKEN.sql, within=sum),
        oldest_s=one.level(OLDEST_AGE.sql, across=max, of=lambda level: level.max),
        preemptions=_ratio(one.total(ENGINE_PREEMPTIONS.sql), seen.length_s),
        kv_occupancy=one.level(KV_OCCUPANCY.sql),
        failed=_ratio(one.requests(_FAILED), judged),
        refused=_ratio(one.requests(_REFUSED), judged),
        token_age_s=one.level(LAST_TOKEN_AGE.sql, across=max, of=lambda level: level.last),
        longest_gap_s=one.level(LAST_TOKEN_AGE.sql, across=max, of=lambda level: level.max),
        token_gap_s=one.level(LAST_TOKEN_AGE.sql),
        throttled=one.throttled(),
        gpu_lost=one.level(GPU_LOST.sql, within=sum, across=sum, of=lambda level: level.max),
        heard=one.heard(),
        unheard_s=one.unheard_s(),
    )


class _Stretch:
    """What was seen, of some instances."""

    def __init__(self, seen: Seen, instances: Collection[str] | None) -> None:
        def is_mine(one: Total | Level | Latency) -> bool:
            return instances is None or one.instance in instances

        self._length_s = seen.length_s
        self._totals = [one for one in seen.totals if is_mine(one)]
        self._levels = [one for one in seen.levels if is_mine(one)]
        self._latencies = [one for one in seen.latencies if is_mine(one)]

    def total(self, name: str, label: str = "", values: Collection[str] = ()) -> float | None:
        """What a counter grew by, of all attributes or of those whose label has one of the values; None when nobody
        counts it at all."""
        mine = [one for one in self._totals if one.name == name]
        chosen = [one.value for one in mine if not label or dict(one.attributes).get(label) in values]
        return sum(chosen) if mine else None

    def requests(self, outcomes: Collection[str]) -> float | None:
        return self.total(REQUESTS.sql, LABELS[OUTCOME], outcomes)

    def tokens(self, kind: str) -> float | None:
        return self.total(TOKENS.sql, LABELS[TOKEN_TYPE], (kind,))

    def latency(self, signal: str) -> float | None:
        """The mean over all values: of a request's own watcher, else what its engine says."""
        own = self.latency_by(signal, OURS)
        return self.latency_by(signal, (ENGINE,)) if own is None else own

    def latency_by(self, signal: str, sources: Collection[str]) -> float | None:
        mine = [one for one in self._latencies if one.signal == signal and one.source in sources]
        return _ratio(sum(one.sum_s for one in mine), sum(one.count for one in mine))

    def values(self, signal: str, sources: Collection[str]) -> float | None:
        """How many values of it there are."""
        mine = [one.count for one in self._latencies if one.signal == signal and one.source in sources]
        return float(sum(mine)) if mine else None

    def level(
        self,
        name: str,
        *,
        within: Callable[[Iterable[float]], float] = max,
        across: Callable[[Iterable[float]], float] = fmean,
        of: Callable[[Level], float] = lambda level: level.mean,
    ) -> float | None:
        """A gauge, first of each instance and then of all of them."""
        found: dict[str, list[float]] = {}
        for one in self._levels:
            if one.name == name:
                found.setdefault(one.instance, []).append(of(one))
        return across([within(values) for values in found.values()]) if found else None

    def heard(self) -> float | None:
        """The share of an instance's own reports that had something of its engine in them; of the one least so."""
        reports = self._samples(IN_FLIGHT.sql)
        pages = self._samples(ENGINE_RUNNING.sql)
        shares = [min(pages.get(instance, 0) / samples, 1.0) for instance, samples in reports.items()]
        return min(shares, default=None)

    def unheard_s(self) -> float | None:
        """How much longer an instance has reported of itself than of its engine; of the one that did so for longest."""
        ours, engines = self._lasts_s(IN_FLIGHT.sql), self._lasts_s(ENGINE_RUNNING.sql)
        return max((ours[one] - engines[one] for one in ours if one in engines), default=None)

    def throttled(self) -> float | None:
        """The share of time in which the most throttled sender's GPUs were held back; a cap on power is no fault."""
        found: dict[str, float] = {}
        for one in self._totals:
            if one.name == GPU_THROTTLE.sql:
                counts = dict(one.attributes).get(LABELS[REASON]) in THROTTLE_REASONS
                found[one.instance] = max(found.get(one.instance, 0.0), one.value if counts else 0.0)
        return min(max(found.values()) / self._length_s, 1.0) if found else None

    def _lasts_s(self, name: str) -> dict[str, float]:
        """When each instance last told of a gauge."""
        latest: dict[str, float] = {}
        for one in self._levels:
            if one.name == name:
                latest[one.instance] = max(latest.get(one.instance, 0.0), one.last_s)
        return latest

    def _samples(self, name: str) -> dict[str, int]:
        most: dict[str, int] = {}
        for one in self._levels:
            if one.name == name:
                most[one.instance] = max(most.get(one.instance, 0), one.samples)
        return most


def _ratio(part: float | None, whole: float | None) -> float | None:
    return None if part is None or not whole else part / whole
