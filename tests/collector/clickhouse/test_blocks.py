"""Stretches cover the past once, and none is compared at a step that either store may have folded it beyond."""

from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from collector.clickhouse.blocks import blocks
from collector.clickhouse.tables import FOLDS
from collector.storage import retention
from slo.quantity import DAY_S, HOUR_S, MINUTE_S

NOW_S = 1_800_000_000
moments = st.integers(NOW_S - 40 * DAY_S, NOW_S)


def test_both_stores_fold_alike() -> None:
    assert FOLDS == retention.FOLDS


@given(moments, moments, st.integers(0, DAY_S))
def test_every_moment_lies_in_one_stretch(from_s: int, until_s: int, later_s: int) -> None:
    found = list(blocks(from_s, until_s, now_s=NOW_S + later_s))
    assert all(one.until_s == other.from_s for one, other in pairwise(found))
    if from_s < until_s:
        assert found[0].from_s <= from_s < found[0].until_s
        assert found[-1].from_s < until_s <= found[-1].until_s
    else:
        assert all(one.until_s > from_s for one in found)


@given(moments, st.integers(0, DAY_S))
def test_a_stretch_begins_at_its_step_and_crosses_no_day(from_s: int, later_s: int) -> None:
    for one in blocks(from_s, NOW_S, now_s=NOW_S + later_s):
        assert one.from_s % one.grain_s == one.until_s % one.grain_s == 0
        assert one.from_s // DAY_S == (one.until_s - 1) // DAY_S


@given(moments, st.integers(0, DAY_S))
def test_what_may_be_folded_is_compared_folded_and_what_a_window_reads_finely_is_not(from_s: int, later_s: int) -> None:
    now_s = NOW_S + later_s
    for one in blocks(from_s, NOW_S, now_s=now_s):
        for step_s, age_s in FOLDS:
            if now_s - one.from_s >= age_s - 30 * MINUTE_S:
                assert one.grain_s >= step_s
        for grain_s, window_s in ((MINUTE_S, HOUR_S), (600, 6 * HOUR_S), (HOUR_S, 3 * DAY_S)):
            if one.grain_s >= grain_s:
                assert one.until_s + grain_s <= now_s - window_s + one.grain_s or one.until_s <= now_s - window_s


@pytest.mark.parametrize(("age_s", "grain_s"), [(60, 1), (3 * HOUR_S, 60), (3 * DAY_S, 600), (20 * DAY_S, 3600)])
def test_the_older_the_longer(age_s: int, grain_s: int) -> None:
    (first, *_) = blocks(NOW_S - age_s, NOW_S - age_s + 1, now_s=NOW_S)
    assert first.grain_s == grain_s
