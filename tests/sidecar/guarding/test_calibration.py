import pytest
from hypothesis import given
from hypothesis import strategies as st

from sidecar.guarding.calibration import FEWEST, Calibration


def seen(count: int, *, ahead: int = 5, predicted_s: float = 1.0, actual_s: float = 0.25) -> Calibration:
    calibration = Calibration()
    for _ in range(count):
        calibration.add(ahead, predicted_s=predicted_s, actual_s=actual_s)
    return calibration


def test_a_wait_that_never_came_is_predicted_no_longer() -> None:
    assert seen(20, actual_s=0.0).factor(5) == 0.0
    assert seen(20, actual_s=0.25).factor(5) == pytest.approx(0.25)


def test_a_few_say_nothing() -> None:
    assert seen(FEWEST).factor(5) == 1.0
    assert seen(FEWEST + 1).factor(5) < 1.0


def test_each_depth_speaks_for_itself() -> None:
    found = seen(20, ahead=5)
    assert [found.factor(ahead) for ahead in (3, 4, 7, 8)] == pytest.approx([1.0, 0.25, 0.25, 1.0])


@given(st.integers(0, 1 << 40), st.lists(st.tuples(st.floats(0, 1e6), st.floats(0, 1e6)), max_size=30))
def test_a_wait_is_only_ever_shortened(ahead: int, waits: list[tuple[float, float]]) -> None:
    calibration = Calibration()
    for predicted_s, actual_s in waits:
        calibration.add(ahead, predicted_s=predicted_s, actual_s=actual_s)
    assert 0 <= calibration.factor(ahead) <= 1
