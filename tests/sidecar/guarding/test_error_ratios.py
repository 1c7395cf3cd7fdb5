import math
from random import Random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sidecar.guarding.error_ratios import ErrorRatios
from sidecar.limits import GUARD_FEW, GUARD_FORGET_S, GUARD_WINDOW

S = 1_000_000_000


def seen(*ratios: float, at_ns: int = 0) -> ErrorRatios:
    errors = ErrorRatios()
    for ratio in ratios:
        errors.add(ratio, at_ns)
    return errors


def test_there_is_no_margin_before_enough_have_come_due() -> None:
    assert seen(*[1.0] * (GUARD_FEW - 1)).margin(0.9, 0) is None
    assert seen(*[1.0] * GUARD_FEW).margin(0.9, 0) == 1.0


@given(st.lists(st.floats(0, 10), min_size=GUARD_FEW, max_size=GUARD_WINDOW), st.floats(0.5, 0.999))
def test_the_margin_is_the_ratio_of_its_rank(ratios: list[float], share: float) -> None:
    rank = min(math.ceil((len(ratios) + 1) * share), len(ratios))
    assert seen(*ratios).margin(share, 0) == sorted(ratios)[rank - 1]


@pytest.mark.parametrize("share", [0.5, 0.9, 0.95])
def test_as_many_predictions_are_kept_as_were_to_be(share: float) -> None:
    chance, errors, kept, count = Random(11), ErrorRatios(), 0, 4000
    for _ in range(count):
        ratio = chance.lognormvariate(0.3, 0.5)
        margin = errors.margin(share, 0)
        kept += margin is not None and ratio <= margin
        errors.add(ratio, 0)
    assert kept / count == pytest.approx(share, abs=0.025)


def test_only_the_latest_count() -> None:
    errors = seen(*[9.0] * GUARD_WINDOW, *[1.0] * GUARD_WINDOW)
    assert errors.margin(0.99, 0) == 1.0


def test_old_ones_are_forgotten() -> None:
    errors = seen(*[9.0] * GUARD_FEW)
    for _ in range(GUARD_FEW):
        errors.add(1.0, GUARD_FORGET_S * S)
    assert errors.margin(0.99, GUARD_FORGET_S * S) == 9.0
    assert errors.margin(0.99, GUARD_FORGET_S * S + 1) == 1.0
    assert errors.margin(0.99, 3 * GUARD_FORGET_S * S) is None


@pytest.mark.parametrize(("ratio", "is_too_long"), [(0.49, True), (0.51, False), (1.0, False), (20.0, False)])
def test_predictions_are_too_long_when_most_are_twice_what_came(ratio: float, is_too_long: bool) -> None:
    errors = seen(*[ratio] * GUARD_FEW)
    assert errors.margin(0.95, 0) == ratio
    assert errors.is_too_long is is_too_long
