"""What a burn is compared with: the latest time before it that was calm."""

from hypothesis import given
from hypothesis import strategies as st

from collector.judging.quiet import Step, Stretch, lag_s, quiet
from slo.objective import Objective, parse

LENGTH_S, UNTIL_S = 60, 1000


def objective(text: str = "signal: ttft, percentile: 90, threshold: 500ms") -> Objective:
    return parse(f"service: s\nobjectives:\n  - {{name: o, {text}}}\n")[0].objectives[0]


def steps(*bad: int, each: int = 10) -> list[Step]:
    """Steps of ten seconds that end at UNTIL_S, so many of ten events bad in each."""
    first_s = UNTIL_S - 10 * len(bad)
    return [Step(first_s + 10 * number, each - count, count) for number, count in enumerate(bad)]


def found(*bad: int, of: Objective | None = None) -> Stretch:
    return quiet(steps(*bad), of or objective("signal: availability, target: 90%"), length_s=LENGTH_S, until_s=UNTIL_S)


def test_what_lies_right_before_will_do_when_it_is_calm() -> None:
    assert found(*[0] * 20) == Stretch(940, 1000)
    assert found(*[0] * 19, 3) == Stretch(940, 1000)  # 3 of 60 are no more than half of a tenth


def test_what_burns_already_is_passed_over() -> None:
    assert found(*[0] * 20, 9, 9, 9) == Stretch(910, 970)
    assert found(*[0] * 6, *[9] * 30) == Stretch(640, 700)


def test_what_was_never_calm_is_compared_with_the_calmest() -> None:
    assert found(*[9] * 10, *[3] * 6, *[9] * 10) == Stretch(840, 900)


def test_nothing_known_is_compared_with_what_lies_right_before() -> None:
    assert found() == Stretch(940, 1000)


def test_a_deadline_that_passed_began_a_threshold_before() -> None:
    slow = objective("signal: e2e, percentile: 90, threshold: 30s")
    assert lag_s(slow) == 30
    assert lag_s(objective()) == 1
    assert lag_s(objective("signal: e2e, percentile: 90, threshold: 2h")) == 600
    assert lag_s(objective("signal: kv_occupancy, target: 90%, threshold: 90%")) == 0
    assert found(*[0] * 20, 9, 9, 9, of=slow) == Stretch(880, 940)


@given(st.lists(st.integers(0, 10), max_size=40))
def test_it_is_always_as_long_and_never_of_the_burn_itself(bad: list[int]) -> None:
    one = found(*bad)
    assert one.length_s == LENGTH_S
    assert one.until_s <= UNTIL_S
