"""The search, told by a script what comes of each rate, and graded on servers of known capacity."""

from collections.abc import Callable
from itertools import pairwise

import numpy as np
import pytest
from queues.grade import BEDS, grade

from capacity.certify.judge import Rigour
from capacity.certify.search import Outcome, search
from capacity.certify.trial import Ask, AskAlone, AskFlood, AskRun, Ceiling, Goal, Seen

GOALS = (Goal("ttft", 0.05),)
RIGOUR = Rigour(most_requests=6400)
Share = Callable[[AskRun], float]


def seen(share: float, requests: int, *, is_late: bool = False) -> Seen:
    bad = (np.arange(requests) * share % 1 + share >= 1).astype(np.int8)
    return Seen((bad,), requests / 10, 1.0, is_late)


def told(share: Share, *, alone: float = 0.0, rigour: Rigour = RIGOUR, late: bool = False) -> tuple[Outcome, list[Ask]]:
    """The outcome where so large a share is bad, evenly spread, under a ceiling of 10; and everything asked."""
    going, asked = search(GOALS, rigour), []
    ask = next(going)
    while True:
        asked.append(ask)
        try:
            if isinstance(ask, AskFlood):
                ask = going.send(Ceiling(10.0, 0.0, 4.0))
            elif isinstance(ask, AskAlone):
                ask = going.send(seen(alone, ask.requests))
            else:
                ask = going.send(seen(share(ask), ask.requests, is_late=late))
        except StopIteration as end:
            outcome: Outcome = end.value
            return outcome, asked


def cliff(ask: AskRun) -> float:
    return 0.002 if ask.rate_rps <= 7 else 0.5


def test_a_bracket_closes_around_the_edge() -> None:
    outcome, asked = told(cliff)
    assert outcome.certified is not None
    assert outcome.refuted is not None
    assert 0.93 * 7 < outcome.certified.rate_rps <= 7 < outcome.refuted.rate_rps < 1.1 * 7
    assert [type(ask) for ask in asked[:3]] == [AskAlone, AskAlone, AskFlood]


def test_the_same_answers_lead_to_the_same_questions() -> None:
    assert told(cliff)[1] == told(cliff)[1]


def test_a_certificate_rests_on_a_run_from_empty_and_one_from_overload() -> None:
    outcome, asked = told(cliff)
    assert outcome.certified is not None
    starts = {ask.number: ask.start for ask in asked if isinstance(ask, AskRun)}
    assert [starts[number] for number in outcome.certified.runs] == ["empty", "overload"]


def test_runs_go_on_from_look_to_look_and_are_never_taken_up_again() -> None:
    runs = [ask for ask in told(cliff)[1] if isinstance(ask, AskRun)]
    numbers = [ask.number for ask in runs]
    assert numbers == sorted(numbers)
    for before, after in pairwise(runs):
        assert before.number != after.number or before.requests < after.requests


def test_overload_is_refuted_at_the_first_looks() -> None:
    asked = told(cliff)[1]
    over = [ask.requests for ask in asked if isinstance(ask, AskRun) and ask.rate_rps > 7]
    assert max(over) <= 200


def test_nothing_is_refuted_before_a_run_has_lasted_long_enough() -> None:
    asked = told(cliff, rigour=Rigour(most_requests=6400, least_seconds=75))[1]
    over = [ask.requests for ask in asked if isinstance(ask, AskRun) and 7 < ask.rate_rps < 10]
    assert max(over) == 800


def test_overload_is_refuted_even_if_it_shows_before_a_run_may_refute() -> None:
    outcome, _ = told(
        lambda ask: 0.002 if ask.rate_rps <= 7 else 1.0, rigour=Rigour(most_requests=800, least_seconds=75)
    )
    assert outcome.refuted is not None
    assert all(probe.state == "refuted" for probe in outcome.probes if probe.rate_rps > 7)


def test_a_rate_that_does_not_recover_from_overload_is_not_certified() -> None:
    def metastable(ask: AskRun) -> float:
        return 0.9 if ask.start == "overload" and ask.rate_rps > 4 else cliff(ask)

    outcome, _ = told(metastable)
    assert outcome.certified is not None
    assert 0.9 * 4 < outcome.certified.rate_rps <= 4
    assert any("does not recover" in probe.why for probe in outcome.probes)


def test_where_single_requests_spend_half_of_the_budget_the_search_ends_at_once() -> None:
    outcome, asked = told(cliff, alone=0.04)
    assert outcome.certified is None
    assert "alone on the server already miss ttft" in outcome.why_not
    assert outcome.needs > 0
    assert all(isinstance(ask, AskAlone) for ask in asked)


def test_a_share_at_the_edge_everywhere_is_not_certifiable_and_says_what_would_tell() -> None:
    outcome, _ = told(lambda _ask: 0.049)
    assert outcome.certified is None
    assert outcome.why_not
    assert outcome.needs > RIGOUR.most_requests


def test_a_client_that_is_late_refutes_nothing() -> None:
    outcome, _ = told(cliff, late=True)
    assert outcome.refuted is None
    assert any("client itself was late" in probe.why for probe in outcome.probes)


def test_time_that_is_spent_ends_the_search_with_what_it_has() -> None:
    short, long = (
        told(cliff, rigour=Rigour(most_requests=6400, most_run_seconds=200, most_seconds=seconds))[0]
        for seconds in (500, 5000)
    )
    assert 1 <= len(short.probes) < len(long.probes)
    assert long.certified is not None


def test_runs_too_short_for_any_certificate_are_not_begun() -> None:
    outcome, asked = told(cliff, rigour=Rigour(most_requests=6400, most_run_seconds=5))
    assert not any(isinstance(ask, AskRun) for ask in asked)
    assert "too short to certify any rate" in outcome.why_not
    assert outcome.needs > 100


QUICK = ("M/M/4, 95% within 5", "M/M/4, 90% within 4", "cliff far from the ceiling", "M/M/4, 95% within 2.5")


@pytest.mark.parametrize("bed", [bed for bed in BEDS if bed.name in QUICK], ids=lambda bed: bed.name)
def test_what_is_certified_is_true(bed: object) -> None:
    assert grade(bed, range(4), 100_000).faults == ()  # type: ignore[arg-type]
