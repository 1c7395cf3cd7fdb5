"""The step's terms, from points that are made by known ones."""

import math

import pytest

from capacity.batch.fit import Fit, Mix, Point, fit

STATED, SHORT_PROMPTS, SHORT_ANSWERS = Mix(200, 50), Mix(50, 50), Mix(200, 12)
TRUTH = Fit(0.010, 0.0004, 2e-7, 1e-5, ())


def points(truth: Fit, *mixes: Mix) -> list[Point]:
    return [Point(batch, mix, truth.step_s(batch, mix)) for mix in mixes for batch in (1, 2, 4, 8, 16, 32)]


def test_terms_that_the_points_tell_apart_are_found() -> None:
    found = fit(points(TRUTH, STATED, SHORT_PROMPTS, SHORT_ANSWERS))
    assert (found.a, found.b, found.c, found.d) == pytest.approx((TRUTH.a, TRUTH.b, TRUTH.c, TRUTH.d), rel=1e-6)
    assert found.largest_residual() < 1e-9
    assert found.r_squared == pytest.approx(1)


def test_of_one_mix_the_sequence_is_given_what_cannot_be_told_apart() -> None:
    found = fit(points(TRUTH, STATED))
    assert (found.c, found.d) == (0, 0)
    assert found.each_s(STATED) == pytest.approx(TRUTH.each_s(STATED))


def test_no_term_is_below_zero() -> None:
    found = fit([Point(1, STATED, 0.030), Point(2, STATED, 0.020), Point(4, STATED, 0.010)])
    assert min(found.a, found.b, found.c, found.d) == 0
    assert found.largest(0.005, STATED) == 0


def test_one_point_is_a_fit_and_errors_count_as_parts_of_the_value() -> None:
    assert fit([Point(1, STATED, 0.01)]).step_s(1, STATED) == pytest.approx(0.01)
    found = fit([Point(1, STATED, 0.010), Point(1, STATED, 0.010), Point(1, STATED, 0.040)])
    assert 0.010 < found.step_s(1, STATED) < 0.015, "three measurements of relative error, not their mean"


def test_the_largest_batch_is_where_the_step_reaches_the_limit() -> None:
    largest = TRUTH.largest(0.030, STATED)
    assert TRUTH.step_s(largest, STATED) == pytest.approx(0.030)
    assert Fit(0.01, 0, 0, 0, ()).largest(0.02, STATED) == math.inf
    assert Fit(0.01, 0, 0, 0, ()).largest(0.005, STATED) == 0
