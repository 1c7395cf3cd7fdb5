"""Requests as a collector has recorded them, on real databases."""

import math
from dataclasses import replace

import numpy as np
import pytest
from sqlalchemy import Connection

from capacity.arrivals import dispersion, peak_rps
from capacity.errors import WorkloadError
from capacity.stored.database import named_database
from capacity.stored.recorded import (
    Steps,
    Tokens,
    Whose,
    drawn,
    recorded_arrivals,
    recorded_lengths,
    since_s,
    spread,
)
from collector.storage import upsert
from tests.capacity.stored.test_database import flags
from tests.collector.storage.test_commit import after

CHAT = Whose("", "chat", "m")
BEGIN_S = 1_800_000_000
STEPS = 360


def a_day(connection: Connection) -> None:
    """An hour: two instances of one service with two requests a second each, some of them refused, and a third sender
    whose requests are synthetic; prompts of two lengths."""
    rows = []
    for step in range(STEPS):
        for instance in ("a", "b"):
            of = (10, BEGIN_S + 10 * step, "", "chat", "m", instance, "proxy")
            rows += [
                (*of, "requests", '{"class":"","outcome":"ok"}', 18.0),
                (*of, "requests", '{"class":"","outcome":"rejected"}', 2.0),
                (*of, "tokens", '{"type":"input"}', 18.0 * 600),
                (*of, "tokens", '{"type":"output"}', 18.0 * 100),
            ]
        of = (10, BEGIN_S + 10 * step, "", "chat", "m", "c", "proxy")
        rows.append((*of, "requests", '{"class":"synthetic","outcome":"ok"}', 500.0))
        rows.append((10, BEGIN_S + 10 * step, "", "code", "m", "d", "proxy", "requests", '{"outcome":"ok"}', 7.0))
    upsert.COUNTER.write(connection, sorted(rows))
    strata = ((1, "ttft_to_256", 3), (2, "ttft_to_1k", 1))
    for number, signal, count in strata:
        upsert.SERIES.write(connection, [(number, "", "chat", "m", signal, "proxy", "a", "exp:5", 0)])
        row = (10, BEGIN_S, number, count, 1.0, 0.1, 1.0, 5, 0, 0, f"[{count}]")
        upsert.ROLLUP.write(connection, [row])


def test_requests_come_as_they_were_counted(database: str) -> None:
    after(database, a_day)
    url = named_database(*flags("--database", database))
    assert url is not None
    times, steps = recorded_arrivals(url, CHAT, 1)
    assert times.size == STEPS * 40
    assert steps.longest_s == 10
    counts = np.histogram(times, bins=BEGIN_S + 10 * np.arange(STEPS + 1))[0]
    assert set(counts.tolist()) == {40}
    assert peak_rps(times) == pytest.approx(4.0, rel=0.05)
    assert dispersion(times, 1.0) == pytest.approx(1, abs=0.2)
    every_model, _ = recorded_arrivals(url, Whose("", "chat", None), 1)
    assert every_model.size == times.size


def test_lengths_have_the_recorded_means_and_classes(database: str) -> None:
    after(database, a_day)
    url = named_database(*flags("--database", database))
    assert url is not None
    pairs = np.array(recorded_lengths(url, CHAT, 1))
    assert pairs.mean(axis=0).tolist() == pytest.approx([600, 100], rel=0.03)
    assert pairs.min() >= 1


def test_what_was_never_recorded_is_said(database: str) -> None:
    after(database, a_day)
    url = named_database(*flags("--database", database))
    assert url is not None
    with pytest.raises(WorkloadError, match="no requests of service chat, model other"):
        recorded_arrivals(url, Whose("", "chat", "other"), 1)
    assert recorded_lengths(url, Whose("", "code", None), 1) == ()


def test_more_than_can_be_replayed_is_refused(database: str, monkeypatch: pytest.MonkeyPatch) -> None:
    after(database, a_day)
    monkeypatch.setattr("capacity.stored.recorded.MAX_ROWS", 100)
    url = named_database(*flags("--database", database))
    assert url is not None
    with pytest.raises(
        WorkloadError, match=r"14,400 requests: more than 100 cannot be replayed; .* about 0.0056 of them"
    ):
        recorded_arrivals(url, CHAT, 1)  # 100 requests are 2 steps of 10 s and a half


def test_only_what_is_recent_is_taken_where_hours_are_named(database: str) -> None:
    after(database, a_day)
    url = named_database(*flags("--database", database))
    assert url is not None
    half = replace(CHAT, since_s=BEGIN_S + 10 * STEPS // 2)
    times, _ = recorded_arrivals(url, half, 1)
    assert times.size == STEPS // 2 * 40
    assert times[0] >= half.since_s
    assert np.array(recorded_lengths(url, half, 1)).mean(axis=0).tolist() == pytest.approx([600, 100], rel=0.03)
    with pytest.raises(WorkloadError, match="no requests of service chat, model m in those hours"):
        recorded_arrivals(url, replace(CHAT, since_s=BEGIN_S + 10 * STEPS), 1)


@pytest.mark.parametrize("hours", [math.nan, math.inf, 0.0, -1.0])
def test_records_are_read_from_a_moment_that_was(hours: float) -> None:
    assert (since_s(2.0, 10_000.0), since_s(1e300, 10_000.0), since_s(None, 10_000.0)) == (2800, 0, 0)
    with pytest.raises(WorkloadError, match=rf"--hours {hours:g}: must be above 0"):
        since_s(hours, 10_000.0)


def test_as_many_hours_are_named_as_hold_so_many_requests() -> None:
    steps = Steps([(0, 3600, 50.0), (3600, 3600, 30.0), (7200, 1800, 20.0)])
    assert [steps.hours_of(most) for most in (100, 99, 50, 49, 19)] == [2.5, 1.5, 1.5, 0.5, 0.0]


def test_requests_are_spread_over_their_step_alone() -> None:
    times = spread(Steps([(100, 10, 3.0), (200, 3600, 2.0)]), 7)
    assert times.size == 5
    assert ((times[:3] >= 100) & (times[:3] < 110)).all()
    assert ((times[3:] >= 200) & (times[3:] < 3800)).all()
    assert times.tolist() == sorted(times.tolist())


def test_prompts_without_classes_are_all_of_the_mean() -> None:
    pairs = np.array(drawn(Tokens(300.0, 50.0, (0, 0, 0, 0, 0)), 1))
    assert set(pairs[:, 0].tolist()) == {300}
    assert pairs[:, 1].mean() == pytest.approx(50, rel=0.05)
    assert pairs[:, 1].std() == pytest.approx(50, rel=0.1)
    assert {out for _, out in drawn(Tokens(3.0, 1.0, (0, 0)), 1)} == {1}


def test_classes_are_drawn_as_often_as_they_were_seen() -> None:
    pairs = np.array(drawn(Tokens(2000.0, 10.0, (1, 0, 0, 3, 0)), 1))
    scale = 2000 / pairs[:, 0].mean()
    assert scale == pytest.approx(1, abs=0.01)
    assert (pairs[:, 0] > np.median(pairs[:, 0]) / 4).mean() == pytest.approx(0.75, abs=0.02)
