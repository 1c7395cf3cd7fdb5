import math

import pytest

from demo_server.errors import BadRequestError
from demo_server.faults import HEALTHY, ErrorDice, Faults, changed, step_target_s, withheld_blocks


def test_named_faults_change_and_the_others_stay() -> None:
    slow = changed(HEALTHY, {"slow": 3})
    assert slow == Faults(slow=3.0)
    assert changed(slow, {"hang": True, "kv_pressure": 0.5}) == Faults(slow=3.0, hang=True, kv_pressure=0.5)
    assert changed(slow, {}) == slow


@pytest.mark.parametrize(
    ("patch", "says"),
    [
        ({"slwo": 2}, "unknown fault 'slwo'; known are slow, hang, kv_pressure, errors, queue"),
        ({"slow": 0.5}, "slow is 0.5; it must be a number from 1 to 1000"),
        ({"slow": math.nan}, "slow is nan; it must be a number from 1 to 1000"),
        ({"slow": math.inf}, "slow is inf; it must be a number from 1 to 1000"),
        ({"slow": True}, "slow is True; it must be a number from 1 to 1000"),
        ({"slow": "3"}, "slow is '3'; it must be a number from 1 to 1000"),
        ({"slow": None}, "slow is None; it must be a number from 1 to 1000"),
        ({"kv_pressure": 1.01}, "kv_pressure is 1.01; it must be a number from 0 to 1"),
        ({"errors": -0.1}, "errors is -0.1; it must be a number from 0 to 1"),
        ({"hang": 1}, "hang is 1; it must be true or false"),
        ({"queue": "yes"}, "queue is 'yes'; it must be true or false"),
        ({"slow": 2, "errors": 2}, "errors is 2; it must be a number from 0 to 1"),
        ({"slow": 2, "later": 2}, "unknown fault 'later'; known are slow, hang, kv_pressure, errors, queue"),
    ],
)
def test_what_is_wrong_is_named_in_one_line(patch: dict[str, object], says: str) -> None:
    with pytest.raises(BadRequestError) as caught:
        changed(HEALTHY, patch)
    assert caught.value.message == says


def test_of_a_long_value_the_beginning_is_shown() -> None:
    for patch in ({"slow": "9" * 10_000}, {"hang": "9" * 10_000}, {"9" * 10_000: 1}):
        with pytest.raises(BadRequestError, match="'9999") as caught:
            changed(HEALTHY, patch)
        assert len(caught.value.message) < 200


@pytest.mark.parametrize(
    ("slow", "measured_s", "floor_s", "target_s"),
    [
        (1.0, 0.002, 0.0, 0.002),  # healthy and without a floor: no wait at all
        (1.0, 0.002, 0.020, 0.020),
        (1.0, 0.030, 0.020, 0.030),
        (3.0, 0.030, 0.020, 0.090),
        (3.0, 0.002, 0.020, 0.060),
        (3.0, 0.002, 0.0, 0.015),  # a base of 5 ms, so that it shows
    ],
)
def test_a_slow_step_is_a_multiple_of_what_it_would_take(
    slow: float, measured_s: float, floor_s: float, target_s: float
) -> None:
    found_s = step_target_s(Faults(slow=slow), measured_s=measured_s, floor_s=floor_s)
    assert found_s == pytest.approx(target_s)


@pytest.mark.parametrize(("pressure", "blocks"), [(0.0, 0), (0.25, 2), (0.99, 9), (1.0, 10)])
def test_pressure_takes_a_share_of_the_blocks(pressure: float, blocks: int) -> None:
    assert withheld_blocks(Faults(kv_pressure=pressure), 10) == blocks


def test_errors_strike_their_share_half_at_once_half_later() -> None:
    dice = ErrorDice(seed=3)
    fates = [dice.throw(0.4) for _ in range(5000)]
    struck = [fate for fate in fates if fate is not None]
    later = [fate.after_tokens for fate in struck if fate.after_tokens is not None]
    assert abs(len(struck) / 5000 - 0.4) < 0.03
    assert abs(len(later) / len(struck) - 0.5) < 0.05
    assert set(later) == set(range(1, 9))


def test_the_same_seed_strikes_the_same_requests() -> None:
    one, same, other = ErrorDice(1), ErrorDice(1), ErrorDice(2)
    assert one.throw(0.0) is None  # leaves no trace in the stream of chance
    fates = [one.throw(0.5) for _ in range(50)]
    assert fates == [same.throw(0.5) for _ in range(50)]
    assert fates != [other.throw(0.5) for _ in range(50)]


def test_certain_errors_strike_everyone() -> None:
    dice = ErrorDice(0)
    assert all(dice.throw(1.0) is not None for _ in range(100))
