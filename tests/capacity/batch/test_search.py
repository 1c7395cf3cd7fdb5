"""The search on the birth-death bed, whose answer is known in closed form, and on scripted servers."""

from collections.abc import Callable, Sequence

import numpy as np
import pytest

from capacity.batch.fit import Fit, Mix, Point
from capacity.batch.search import Outcome, Plan, search
from capacity.batch.trial import Answer, Ask, AskHeld, AskOpen, Held, Opened
from capacity.certify.evidence import Series
from capacity.certify.trial import Goal

MIX = Mix(100, 50)
TPOT, TTFT = Goal("tpot", 0.05), Goal("ttft", 0.05)
SEEDS = range(6)


def run(plan: Plan, answer: Callable[[Ask], Answer]) -> tuple[Outcome, list[Ask]]:
    going, asked = search(plan), []
    ask = next(going)
    while True:
        asked.append(ask)
        try:
            ask = going.send(answer(ask))
        except StopIteration as end:
            return end.value, asked


def exact(
    step_s: Callable[[int], float], *, limit_s: float, carries_rps: Callable[[int], float]
) -> Callable[[Ask], Answer]:
    """A server without chance: a step of so long, and every wait kept up to a rate."""

    def answer(ask: Ask) -> Answer:
        if isinstance(ask, AskOpen):
            is_bad = ask.rate_rps > carries_rps(ask.batch)
            return Opened((np.full(ask.requests, int(is_bad), dtype=np.int8),), 60.0)
        took_s = step_s(ask.batch)
        bad = np.full(ask.requests, int(took_s > limit_s), dtype=np.int8)
        return Held(MIX, took_s, (took_s,), (bad,), ask.batch / (50 * took_s), 60.0)

    return answer


def plan(**changed: object) -> Plan:
    fixed: dict[str, object] = {
        "held_goals": (TPOT,),
        "thresholds_s": (0.050,),
        "open_goals": (TTFT,),
        "wait_s": 0.5,
        "most_batch": 256,
    }
    return Plan(**(fixed | changed))  # type: ignore[arg-type]


def test_on_the_birth_death_bed_the_optimum_is_found_within_one() -> None:
    from queues.batching import Batching
    from queues.tuning import Tuning, tuned

    server = Batching(1, 50, 0.01, 0.001, 0.5, 0.050, (0.05, 0.05))
    for bed in (Tuning(server, 0.03, rate_rps=9.0), Tuning(server, 0.08, rate_rps=9.0), Tuning(server, 0.03)):
        found = [tuned(bed, seed, most_requests=400)[0] for seed in SEEDS]
        assert sum(abs((one.chosen or 0) - bed.largest()) <= 1 for one in found) >= 0.9 * len(SEEDS)
        if bed.rate_rps is not None:
            least = bed.least()
            assert least is not None
            assert all(one.feasible_min is not None and abs(one.feasible_min - least) <= 3 for one in found)


def test_a_straight_line_is_predicted_and_confirmed_in_two_probes() -> None:
    found, asked = run(
        plan(rate_rps=5.0), exact(lambda n: 0.01 + 0.001 * n, limit_s=0.0505, carries_rps=lambda n: n / 2)
    )
    assert (found.predicted, found.chosen, found.feasible_max, found.feasible_min) == (40, 40, 40, 10)
    held = [probe.batch for probe in found.probes if probe.kind == "held"]
    assert held == [40, 41]
    assert found.fit.a == pytest.approx(0.01)
    # Within 1 % of what 40 end: n / (10 + n) >= 0.99 * 40 / 50.
    assert found.efficient == 39
    assert {ask.mix for ask in asked if isinstance(ask, AskHeld)} == {"stated", "short prompts", "short answers"}


def test_a_step_that_jumps_is_found_by_halving() -> None:
    found, _ = run(
        plan(open_goals=()), exact(lambda n: 0.01 if n <= 23 else 0.09, limit_s=0.050, carries_rps=lambda _: 1.0)
    )
    assert (found.chosen, found.feasible_min, found.feasible_max) == (23, 1, 23)


def test_a_rate_that_no_batch_carries_says_how_many_servers_would() -> None:
    found, _ = run(plan(rate_rps=50.0), exact(lambda n: 0.01 + 0.001 * n, limit_s=0.050, carries_rps=lambda _: 9.0))
    assert (found.chosen, found.feasible_max) == (None, 40)
    assert "ttft is not kept at 50 requests/s by any batch" in found.why_not
    assert found.replicas is not None
    assert found.replicas > 50 / 9


def test_without_a_rate_it_is_the_largest_tested_part_that_is_carried() -> None:
    found, _ = run(plan(), exact(lambda n: 0.01 + 0.001 * n, limit_s=0.0505, carries_rps=lambda _: 9.0))
    ends_rps = 40 / (50 * 0.050)
    assert found.rate_rps == pytest.approx(0.55 * ends_rps)
    assert found.chosen == 40


def test_a_wait_that_only_smaller_batches_keep_chooses_one_of_them() -> None:
    def carries(batch: int) -> float:
        return 100.0 if batch <= 12 else 0.0

    found, _ = run(plan(), exact(lambda n: 0.01 + 0.001 * n, limit_s=0.0505, carries_rps=carries))
    assert (found.chosen, found.feasible_max) == (10, 40)
    never, _ = run(plan(), exact(lambda n: 0.01 + 0.001 * n, limit_s=0.0505, carries_rps=lambda _: 0.0))
    assert (never.chosen, never.why_not) == (None, "the promise of the wait is not kept at any rate or batch")


def test_one_sequence_may_already_be_too_slow() -> None:
    found, _ = run(plan(), exact(lambda n: 0.06 + 0.001 * n, limit_s=0.050, carries_rps=lambda _: 9.0))
    assert (found.chosen, found.feasible_max) == (None, None)
    assert "even one sequence" in found.why_not


def test_no_larger_batch_than_allowed_is_tried() -> None:
    found, asked = run(
        plan(most_batch=20), exact(lambda n: 0.01 + 0.001 * n, limit_s=0.050, carries_rps=lambda n: n / 2)
    )
    assert found.chosen == 20
    assert max(ask.batch for ask in asked) == 20


def test_without_a_promise_of_the_step_it_grows_until_that_is_of_no_use() -> None:
    answer = exact(lambda n: 0.01 if n <= 16 else 0.01 * n / 16, limit_s=1.0, carries_rps=lambda n: n / 2)

    def without(ask: Ask) -> Answer:
        heard = answer(ask)
        return Held(heard.mix, heard.step_s, (), (), heard.rate_rps, 60.0) if isinstance(heard, Held) else heard

    found, _ = run(plan(held_goals=(), thresholds_s=()), without)
    assert found.chosen == 32
    assert found.tails == ()


def test_an_open_loop_run_that_is_too_short_for_its_queue_keeps_nothing() -> None:
    # 40 end 16 a second: at 15.5 the queue remembers 1,024 requests, and no run may be so long.
    found, _ = run(plan(rate_rps=15.5), exact(lambda n: 0.01 + 0.001 * n, limit_s=0.0505, carries_rps=lambda _: 99.0))
    opened = [probe for probe in found.probes if probe.kind == "open"]
    assert not opened[0].verdict.is_kept
    assert not opened[0].verdict.is_sure
    assert opened[0].is_too_short


def test_a_run_is_gone_on_with_for_as_long_as_it_may_last() -> None:
    def unsure(ask: Ask) -> Answer:
        bad = (np.arange(ask.requests) % 20 == 0).astype(np.int8)
        if isinstance(ask, AskOpen):
            return Opened((bad,), ask.requests / 10)
        return Held(MIX, 0.01 * ask.batch, (0.01 * ask.batch,), (bad,), 1.0, ask.requests / 10)

    def longest(**changed: object) -> int:
        _, asked = run(plan(most_batch=4, rate_rps=1.0, most_requests=1000, **changed), unsure)
        return max(ask.requests for ask in asked)

    assert longest() == 1000
    assert longest(most_seconds=30.0) == 300
    assert longest(most_seconds=1.0) == 80


def test_a_disturbance_while_it_calibrates_does_not_hold_it_back() -> None:
    calm = exact(lambda n: 0.01 + 0.001 * n, limit_s=0.0505, carries_rps=lambda n: n / 2)
    disturbed = exact(lambda _: 0.09, limit_s=0.0505, carries_rps=lambda n: n / 2)
    seen: set[int] = set()

    def answer(ask: Ask) -> Answer:
        is_first = isinstance(ask, AskHeld) and ask.batch == 4 and 4 not in seen
        seen.add(ask.batch)
        return disturbed(ask) if is_first else calm(ask)

    found, asked = run(plan(rate_rps=5.0), answer)
    assert found.chosen == 40
    assert max(ask.batch for ask in asked) <= 80


def test_at_a_stated_rate_smaller_batches_are_tried_before_it_is_given_up() -> None:
    def carries(batch: int) -> float:
        return 100.0 if batch <= 12 else 0.0

    answer = exact(lambda n: 0.01 + 0.001 * n, limit_s=0.0505, carries_rps=carries)
    found, _ = run(plan(rate_rps=4.0), answer)
    assert (found.chosen, found.feasible_max, found.rate_rps) == (10, 40, 4.0)
    _, asked = run(plan(rate_rps=9.0), exact(lambda n: 0.01 + 0.001 * n, limit_s=0.0505, carries_rps=lambda _: 0.0))
    tried = {ask.batch for ask in asked if isinstance(ask, AskOpen) and ask.rate_rps == 9.0}
    assert tried == {40, 20}, "10 end 10 requests/s: to show that they keep 9 takes 500 requests, and 400 are allowed"


def test_a_verdict_is_sure_by_accident_no_more_often_than_said_however_often_it_is_looked_at() -> None:
    chance = np.random.default_rng(11)
    wrong, runs = 0, 300
    for _ in range(runs):
        bad = (chance.random(400) < 1.0001 * TPOT.budget).astype(np.int8)

        def answer(ask: Ask, bad: Series = bad) -> Answer:
            return Held(MIX, 0.01, (0.01,), (bad[: ask.requests],), 1.0, 60.0)

        found, _ = run(plan(open_goals=(), most_batch=1), answer)
        wrong += found.probes[0].verdict.is_kept and found.probes[0].verdict.is_sure
    assert wrong <= 0.05 * runs


def test_the_step_is_fitted_once_for_each_answer(monkeypatch: pytest.MonkeyPatch) -> None:
    from capacity.batch import search as searching

    fits: list[int] = []
    plain = searching.fit

    def counted(points: Sequence[Point]) -> Fit:
        fits.append(len(points))
        return plain(points)

    monkeypatch.setattr(searching, "fit", counted)
    _, asked = run(plan(rate_rps=5.0), exact(lambda n: 0.01 + 0.001 * n, limit_s=0.0505, carries_rps=lambda n: n / 2))
    assert 0 < len(fits) <= sum(isinstance(ask, AskHeld) for ask in asked)
