"""How long a search may still take: near the truth from its begin on, and nearer with every run."""

from capacity.batch.remaining import remaining_s
from capacity.batch.sitting import Account
from capacity.batch.trial import Answer, Ask, AskHeld, Held
from tests.capacity.batch.support import searched
from tests.capacity.batch.test_search import exact, plan

SETTING_S = 3.0
"""Between runs, to set the batch and come to rest."""


def test_what_is_left_is_told_within_a_half_from_the_first_run_on() -> None:
    """A server whose small batches end their runs in 4 s, and whose verdicts take 30."""
    answers = exact(lambda n: 0.01 + 0.001 * n, limit_s=0.0505, carries_rps=lambda _: 9.0)
    of = plan(least_seconds=10.0, most_seconds=60.0)
    told: list[tuple[float, float]] = []
    spent_s, heard = 0.0, Account()

    def answer(ask: Ask) -> Answer:
        nonlocal spent_s
        told.append((spent_s, remaining_s(of, heard.runs, ask, spent_s)))
        given = answers(ask)
        is_short = isinstance(ask, AskHeld) and len(heard.runs) < 11
        lasts_s = 4.0 if is_short else 30.0
        made = type(given)(**{name: getattr(given, name) for name in given.__slots__} | {"seconds": lasts_s})
        spent_s += (SETTING_S + lasts_s) if heard.hear(ask, made) else 0.0
        return made

    searched(of, answer)
    for before_s, left_s in told[: len(told) // 2]:
        assert 0.5 < (before_s + left_s) / spent_s < 2
    assert told[-1][1] > 0
    assert isinstance(heard.runs[0].answer, Held)


def test_without_a_most_that_a_run_may_take_its_least_counts() -> None:
    assert remaining_s(plan(least_seconds=10.0), [], AskHeld(1, "stated", 40), 0.0) > 0
