"""Tickets on what makes a service slow before its budget says so: KV pressure, a growing queue (DESIGN 4.6).

Each is found at one instance, for causes have a place, and told of the service with those places in words.
"""

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass

import numpy as np

from collector.judging.lasting import Answers, Lasting, lasting, moments_s, state
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
from slo.signals import ENGINE_PREEMPTIONS, ENGINE_WAITING, KV_OCCUPANCY
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
    yield from _pressed(windows, now_s=now_s)
    yield from _growing(windows, alerts=alerts, now_s=now_s)


def _pressed(windows: Windows, *, now_s: int) -> Iterator[Wanted]:
    """The cache is full and sequences are thrown out of it; of several ranks the fullest counts."""
    recent = windows.recent
    found: defaultdict[Service, list[str]] = defaultdict(list)
    for service, instance in recent.moving(ENGINE_PREEMPTIONS.sql):
        place = service, instance
        trails = recent.trails(ENGINE_PREEMPTIONS.sql, place).values()
        thrown_out = round(sum(trail.sum(KV_WINDOW_S, at_s=now_s) for trail in trails))
        if thrown_out < KV_PREEMPTIONS:
            continue
        full = max(_occupancies(recent, place, now_s=now_s), default=0.0)
        if full > float(KV_FULL):
            found[service].append(f"{instance or 'unnamed'} ({words.share(full)} full, {thrown_out} preempted)")
    for service, places in found.items():
        spec = spec_of(windows.plan, service)
        if spec is not None:
            yield _kv_alert(spec, service, places)


def _occupancies(recent: Recent, place: Place, *, now_s: int) -> Iterator[float]:
    """The high occupancy of each rank over the window."""
    for trail in recent.trails(KV_OCCUPANCY.sql, place).values():
        _, shares = trail.steps(KV_WINDOW_S, at_s=now_s)
        if shares.size:
            yield float(np.quantile(shares, KV_QUANTILE))


def _kv_alert(spec: Spec, service: Service, places: Iterable[str]) -> Wanted:
    window = duration_text(KV_WINDOW_S)
    return trouble_alert(
        spec,
        AlertKey(KV_PRESSURE, *service),
        TROUBLES[KV_PRESSURE],
        Said(
            f"An engine of {spec.service} is short of KV cache and throws sequences out.",
            f"{subject(service)}: over the last {window}, at the 95th percentile of occupancy: {named(places)}. Each "
            "preempted sequence is computed anew.",
        ),
    )


@dataclass(frozen=True, slots=True)
class _Queue:
    """The queue of one instance at each moment: how many wait, how long it would take to drain (NaN or infinite where
    nothing ends), and whether it grows."""

    waiting: Floats
    drains_in_s: Floats
    grows: Answers


def _growing(windows: Windows, *, alerts: Mapping[AlertKey, Alert], now_s: int) -> Iterator[Wanted]:
    """The queue grows, and who joins it now will wait past the TTFT threshold (Little)."""
    trouble, tick_s = TROUBLES[QUEUE_GROWING], windows.plan.tick_s
    at_s = moments_s(trouble, now_s=now_s, tick_s=tick_s)
    found: defaultdict[Service, dict[str, Lasting]] = defaultdict(dict)
    for service, instance in windows.recent.moving(ENGINE_WAITING.sql):
        spec = spec_of(windows.plan, service)
        threshold_s = None if spec is None else _threshold_s(spec)
        queue = None if threshold_s is None else _queue(windows.recent, (service, instance), at_s)
        if queue is None or threshold_s is None:
            continue
        answers = (queue.waiting >= QUEUE_WAITING) & (queue.drains_in_s > threshold_s) & queue.grows
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
    """The queue of a place; None where it was short throughout, or nobody counts what ends."""
    trails, ended = list(recent.trails(ENGINE_WAITING.sql, place).values()), recent.trails(ENDED, place).get(())
    looked_s, now_s = int(at_s[-1] - at_s[0]) + FRESH_S + 1, int(at_s[-1])
    if ended is None or sum(trail.most(looked_s, at_s=now_s) for trail in trails) < QUEUE_WAITING:
        return None
    waiting = _added([trail.values(FRESH_S, at_s=at_s) for trail in trails])
    slopes = _added([trail.slopes(QUEUE_WINDOW_S, at_s=at_s) for trail in trails])
    per_s = ended.sums(QUEUE_WINDOW_S, at_s=at_s) / QUEUE_WINDOW_S
    with np.errstate(divide="ignore", invalid="ignore"):
        drains_in_s = np.where(_is_counted(ended, at_s), waiting / per_s, np.nan)
    return _Queue(waiting, drains_in_s, slopes > 0)


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
    waiting, drains_in_s = np.nan_to_num(queue.waiting[-1]), queue.drains_in_s[-1]
    wait = f"drains in {words.duration(drains_in_s)}" if np.isfinite(drains_in_s) else "does not drain"
    return f"{instance or 'unnamed'} ({waiting:.0f} wait, {wait})"


def _queue_said(spec: Spec, service: Service, places: Iterable[str]) -> Said:
    limit = words.latency(_threshold_s(spec))
    return Said(
        f"The queue of an engine of {spec.service} grows, and drains more slowly than a first token may take.",
        f"{subject(service)}: at the rate at which requests end: {named(places)}; the TTFT objective allows {limit}.",
    )
