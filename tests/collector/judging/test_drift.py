"""The detector against weeks of made traffic: quick where there is a shift, silent where there is none."""

import math
from dataclasses import replace

import numpy as np
import pytest

from collector.judging.drift import ACCEPTED_S, BACK_MINUTES, EFFECT, MIN_COUNT, Detector, Drift, Minute
from tests.collector.latency_weeks import MINUTES_A_DAY, alarms, learnt, minutes, watched

WEEK = 7 * MINUTES_A_DAY
FIRST = WEEK + 1
"""The minute after the week that a detector has learnt."""


def told(detector: Detector, factor: float, *, length: int, count: int = 120, start: int = 60) -> list[Drift | None]:
    """What is said of a day that begins well and shifts at `start`, a day as the week before."""
    values = minutes(5, days=1, shift=(start, length, factor))
    return watched(detector, values, first=FIRST, count=count)


@pytest.mark.parametrize("window", [1, 5])
def test_half_a_false_alarm_a_week_at_most_and_a_quarter_more_is_told_in_ten_minutes(window: int) -> None:
    """The week of `capacity` with which detectors were compared, as it comes and as a window of five minutes has it."""
    false, delays = 0, []
    for seed in range(6):
        quiet = watched(learnt(seed=1000 + seed, window=window), minutes(seed, days=7, window=window), first=FIRST)
        false += len(alarms(quiet))
        start = 300 + 60 * seed
        values = minutes(100 + seed, days=1, shift=(start, 720, 1.25), window=window)
        found = alarms(watched(learnt(seed=2000 + seed, window=window), values, first=FIRST))
        delays += [minute - start for minute in found if minute >= start][:1]
    assert len(delays) == 6
    assert false <= 3
    assert float(np.median(delays)) <= 10
    assert max(delays) <= 20


def test_a_drift_says_since_when_by_how_much_and_from_where() -> None:
    found = told(learnt(), 1.4, length=600)
    (at,) = alarms(found)
    drift = found[at + 60]
    assert drift is not None
    assert 55 <= drift.since_s // 60 - FIRST <= 65
    assert drift.effect == pytest.approx(0.4, abs=0.1)
    assert drift.before == pytest.approx(0.4, rel=0.15)
    assert drift.after == pytest.approx(drift.before * (1 + drift.effect))
    assert drift.count >= 60 * 120


def test_seconds_and_milliseconds_give_the_same_verdict() -> None:
    def found(scale: float) -> list[Drift | None]:
        detector = Detector()
        for number, value in enumerate(minutes(1000, days=7), 1):
            detector.learn(Minute(60 * number, value * scale, 120))
        values = [value * scale for value in minutes(5, days=1, shift=(60, 600, 1.25))]
        return watched(detector, values, first=FIRST)

    seconds, milliseconds = found(1.0), found(1000.0)
    assert alarms(seconds) == alarms(milliseconds) != []
    for one, other in zip(seconds, milliseconds, strict=True):
        assert (one is None) == (other is None)
        if one is not None and other is not None:
            assert other.effect == pytest.approx(one.effect)
            assert other.before == pytest.approx(1000 * one.before)


def test_faster_is_a_drift_as_well() -> None:
    found = told(learnt(), 0.75, length=600)
    drift = found[alarms(found)[0]]
    assert drift is not None
    assert drift.effect < -EFFECT


def test_an_effect_that_nobody_feels_is_no_drift() -> None:
    """Seen for sure, and too small to tell of."""
    detector = Detector()
    steady = [0.4 * math.exp(0.005 * math.sin(number)) for number in range(WEEK)]
    for number, value in enumerate(steady, 1):
        detector.learn(Minute(60 * number, value, 120))
    assert alarms(watched(detector, [0.4 * 1.08] * 300, first=FIRST)) == []
    assert alarms(watched(detector, [0.4 * 1.15] * 300, first=FIRST + 300)) != []


def test_a_few_requests_are_no_drift_until_there_are_enough() -> None:
    found = told(learnt(), 1.6, length=1200, count=10)
    (at, *_) = alarms(found)
    drift = found[at]
    assert drift is not None
    assert MIN_COUNT <= drift.count < MIN_COUNT + 50
    assert at >= 60 + MIN_COUNT // 10 - 5


def test_one_wild_minute_is_no_drift() -> None:
    values = list(minutes(5, days=1))
    values[300] *= 50
    assert alarms(watched(learnt(), values, first=FIRST)) == []


def test_nothing_is_said_in_the_first_day() -> None:
    values = minutes(5, days=1, shift=(700, 700, 2.0))
    assert alarms(watched(Detector(), values)) == []


def test_minutes_may_be_missing_and_come_twice() -> None:
    detector = learnt()
    values = minutes(5, days=1, shift=(60, 900, 1.3))
    found: list[Drift | None] = []
    for number, value in enumerate(values):
        if number % 3:
            minute = Minute(60 * (FIRST + number), value, 120)
            found.append(detector.watch(minute))
            assert detector.watch(minute) == found[-1]
            assert detector.watch(replace(minute, at_s=minute.at_s - 600, value=9.0)) == found[-1]
    assert len(alarms(found)) == 1


def test_a_minute_without_a_value_says_nothing() -> None:
    detector = learnt()
    assert detector.watch(Minute(60 * FIRST, 0.0, 120)) is None
    assert detector.watch(Minute(60 * FIRST, 0.4, 0)) is None


def test_what_climbed_before_a_silence_counts_no_more() -> None:
    detector = learnt()
    usual = minutes(1000, days=7)[:8]
    assert watched(detector, [value * 1.3 for value in usual[:4]], first=FIRST) == [None] * 4
    found = watched(detector, [value * 1.3 for value in usual[:4]], first=FIRST + 60)
    assert found == [None] * 4


def test_an_incident_is_no_new_normal() -> None:
    """A day at twice the level: learnt as usual it makes the return a drift, and while it burns it is not learnt."""

    def returned(*, burning: bool) -> list[Drift | None]:
        detector = learnt(days=1)
        for number, value in enumerate(minutes(6, days=2), MINUTES_A_DAY + 1):
            detector.learn(Minute(60 * number, 2 * value, 120, burning=burning))
        # The spread is of the last day; a quiet one lies between the incident and now.
        for number, value in enumerate(minutes(8, days=1), 3 * MINUTES_A_DAY + 1):
            detector.learn(Minute(60 * number, value, 120))
        return watched(detector, minutes(7, days=1), first=4 * MINUTES_A_DAY + 1)

    assert alarms(returned(burning=False)) != []
    assert alarms(returned(burning=True)) == []


def test_it_ends_when_the_level_has_come_back() -> None:
    found = told(learnt(), 1.5, length=200)
    (at,) = alarms(found)
    last = max(number for number, drift in enumerate(found) if drift is not None)
    assert at < 80
    assert 260 <= last <= 260 + BACK_MINUTES


def test_after_a_day_it_is_the_new_normal() -> None:
    values = minutes(5, days=4, shift=(60, 4 * MINUTES_A_DAY, 1.5))
    found = watched(learnt(), values, first=FIRST)
    (at,) = alarms(found)
    over = next(number for number, drift in enumerate(found) if drift is None and number > at)
    first = found[at]
    assert first is not None
    assert 60 * (FIRST + over) - first.since_s == ACCEPTED_S


def test_a_drift_goes_on_where_it_was_left() -> None:
    left = Drift(60 * (FIRST - 30), 0.4, 0.5, 1000)
    detector = learnt()
    detector.resume(left)
    found = watched(detector, [value * 1.5 for value in minutes(5, days=1)[:60]], first=FIRST)
    assert all(drift is not None and drift.since_s == left.since_s for drift in found)
    back = watched(detector, minutes(5, days=1)[60:120], first=FIRST + 60)
    assert back[-1] is None


def test_many_series_together_need_more_to_be_sure() -> None:
    one, many = (alarms(told(learnt(series=series), 1.25, length=600))[0] for series in (1, 1000))
    assert one < many
