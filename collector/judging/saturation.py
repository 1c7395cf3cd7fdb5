"""Tickets on what makes a service slow before its budget says so: KV pressure, a growing queue (DESIGN 4.6).

Each is found at one instance, for causes have a place, and told of the service with those places in words. What a
synthetic load does to an instance is left out.
"""

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass

import numpy as np

from collector.judging.lasting import Answers, Lasting, lasting, moments_s, state
from collector.judging.synthetic_load import filled
from collector.judging.trouble_alert import Said, named, spec_of, subject, trouble_alert
from collector.values import words
from collector.values.alerting import Alert, AlertKey, Wanted
from collector.values.histogram import Counts, Floats
from collector.windowing.fleet import FRESH_S, Service
from collector.windowing.recent import ENDED, Place, Recent
from collector.windowing.trail import Trail
from collector.windowing.windows import Windows
from slo.objective import Spec
from slo.quantity import duration_text
from slo.signals import ENGINE_PREEMPTIONS, ENGINE_WAITING, KV_OCCUPANCY, OLDEST_AGE, TTFT_PREDICTED, Metric
from slo.trouble import (
    KV_FULL,
    KV_PREEMPTIONS,
    KV_PRESSURE,
    KV_WINDOW_S,
    QUEUE_GROWING,
    QUEUE_WAITING,
    QUEUE_WINDOW_S,
    TROUBLES,
)

KV_QUANTILE = 0.95


def wanted(windows: Windows, *, alerts: Mapping[AlertKey, Alert], now_s: int) -> Iterator[Wanted]:
    """The alerts of this kind that should pend or fire now."""
    yield from _pressed(windows, alerts=alerts, now_s=now_s)
    yield from _growing(windows, alerts=alerts, now_s=now_s)


@dataclass(frozen=True, slots=True)
class _Cache:
    """The KV cache of one instance at each moment: how full at its high end, and how many sequences it threw out."""

    full: Floats
    thrown_out: Floats


def _pressed(windows: Windows, *, alerts: Mapping[AlertKey, Alert], now_s: int) -> Iterator[Wanted]:
    """The cache is full and sequences are thrown out of it; of several ranks the fullest counts."""
    trouble, tick_s = TROUBLES[KV_PRESSURE], windows.plan.tick_s
    at_s = moments_s(trouble, now_s=now_s, tick_s=tick_s)
    found: defaultdict[Service, dict[str, Lasting]] = defaultdict(dict)
    for place in windows.recent.moving(ENGINE_PREEMPTIONS.sql):
        cache = _cache(windows.recent, place, at_s)
        if cache is None:
            continue
        answers = (np.round(cache.thrown_out) >= KV_PREEMPTIONS) & (cache.full > float(KV_FULL))
        if answers.any():
            answers &= ~filled(windows.recent, place, at_s, window_s=KV_WINDOW_S, tick_s=tick_s)
        if answers.any():
            service, instance = place
            found[service][_cache_line(instance, cache)] = lasting(trouble, answers, tick_s=tick_s)
    for service, places in found.items():
        key = AlertKey(KV_PRESSURE, *service)
        stands, spec = state(key, places.values(), alerts=alerts), spec_of(windows.plan, service)
        if stands is not None and spec is not None:
            yield trouble_alert(spec, key, trouble, _kv_said(spec, service, places), state=stands)


def _cache(recent: Recent, place: Place, at_s: Counts) -> _Cache | None:
    """The cache of a place; None where too few sequences were thrown out of it throughout, or nobody says how full."""
    trails = recent.trails(ENGINE_PREEMPTIONS.sql, place).values()
    ranks = recent.trails(KV_OCCUPANCY.sql, place).values()
    thrown_out = sum((trail.sums(KV_WINDOW_S, at_s=at_s) for trail in trails), np.zeros(at_s.size))
    if not ranks or np.round(thrown_out.max()) < KV_PREEMPTIONS:
        return None
    full = np.array([max(_high(trail, int(one_s)) for trail in ranks) for one_s in at_s])
    return _Cache(full, thrown_out)


def _high(trail: Trail, at_s: int) -> float:
    """The high occupancy of a rank over the window that ends then; 0 where nothing is known."""
    _, shares = trail.steps(KV_WINDOW_S, at_s=at_s)
    return float(np.quantile(shares, KV_QUANTILE)) if shares.size else 0.0


def _cache_line(instance: str, cache: _Cache) -> str:
    full, thrown_out = words.share(float(cache.full[-1])), round(float(cache.thrown_out[-1]))
    return f"{instance or 'unnamed'} ({full} full, {thrown_out} preempted)"


def _kv_said(spec: Spec, service: Service, places: Iterable[str]) -> Said:
    window = duration_text(KV_WINDOW_S)
    return Said(
        f"An engine of {spec.service} is short of KV cache and throws sequences out.",
        f"{subject(service)}: over the last {window}, at the 95th percentile of occupancy: {named(places)}. Each "
        "preempted sequence is computed anew.",
    )


@dataclass(frozen=True, slots=True)
class _Queue:
    """The queue of one instance at each moment: how many wait, how long it would take to drain (infinite where nothing
    ends, NaN where nobody counts that), how long the oldest has waited and the next one is predicted to (NaN where
    nobody says), whether it grows."""

    waiting: Floats
    drains_in_s: Floats
    oldest_s: Floats
    predicted_s: Floats
    grows: Answers

    def breaks(self, threshold_s: float) -> Answers:
        """Whether it breaks a promise on the first token: to who joins it now (Little, or the sidecar's prediction), or
        to the oldest in it."""
        waits_s = np.fmax(np.fmax(self.drains_in_s, self.oldest_s), self.predicted_s)
        found: Answers = waits_s > threshold_s
        return found & (self.waiting >= QUEUE_WAITING) & self.grows


def _growing(windows: Windows, *, alerts: Mapping[AlertKey, Alert], now_s: int) -> Iterator[Wanted]:
    """The queue grows, and who joins it now will wait past the TTFT threshold, or the oldest in it has already."""
    trouble, tick_s = TROUBLES[QUEUE_GROWING], windows.plan.tick_s
    at_s = moments_s(trouble, now_s=now_s, tick_s=tick_s)
    found: defaultdict[Service, dict[str, Lasting]] = defaultdict(dict)
    for place in windows.recent.moving(ENGINE_WAITING.sql):
        service, instance = place
        spec = spec_of(windows.plan, service)
        threshold_s = None if spec is None else _threshold_s(spec)
        queue = None if threshold_s is None else _queue(windows.recent, place, at_s)
        if queue is None or threshold_s is None:
            continue
        answers = queue.breaks(threshold_s)
        if answers.any():
            answers &= ~filled(windows.recent, place, at_s, window_s=QUEUE_WINDOW_S, tick_s=tick_s)
        if answers.any():
            found[service][_line(instance, queue)] = lasting(trouble, answers, tick_s=tick_s)
    for service, places in found.items():
        key = AlertKey(QUEUE_GROWING, *service)
        stands, spec = state(key, places.values(), alerts=alerts), spec_of(windows.plan, service)
        if stands is not None and spec is not None:
            yield trouble_alert(spec, key, trouble, _queue_said(spec, service, places), state=stands)


def _threshold_s(spec: Spec) -> float | None:
    """The tightest TTFT threshold of the service."""
    promised = (one.threshold for one in spec.objectives if one.signal == "ttft")
    return min((float(threshold) for threshold in promised if threshold is not None), default=None)


def _queue(recent: Recent, place: Place, at_s: Counts) -> _Queue | None:
    """The queue of a place; None where it was short throughout."""
    trails = list(recent.trails(ENGINE_WAITING.sql, place).values())
    looked_s, now_s = int(at_s[-1] - at_s[0]) + FRESH_S + 1, int(at_s[-1])
    if sum(trail.most(looked_s, at_s=now_s) for trail in trails) < QUEUE_WAITING:
        return None
    waiting = _added([trail.values(FRESH_S, at_s=at_s) for trail in trails])
    slopes = _added([trail.slopes(QUEUE_WINDOW_S, at_s=at_s) for trail in trails])
    oldest_s, predicted_s = (_longest_s(recent, one, place, at_s) for one in (OLDEST_AGE, TTFT_PREDICTED))
    return _Queue(waiting, _drains_in_s(recent, place, waiting, at_s), oldest_s, predicted_s, slopes > 0)


def _longest_s(recent: Recent, metric: Metric, place: Place, at_s: Counts) -> Floats:
    """The longest time that a gauge of a place says of any model; NaN where nobody says."""
    found = np.full(at_s.size, np.nan)
    for trail in recent.trails(metric.sql, place).values():
        found = np.fmax(found, trail.values(FRESH_S, at_s=at_s))
    return found


def _drains_in_s(recent: Recent, place: Place, waiting: Floats, at_s: Counts) -> Floats:
    """How long so many take at the rate at which requests end."""
    ended = recent.trails(ENDED, place).get(())
    if ended is None:
        return np.full(at_s.size, np.nan)
    per_s = ended.sums(QUEUE_WINDOW_S, at_s=at_s) / QUEUE_WINDOW_S
    with np.errstate(divide="ignore", invalid="ignore"):
        return np.where(_is_counted(ended, at_s), waiting / per_s, np.nan)


def _added(columns: list[Floats]) -> Floats:
    """The sum of what is known at each moment; NaN where nothing is."""
    stacked = np.stack(columns)
    found: Floats = np.where(np.isnan(stacked).all(axis=0), np.nan, np.nansum(stacked, axis=0))
    return found


def _is_counted(ended: Trail, at_s: Counts) -> Answers:
    """Whether requests were counted in the window at all, be it that none ended."""
    found: Answers = ended.counts(QUEUE_WINDOW_S, at_s=at_s) > 0
    return found


def _line(instance: str, queue: _Queue) -> str:
    told = [f"{np.nan_to_num(queue.waiting[-1]):.0f} wait"]
    drains_in_s, oldest_s = queue.drains_in_s[-1], queue.oldest_s[-1]
    if not np.isnan(drains_in_s):
        told.append(f"drains in {words.duration(drains_in_s)}" if np.isfinite(drains_in_s) else "does not drain")
    if oldest_s > 0:
        told.append(f"the oldest for {words.duration(oldest_s)}")
    if (predicted_s := queue.predicted_s[-1]) > 0:
        told.append(f"a first token in {words.duration(predicted_s)} by the sidecar's prediction")
    return f"{instance or 'unnamed'} ({', '.join(told)})"


def _queue_said(spec: Spec, service: Service, places: Iterable[str]) -> Said:
    limit = words.latency(_threshold_s(spec))
    return Said(
        f"The queue of an engine of {spec.service} grows, and requests wait longer than a first token may take.",
        f"{subject(service)}: at the rate at which requests end: {named(places)}; the TTFT objective allows {limit}.",
    )
