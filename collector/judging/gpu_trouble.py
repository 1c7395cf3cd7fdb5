"""Alerts on the GPUs that the service's sidecars read: throttled, faulty, lost (DESIGN 4.6).

Each is found at one GPU and told of the service, with the GPUs in words.
"""

from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass

import numpy as np

from collector.judging.lasting import Answers, lasting, moments_s, state
from collector.judging.trouble_alert import Said, named, spec_of, subject, trouble_alert
from collector.values import words
from collector.values.alerting import Alert, AlertKey, Wanted
from collector.values.histogram import Counts, Floats
from collector.windowing.fleet import FRESH_S, Service
from collector.windowing.recent import Place, Recent
from collector.windowing.windows import Windows
from slo.quantity import duration_text
from slo.signals import GPU_ERRORS, GPU_LOST, GPU_REMAP_FAILED, GPU_REMAP_PENDING, GPU_THROTTLE
from slo.trouble import (
    GPU_ERROR_WINDOW_S,
    GPU_FAULTY,
    GPU_THROTTLED,
    LOST_GPU,
    THROTTLE_SHARE,
    THROTTLE_WINDOW_S,
    TROUBLES,
)


@dataclass(frozen=True, slots=True)
class _Gpu:
    """A GPU that may be in trouble: whether it was at each moment, and how it is now."""

    place: Place
    device: str
    answers: Answers
    how: str


@dataclass(frozen=True, slots=True)
class _Question:
    """How an alert finds its GPUs, and what it says of a service and of those in trouble."""

    find: Callable[[Recent, Counts], Iterator[_Gpu]]
    summary: str
    what: str


def wanted(windows: Windows, *, alerts: Mapping[AlertKey, Alert], now_s: int) -> Iterator[Wanted]:
    """The alerts of this kind that should pend or fire now."""
    recent, tick_s = windows.recent, windows.plan.tick_s
    for name, question in _QUESTIONS.items():
        trouble = TROUBLES[name]
        at_s = moments_s(trouble, now_s=now_s, tick_s=tick_s)
        for service, gpus in _by_service(question.find(recent, at_s)).items():
            spec, key = spec_of(windows.plan, service), AlertKey(name, *service)
            stands = state(key, (lasting(trouble, gpu.answers, tick_s=tick_s) for gpu in gpus), alerts=alerts)
            if spec is not None and stands is not None:
                listed = named(_line(recent, gpu) for gpu in gpus)
                said = Said(
                    f"A GPU of {spec.service} {question.summary}.", f"{subject(service)}: {question.what}{listed}."
                )
                yield trouble_alert(spec, key, trouble, said, state=stands)


def _by_service(gpus: Iterable[_Gpu]) -> dict[Service, list[_Gpu]]:
    """Those that were in trouble at any of the moments."""
    found: defaultdict[Service, list[_Gpu]] = defaultdict(list)
    for gpu in gpus:
        if gpu.answers.any():
            found[gpu.place[0]].append(gpu)
    return found


def _line(recent: Recent, gpu: _Gpu) -> str:
    called = recent.device_name(gpu.place, gpu.device) or "GPU"
    return f"{called} {gpu.device} at instance {gpu.place[1] or 'unnamed'} ({gpu.how})"


def _throttled(recent: Recent, at_s: Counts) -> Iterator[_Gpu]:
    """By whether one of the reasons held the clocks back for more than a share of the window."""
    most_s = float(THROTTLE_SHARE * THROTTLE_WINDOW_S)
    for place in recent.moving(GPU_THROTTLE.sql):
        held_s: dict[str, Floats] = {}
        for (device, _), trail in recent.trails(GPU_THROTTLE.sql, place).items():
            sums = trail.sums(THROTTLE_WINDOW_S, at_s=at_s)
            held_s[device] = np.maximum(held_s[device], sums) if device in held_s else sums
        for device, seconds in held_s.items():
            share = words.share(float(seconds[-1]) / THROTTLE_WINDOW_S)
            yield _Gpu(place, device, seconds > most_s, share)


def _faulty(recent: Recent, at_s: Counts) -> Iterator[_Gpu]:
    """By whether it reported an error of the kinds that count, or its memory waits for a reset or cannot be mended."""
    for place in recent.moving(GPU_ERRORS.sql):
        for (device,), trail in recent.trails(GPU_ERRORS.sql, place).items():
            errors = trail.sums(GPU_ERROR_WINDOW_S, at_s=at_s)
            yield _Gpu(place, device, errors > 0, f"errors: {errors[-1]:.0f}")
    yield from _flagged(recent, GPU_REMAP_FAILED.sql, at_s, "a row of memory could not be remapped")
    yield from _flagged(recent, GPU_REMAP_PENDING.sql, at_s, "a row of memory waits for a reset")


def _lost(recent: Recent, at_s: Counts) -> Iterator[_Gpu]:
    """By whether it says that it has fallen off the bus, or does nothing before it is reset."""
    return _flagged(recent, GPU_LOST.sql, at_s, "lost")


def _flagged(recent: Recent, name: str, at_s: Counts, how: str) -> Iterator[_Gpu]:
    """By whether a gauge was 1."""
    for place in recent.moving(name):
        for (device,), trail in recent.trails(name, place).items():
            yield _Gpu(place, device, trail.values(FRESH_S, at_s=at_s) == 1, how)


_QUESTIONS = {
    GPU_THROTTLED: _Question(
        _throttled,
        "is slowed down by heat or power",
        f"clocks were held back by the hardware or for heat, of the last {duration_text(THROTTLE_WINDOW_S)}: ",
    ),
    GPU_FAULTY: _Question(_faulty, "reports errors", f"over the last {duration_text(GPU_ERROR_WINDOW_S)}: "),
    LOST_GPU: _Question(_lost, "is lost", "off the bus, or does nothing before it is reset: "),
}
