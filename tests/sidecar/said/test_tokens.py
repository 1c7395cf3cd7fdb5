"""The tokens of one answer: their times, and which count of them holds."""

from typing import Any

import pytest

from sidecar.said.facts import ANSWER, NOTHING, REASONING, Event, Usage
from sidecar.said.tokens import Tokens

Told = list[tuple[int, Event]]


def tokens_of(told: Told, *, choices: int = 1, streamed: bool = True) -> Tokens:
    tokens = Tokens(choices)
    for at_ns, fact in told:
        tokens.take(fact, at_ns, streamed=streamed)
    return tokens


def usage(output: int | None, *, reasoning: int = 0, prompt: int | None = None) -> Event:
    return Event(usage=Usage(prompt, output, reasoning))


def so_far(progress: int, *, choice: int = 0) -> Event:
    return Event(answer=True, progress=progress, choice=choice)


NONE: dict[str, Any] = {"events": 0, "output_tokens": None, "streamed_tokens": None, "per_token_s": None}
ANSWERS: dict[str, tuple[Told, dict[str, Any]]] = {
    "nothing": ([], {**NONE, "answered": False, "first_at_ns": None, "source": "chunks"}),
    "events without a token": ([(1, NOTHING), (2, NOTHING)], {**NONE, "answered": False}),
    "one token": (
        [(5, ANSWER)],
        {"events": 1, "first_at_ns": 5, "last_at_ns": 5, "longest_gap_ns": 0, "per_token_s": None},
    ),
    "three tokens": (
        [(10, ANSWER), (30, ANSWER), (100, ANSWER)],
        {"first_at_ns": 10, "last_at_ns": 100, "longest_gap_ns": 70, "output_tokens": 3, "per_token_s": 45e-9},
    ),
    "reasoning before the answer": (
        [(10, REASONING), (30, ANSWER)],
        {"first_at_ns": 10, "first_answer_at_ns": 30, "events": 2, "answered": True},
    ),
    "a count that comes last holds": (
        [(10, ANSWER), (30, ANSWER), (31, usage(5, prompt=7))],
        {"output_tokens": 5, "streamed_tokens": 5, "source": "usage", "input_tokens": 7, "per_token_s": 5e-9},
    ),
    "a count beside its token holds": (
        [(10, ANSWER), (30, Event(answer=True, usage=Usage(7, 4)))],
        {"output_tokens": 4, "source": "usage"},
    ),
    "choices that are each counted by themselves add up": (
        [
            (10, Event(answer=True, progress=2, usage=Usage(7, 2))),
            (20, Event(answer=True, choice=1, progress=3, usage=Usage(7, 3))),
            (30, Event(answer=True, progress=6, usage=Usage(7, 6))),
        ],
        {"events": 3, "output_tokens": 9, "source": "usage", "input_tokens": 7, "per_token_s": None},
    ),
    "a choice that ends in a token without text is counted whole": (
        [(10, Event(answer=True, progress=2, usage=Usage(7, 2))), (20, Event(progress=3, usage=Usage(7, 3)))],
        {"events": 1, "output_tokens": 3},
    ),
    "a count that tokens follow is stale, the prompt's is not": (
        [(5, usage(9, prompt=7)), (10, ANSWER), (30, ANSWER)],
        {"output_tokens": 2, "source": "chunks", "input_tokens": 7},
    ),
    "a count of the prompt alone makes none stale": (
        [(10, ANSWER), (11, usage(3)), (12, usage(None, prompt=7))],
        {"output_tokens": 3, "source": "usage", "input_tokens": 7},
    ),
    "hidden reasoning is no part of the pace": (
        [(10, ANSWER), (30, ANSWER), (31, usage(12, reasoning=10))],
        {"output_tokens": 12, "streamed_tokens": 2, "per_token_s": 20e-9},
    ),
    "shown reasoning is": (
        [(10, REASONING), (30, ANSWER), (31, usage(12, reasoning=10))],
        {"output_tokens": 12, "streamed_tokens": 12},
    ),
    "all hidden but one has no pace": (
        [(10, ANSWER), (30, ANSWER), (31, usage(11, reasoning=10))],
        {"streamed_tokens": 1, "per_token_s": None},
    ),
    "many tokens in one event have no pace": (
        [(10, ANSWER), (31, usage(40))],
        {"streamed_tokens": 40, "per_token_s": None},
    ),
    "a second choice has no pace": (
        [(10, ANSWER), (20, Event(answer=True, choice=1)), (30, ANSWER)],
        {"events": 3, "per_token_s": None},
    ),
    "what repeats and adds nothing is no token": (
        [(10, so_far(1)), (20, so_far(1)), (30, so_far(3)), (40, so_far(2))],
        {"events": 2, "last_at_ns": 30},
    ),
    "each choice has its own progress": (
        [(10, so_far(5)), (20, so_far(2, choice=1)), (30, so_far(3, choice=1))],
        {"events": 3, "last_at_ns": 30},
    ),
    "all at one moment is no time at all": ([(10, ANSWER), (10, ANSWER)], {"per_token_s": 0.0}),
}


@pytest.mark.parametrize("sentence", ANSWERS)
def test_answers(sentence: str) -> None:
    told, expect = ANSWERS[sentence]
    tokens = tokens_of(told)
    assert {key: getattr(tokens, key) for key in expect} == pytest.approx(expect)


def test_several_choices_that_were_asked_have_no_pace() -> None:
    assert tokens_of([(10, ANSWER), (30, ANSWER)], choices=2).per_token_s is None


def test_an_answer_that_is_not_streamed_has_counts_and_no_times() -> None:
    tokens = tokens_of([(10, Event(answer=True, usage=Usage(3, 40)))], streamed=False)
    assert tokens.answered
    assert (tokens.events, tokens.first_at_ns, tokens.streamed_tokens, tokens.per_token_s) == (0, None, None, None)
    assert (tokens.input_tokens, tokens.output_tokens, tokens.source) == (3, 40, "usage")


def test_no_more_progress_is_kept_than_choices_can_be() -> None:
    tokens = tokens_of([(n, so_far(1, choice=n)) for n in range(1000)])
    assert tokens.events == 1000
    assert len(tokens._progress) == 128


@pytest.mark.parametrize("times_ns", [[5], [5, 6], [5, 9, 10], [5, 6, 16, 17]])
@pytest.mark.parametrize("answer", [True, False])
def test_a_run_is_its_tokens_one_by_one(times_ns: list[int], answer: bool) -> None:
    one, run = Tokens(1), Tokens(1)
    for tokens in (one, run):
        tokens.token(1)
    for at_ns in times_ns:
        one.token(at_ns, answer=answer)
    run.run(times_ns, answer=answer)
    assert [getattr(one, name) for name in Tokens.__slots__] == [getattr(run, name) for name in Tokens.__slots__]
