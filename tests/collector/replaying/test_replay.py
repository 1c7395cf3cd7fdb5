"""The replay against the evaluation itself: over the same counts both must find the same budgets and firings."""

import random

import numpy as np
import pytest

from collector.judging.evaluate import Given, evaluate
from collector.replaying import replay
from collector.replaying.replay import Firing, Known, Past, Steps, replayed
from collector.values.alerting import Alert, AlertKey
from collector.values.deltas import Deltas
from collector.values.histogram import Counts
from slo import objective
from slo.signals import ALL_MODELS, OTHER_MODEL
from tests.collector import scene
from tests.collector.scene import NOW_S, TICK_S

HOUR_S = 3600
START_S = NOW_S - 5 * HOUR_S
SPEC = objective.parse(scene.TTFT)[0]
OBJECTIVE = SPEC.objectives[0]
Event = tuple[int, int, int]


def steps(events: list[Event], step_s: int = TICK_S) -> Steps:
    start_s, good, bad = (np.array(column, dtype=np.int64) for column in zip(*events, strict=True))
    return Steps(start_s, np.full(start_s.size, step_s), good, bad, np.zeros(start_s.size, dtype=np.int64))


def heard(from_s: int, to_s: int, step_s: int = TICK_S) -> Known:
    starts = np.arange(from_s, to_s, step_s)
    return Known(starts, np.full(starts.size, step_s))


def past(events: list[Event], *, model: str = ALL_MODELS, step_s: int = TICK_S, known: Known | None = None) -> Past:
    known = heard(START_S, NOW_S) if known is None else known
    return Past("", "chat", model, OBJECTIVE, "counts", steps(events, step_s), known)


def moments(one: Past) -> Counts:
    return replay.moments([one], to_s=NOW_S)


def storm(seed: int) -> list[Event]:
    """Five hours of traffic with troubles of random strength and length, and a stretch of silence."""
    chance = random.Random(seed)
    events: list[Event] = []
    bad_share = 0.0
    for at_s in range(START_S, NOW_S, TICK_S):
        if at_s % 600 == 0:
            bad_share = chance.choice([0.0, 0.0, 0.01, 0.05, 0.3, 0.9])
        if START_S + 2 * HOUR_S < at_s < START_S + 2 * HOUR_S + 900:
            continue
        total = chance.randrange(0, 12)
        bad = sum(chance.random() < bad_share for _ in range(total))
        events.append((at_s, total - bad, bad))
    return events


def evaluated(events: list[Event]) -> tuple[dict[str, list[Firing]], dict[int, float]]:
    """Firings by tier, and the budget left at each tick, as the evaluation finds them tick by tick."""
    windows = scene.windows(now_s=START_S)
    alerts: dict[AlertKey, Alert] = {}
    ended: dict[AlertKey, Alert] = {}
    firings: dict[str, list[Firing]] = {}
    left: dict[int, float] = {}
    at = {start_s: (good, bad) for start_s, good, bad in events}
    for now_s in range(START_S + TICK_S, NOW_S + 1, TICK_S):
        start_s = now_s - TICK_S
        good, bad = at.get(start_s, (0, 0))
        judged = (scene.slo(start_s, good, bad),) if start_s in at else ()
        windows.add(Deltas(slo=judged, known=scene.known(start_s, now_s), instances=(scene.heard(START_S, now_s),)))
        windows.advance(now_s)
        found = evaluate(windows, alerts=alerts, now_s=now_s, given=Given(ended=tuple(ended.values())))
        alerts = {one.key: one for one in found.alerts if one.state != "resolved"}
        ended |= {one.key: one for one in found.alerts if one.state == "resolved"}
        for one in found.transitions:
            if one.key.model == ALL_MODELS and one.key.tier:
                mine = firings.setdefault(one.key.tier, [])
                if one.state == "firing":
                    mine.append(Firing(now_s, None))
                elif one.fired_s is not None and mine and mine[-1].to_s is None:
                    mine[-1] = Firing(mine[-1].from_s, now_s)
        left[now_s] = next(row.remaining for row in found.budgets if row.model == ALL_MODELS)
    return firings, left


@pytest.mark.parametrize("seed", range(2))
def test_it_finds_the_firings_and_budgets_of_the_evaluation(seed: int) -> None:
    events = storm(seed)
    firings, left = evaluated(events)
    one = past(events)
    report = replayed(one, moments(one), from_s=START_S, to_s=NOW_S)
    assert any(firings.values())
    for tier in report.tiers:
        theirs = firings.get(tier.tier.name, [])
        assert len(tier.firings) == len(theirs), tier.tier.name
        for ours, other in zip(tier.firings, theirs, strict=True):
            assert abs(ours.from_s - other.from_s) <= TICK_S
            assert (ours.to_s is None) == (other.to_s is None)
            assert abs((ours.to_s or 0) - (other.to_s or 0)) <= TICK_S
    assert report.remaining == pytest.approx(left[NOW_S], rel=1e-9)
    assert report.lowest <= report.remaining
    assert (report.good, report.bad) == (sum(event[1] for event in events), sum(event[2] for event in events))


def test_what_was_folded_into_longer_steps_gives_the_same_counts_and_nearly_the_same_firings() -> None:
    events = storm(1)
    folded: dict[int, list[int]] = {}
    for start_s, good, bad in events:
        cell = folded.setdefault(start_s - start_s % 60, [0, 0])
        cell[0] += good
        cell[1] += bad
    fine = past(events)
    coarse = past([(at_s, *counts) for at_s, counts in folded.items()], step_s=60, known=heard(START_S, NOW_S, 60))
    finely, coarsely = (replayed(one, moments(one), from_s=START_S, to_s=NOW_S) for one in (fine, coarse))
    assert (finely.good, finely.bad) == (coarsely.good, coarsely.bad)
    for ours, other in zip(finely.tiers, coarsely.tiers, strict=True):
        assert abs(ours.firing_s - other.firing_s) <= 120 * max(len(ours.firings), 1)


def test_only_the_stretch_asked_for_is_reported_though_all_of_the_past_fills_its_windows() -> None:
    trouble = [(at_s, 5, 5) for at_s in range(START_S, START_S + HOUR_S, TICK_S)]
    calm = [(at_s, 10, 0) for at_s in range(START_S + HOUR_S, NOW_S, TICK_S)]
    one = past([*trouble, *calm])
    whole = replayed(one, moments(one), from_s=START_S, to_s=NOW_S)
    late = replayed(one, moments(one), from_s=NOW_S - HOUR_S, to_s=NOW_S)
    assert whole.tiers[0].firings
    assert late.tiers[0].firings == ()
    assert (late.good, late.bad) == (3600, 0)
    assert late.remaining == pytest.approx(whole.remaining)
    assert late.remaining < 1


def test_a_trouble_that_lasts_has_no_end() -> None:
    one = past([(at_s, 1, 9) for at_s in range(START_S, NOW_S, TICK_S)])
    report = replayed(one, moments(one), from_s=START_S, to_s=NOW_S)
    assert all(tier.firings[-1].to_s is None for tier in report.tiers if tier.firings)
    assert report.tiers[0].firing_s > 4 * HOUR_S


def test_the_model_that_stands_for_many_pages_nobody() -> None:
    one = past([(at_s, 1, 9) for at_s in range(START_S, NOW_S, TICK_S)], model=OTHER_MODEL)
    report = replayed(one, moments(one), from_s=START_S, to_s=NOW_S)
    assert {tier.tier.notify for tier in report.tiers} == {"ticket"}


def test_a_past_without_events_costs_nothing() -> None:
    nothing = np.zeros(0, dtype=np.int64)
    one = Past("", "chat", "m", OBJECTIVE, "counts", Steps(nothing, nothing, nothing, nothing, nothing), heard(0, 600))
    report = replayed(one, moments(one), from_s=0, to_s=600)
    assert (report.good, report.bad, report.bad_share, report.remaining) == (0, 0, None, 1.0)
    assert all(tier.firings == () for tier in report.tiers)


INCIDENTS = {
    "none": ([], 0),
    "one that lasts": ([Firing(0, None)], 1),
    "two that overlap": ([Firing(0, 100), Firing(50, 200)], 1),
    "one right after the other": ([Firing(0, 100), Firing(300, 400)], 1),
    "one long after the other": ([Firing(0, 100), Firing(1000, 1100)], 2),
    "one within another": ([Firing(0, 900), Firing(10, 20), Firing(1000, 1100)], 1),
}


@pytest.mark.parametrize(("firings", "count"), INCIDENTS.values(), ids=INCIDENTS.keys())
def test_what_burns_together_is_one_incident(firings: list[Firing], count: int) -> None:
    assert replay.together(firings, to_s=2000, apart_s=300) == count
