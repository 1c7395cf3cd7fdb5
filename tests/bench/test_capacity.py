"""bench/capacity.py runs, and the truths that it grades by are those of its simulators."""

import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from queues.batching import Batching
from queues.cliff import Cliff
from queues.erlang import Erlang, chance_to_wait
from queues.freeze import Freeze
from queues.grade import BEDS, Bed, Grade, Mark
from queues.servers import Server, highest

from capacity.certify.trial import Start

SCRIPT = Path(__file__).parents[2] / "bench" / "capacity.py"


def bench(*arguments: str) -> "subprocess.CompletedProcess[str]":
    return subprocess.run([sys.executable, SCRIPT, *arguments], capture_output=True, text=True, timeout=150)


def test_it_runs_and_grades_what_was_asked_for() -> None:
    ran = bench("--seeds", "2", "--only", "cliff far", "--check")
    assert ran.returncode == 0, ran.stdout + ran.stderr
    assert "1 of 1 servers as promised, 2 searches each" in ran.stdout


def test_check_fails_where_a_promise_is_not_kept() -> None:
    ran = bench("--seeds", "2", "--only", "cliff near", "--most-requests", "1500", "--check", "--markdown")
    assert ran.returncode == 1, ran.stdout + ran.stderr
    assert "within 7% of the truth in" in ran.stdout


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (("--seeds", "0"), "--seeds 0: from 1 to 1000"),
        (("--only", "M/G/1"), "--only M/G/1: no server's name holds it; use one of M/M/1, 95% within 10"),
        (("--most-requests", "9"), "--most-requests 9: at least 100"),
    ],
)
def test_what_is_not_known_is_refused_by_name(arguments: tuple[str, ...], said: str) -> None:
    ran = bench(*arguments)
    assert ran.returncode == 2
    assert said in ran.stderr


SIMULATED: tuple[Server, ...] = (
    Erlang(1, 3, 0.2),
    Erlang(4, 5, 0.05),
    Batching(32, 50, 0.01, 0.001, 0.5, 0.050, (0.05, 0.05)),
    Batching(32, 50, 0.01, 0.001, 1.0, 0.038, (0.05, 0.05)),
    Freeze(100, 30, 1.5, 0.5, 0.10),
    Freeze(50, 20, 0.6, 0.2, 0.05),
    Cliff(10, 13, 0.02, 0.6, 0.05),
)


@pytest.mark.parametrize("start", ["empty", "overload"])
@pytest.mark.parametrize("server", SIMULATED, ids=lambda server: type(server).__name__)
def test_shares_of_bad_requests_are_those_of_the_formula(server: Server, start: Start) -> None:
    rate, requests = 0.9 * server.truth(), 120_000
    run = server.run(rate, start, np.random.default_rng(3))
    next(run)
    series, seconds, stayed = run.send(requests)
    for one, share in zip(series, server.shares(rate), strict=True):
        assert one[requests // 10 :].mean() == pytest.approx(share, rel=0.15, abs=0.0015)
    assert requests / seconds == pytest.approx(rate, rel=0.02)
    assert stayed > 0


@pytest.mark.parametrize("server", SIMULATED, ids=lambda server: type(server).__name__)
def test_a_longer_answer_begins_with_the_shorter_one(server: Server) -> None:
    runs = [server.run(0.8 * server.truth(), "empty", np.random.default_rng(5)) for _ in range(2)]
    for run in runs:
        next(run)
    assert all((a == b).all() for a, b in zip(runs[0].send(500)[0], runs[1].send(500)[0], strict=True))
    assert runs[0].send(300)[0][0].size == 300


def test_single_requests_fare_as_at_no_load() -> None:
    (alone,) = Erlang(4, 3, 0.05).alone(100_000, np.random.default_rng(1))
    assert alone.mean() == pytest.approx(np.exp(-3), rel=0.05)
    assert Erlang(4, 3, 0.05).shares(1e-9)[0] == pytest.approx(np.exp(-3), rel=1e-3)
    (frozen,) = Freeze(100, 30, 1.5, 0.5, 0.10).alone(30_000, np.random.default_rng(1))
    assert frozen.sum() == 10  # once a period: who asks one at a time meets a freeze once


def test_erlang_c_at_known_points() -> None:
    assert chance_to_wait(1, 0.7) == pytest.approx(0.7)
    assert chance_to_wait(2, 1.0) == pytest.approx(1 / 3)


def test_truth_is_the_edge_and_0_where_there_is_none() -> None:
    for bed in BEDS:
        truth, goals = bed.server.truth(), bed.server.goals()
        if truth:
            assert all(s <= g.budget * 1.001 for s, g in zip(bed.server.shares(truth), goals, strict=True))
            assert any(s > g.budget for s, g in zip(bed.server.shares(truth * 1.001), goals, strict=True))
        else:
            assert any(s > g.budget for s, g in zip(bed.server.shares(1e-9), goals, strict=True))
    assert highest(lambda rate: rate <= 3, 10) == pytest.approx(3)


BED = Bed("bed", Cliff(10, 13, 0.02, 0.6, 0.05))
GOOD = Mark(0.97, 1.05, 0.4, 1000, 5)
BROKEN: dict[str, tuple[list[Mark], tuple[str, ...]]] = {
    "nothing": ([GOOD] * 20, ()),
    "two over of twenty": ([Mark(1.02, 1.1, 1.1, 1000, 5)] * 2 + [GOOD] * 18, ()),
    "three over of twenty": ([Mark(1.02, 1.1, 1.1, 1000, 5)] * 3 + [GOOD] * 17, ("over capacity in 3 of 20",)),
    "one far over": ([Mark(1.2, 1.3, 2.5, 1000, 5)] + [GOOD] * 19, ("spends 2.50 budgets",)),
    "two too careful": (
        [Mark(0.90, 1.1, 0.2, 1000, 5)] * 2 + [GOOD] * 18,
        ("within 7% of the truth in 18 of 20",),
    ),
    "two without a certificate": (
        [Mark(None, 1.1, 0.0, 1000, 5)] * 2 + [GOOD] * 18,
        ("within 7% of the truth in 18 of 20",),
    ),
}


@pytest.mark.parametrize("broken", BROKEN)
def test_a_broken_promise_is_said(broken: str) -> None:
    marks, said = BROKEN[broken]
    assert Grade(BED, 10.0, tuple(marks)).faults == said


def test_nothing_must_be_certified_where_nothing_can() -> None:
    none = Mark(None, None, 0.0, 100, 1)
    assert Grade(BED, 0.0, (none,) * 20).faults == ()
    assert Grade(BED, 0.0, (none,) * 17 + (Mark(3.0, None, 1.2, 100, 1),) * 3).faults == ("over capacity in 3 of 20",)
