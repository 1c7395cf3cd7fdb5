"""Other workloads at the certified rate: which they are, and what is asked of them."""

from collections.abc import Generator
from dataclasses import replace

import numpy as np
import pytest

from capacity.certify.judge import Rigour
from capacity.certify.lengths import Lengths, lengths
from capacity.certify.search import Outcome
from capacity.certify.sensitivity import VARIATIONS, longest_s, name_of, search_and_vary, varied
from capacity.certify.trial import Answer, Ask, AskFlood, AskRun, Ceiling, Goal, Seen
from capacity.certify.workload import Tokens, Workload

GOALS = (Goal("ttft", 0.05), Goal("answered", 0.001, is_watched=True))
RIGOUR = Rigour(most_requests=3200)


def heard(going: Generator[Ask, Answer, Outcome], *, most_rps: float) -> tuple[Outcome, list[AskRun]]:
    """A search on a server that is good up to a rate, and answers prompts that are longer badly; its runs."""
    asked: list[AskRun] = []
    ask = next(going)
    while True:
        bad = 0
        if isinstance(ask, AskRun):
            asked.append(ask)
            bad = int(ask.rate_rps > most_rps or ask.variation == "longer prompts")
        answer: Answer = Ceiling(10.0, 0.0, 4.0)
        if not isinstance(ask, AskFlood):
            series = np.full(ask.requests, bad, dtype=np.int8)
            answer = Seen((series, np.zeros_like(series)), ask.requests / 10, 1.0)
        try:
            ask = going.send(answer)
        except StopIteration as end:
            return end.value, asked


def test_the_certified_rate_is_loaded_with_each_other_workload_once() -> None:
    outcome, asked = heard(search_and_vary(GOALS, RIGOUR), most_rps=7)
    assert outcome.certified is not None
    runs = [ask for ask in asked if ask.variation != "stated"]
    assert [ask.variation for ask in runs] == list(VARIATIONS) == [one.variation for one in outcome.varied]
    assert {(ask.rate_rps, ask.start) for ask in runs} == {(outcome.certified.rate_rps, "empty")}
    assert {ask.requests for ask in runs} == {400}  # 20 bad ones would spend the budget; what is watched asks for none
    assert [ask.number for ask in runs] == [one.run for one in outcome.varied]
    assert len({ask.number for ask in asked}) == len({(a.number, a.rate_rps, a.start, a.variation) for a in asked})
    spent = {one.variation: one.found[0].share for one in outcome.varied}
    assert spent == {name: float(name == "longer prompts") for name in VARIATIONS}


def test_where_nothing_is_certified_nothing_more_is_asked() -> None:
    outcome, asked = heard(search_and_vary(GOALS, RIGOUR), most_rps=0)
    assert (outcome.certified, outcome.varied) == (None, ())
    assert all(ask.variation == "stated" for ask in asked)


def test_a_run_takes_half_as_long_as_one_of_the_search_may() -> None:
    rigour = Rigour(least_requests=100, most_requests=20_000, most_run_seconds=150, most_seconds=1500)
    outcome, asked = heard(search_and_vary(GOALS, rigour), most_rps=7)
    assert outcome.certified is not None
    assert asked[-1].requests == 400 < 75 * outcome.certified.rate_rps
    brief = replace(rigour, most_run_seconds=110)
    outcome, asked = heard(search_and_vary(GOALS, brief), most_rps=7)
    assert outcome.certified is not None
    assert asked[-1].requests == int(55 * outcome.certified.rate_rps)
    assert longest_s(rigour) == len(VARIATIONS) * 75


@pytest.mark.parametrize(
    ("variation", "pair", "spans"),
    [
        ("stated", (100, 20), ((100, 200), (20, 20))),
        ("shorter prompts", (80, 20), ((80, 160), (20, 20))),
        ("longer prompts", (120, 20), ((120, 240), (20, 20))),
        ("longer answers", (100, 24), ((100, 200), (24, 24))),
    ],
)
def test_lengths_are_longer_or_shorter_by_a_fifth(
    variation: str, pair: tuple[int, int], spans: tuple[tuple[int, int], ...]
) -> None:
    recorded = varied(Workload("m", Lengths("t", pairs=((100, 20), (1, 1)))), variation)  # type: ignore[arg-type]
    assert recorded.lengths.pairs == (pair, (1, 1))
    by_hand = varied(Workload("m", lengths("100-200:20")), variation).lengths.spans  # type: ignore[arg-type]
    assert by_hand is not None
    assert tuple((span.low, span.high) for span in by_hand) == spans


def test_half_of_a_prompt_is_shared_where_nothing_was_and_nothing_where_something_was() -> None:
    unique = Workload("m", lengths("100:20"), tokens=Tokens(fixed=10, each=2))
    assert varied(unique, "other prefix").shared_words == 20
    assert name_of("other prefix", 0) == "half shared"
    assert varied(Workload("m", lengths("100:20"), shared_words=30), "other prefix").shared_words == 0
    assert name_of("other prefix", 30) == "nothing shared"
    assert name_of("longer prompts", 30) == "prompts +20%"
