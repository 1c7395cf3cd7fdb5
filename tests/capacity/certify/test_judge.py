"""Verdicts on a rate, from evidence that is plain to see."""

import math

import numpy as np
import pytest

from capacity.certify import judge
from capacity.certify.evidence import Evidence, evidence
from capacity.certify.judge import Rigour
from capacity.certify.trial import Ceiling, Goal, Seen

TTFT, ANSWERED = Goal("ttft", 0.05), Goal("answered", 0.001, is_watched=True)
CEILING = Ceiling(10.0, 0.0, 8.0)


def seen(bad: int, requests: int) -> Evidence:
    series = np.zeros(requests * 4 // 3, dtype=np.int8)
    series[np.linspace(requests // 3, series.size - 1, bad).astype(int)] = 1
    return evidence([series])


def test_looks_double_up_to_the_most_that_there_is_time_for() -> None:
    assert judge.looks(10, Rigour(most_requests=1000)) == (100, 200, 400, 800, 1000)
    assert judge.looks(10, Rigour(most_run_seconds=30)) == (100, 200, 300)
    assert judge.looks(1, Rigour(most_run_seconds=30)) == (100,)


def test_a_queue_is_remembered_the_longer_the_nearer_it_is_to_the_ceiling() -> None:
    assert judge.relaxation(9, CEILING, 0) == pytest.approx(9 / (math.sqrt(10) - 3) ** 2)
    assert judge.relaxation(0.1, CEILING, 4.0) == 12
    assert judge.relaxation(10, CEILING, 4.0) == math.inf
    assert judge.relaxation(9, Ceiling(10, 1, 8), 4.0) == math.inf


def test_one_objective_over_its_budget_refutes_and_is_named() -> None:
    goals = (TTFT, Goal("tpot", 0.05))
    assert judge.refuted_by(goals, [seen(100, 1000), seen(200, 1000)], error=0.05) == "tpot"
    assert judge.refuted_by(goals, [seen(60, 1000), seen(0, 1000)], error=0.05) is None


def test_all_objectives_must_be_shown_within_but_those_only_watched() -> None:
    assert judge.is_shown_within((TTFT,), [seen(10, 1000)], error=0.05)
    assert not judge.is_shown_within((TTFT,), [seen(0, 40)], error=0.05)
    assert judge.is_shown_within((TTFT, ANSWERED), [seen(10, 1000), seen(0, 1000)], error=0.05)
    assert judge.is_shown_within((TTFT, ANSWERED), [seen(10, 1000), seen(1, 1000)], error=0.05)
    assert not judge.is_shown_within((TTFT, ANSWERED), [seen(10, 1000), seen(20, 1000)], error=0.05)


def test_the_binding_objective_spends_the_largest_part_of_its_budget() -> None:
    part, name = judge.binding((TTFT, Goal("tpot", 0.01)), [seen(40, 1000), seen(9, 1000)])
    assert (name, part) == ("tpot", pytest.approx(0.9, rel=0.05))


def test_what_would_tell_grows_with_nearness_and_doubt_makes_it_less() -> None:
    far, near = (judge.requests_to_tell((TTFT,), [seen(bad, 1000)], Rigour()) for bad in (10, 40))
    assert far < 1000 < near
    assert judge.requests_to_tell((TTFT,), [seen(40, 1000)], Rigour(), doubt=1.0) < near
    assert judge.requests_to_tell((TTFT,), [seen(50, 1000)], Rigour()) == math.inf


def test_a_run_certifies_once_it_is_long_in_requests_and_in_time() -> None:
    run = Seen((np.zeros(600, dtype=np.int8),), 60.0, 4.0)
    assert judge.is_long_enough(run, 20, Rigour())
    assert not judge.is_long_enough(run, 70, Rigour())
    assert not judge.is_long_enough(run, 20, Rigour(least_seconds=61))


def test_a_shorter_run_is_enough_further_from_the_ceiling() -> None:
    rigour = Rigour(least_requests=1)
    worth = judge.least_worth((TTFT, ANSWERED), rigour)
    assert 59 < worth < 150
    lengths = [judge.least_run(rate, CEILING, rate / 2, worth, rigour) for rate in (2, 5, 8, 9.5, 10)]
    assert lengths == sorted(lengths)
    assert lengths[-1] == math.inf


def test_requests_in_the_system_are_those_of_a_server_that_slows_as_it_fills() -> None:
    full = Ceiling(10.0, 0.0, 16.0)  # 1.6 s each when 16 are worked on
    assert judge.expected_at_once(10, full, 0.05) == 16  # nothing that slows so much is a straight line
    assert judge.expected_at_once(4, full, 0.4) == pytest.approx(4 * 0.32 / (1 - 4 * 0.08))
    assert judge.expected_at_once(5, Ceiling(8, 0, 8), 1.0) == pytest.approx(5)


def test_looks_share_the_allowed_error() -> None:
    rigour = Rigour()
    assert judge.spent_certifying(1, rigour) == judge.spent_refuting(1, rigour) == rigour.error
    assert judge.spent_certifying(0.5, rigour) == rigour.error / 4
    assert judge.spent_refuting(2, rigour) == rigour.error
