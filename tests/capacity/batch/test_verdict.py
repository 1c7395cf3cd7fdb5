"""Kept or broken, surely or not."""

import numpy as np

from capacity.batch.verdict import verdict
from capacity.certify.trial import Goal, as_series

TPOT, TTFT = Goal("tpot", 0.05), Goal("ttft", 0.10)


def test_what_is_seen_decides_and_how_much_of_it_says_how_surely() -> None:
    few, many = verdict([TPOT], [as_series("0" * 40)]), verdict([TPOT], [as_series("0" * 400)])
    assert (few.is_kept, few.is_sure, many.is_kept, many.is_sure) == (True, False, True, True)
    bad = verdict([TPOT], [as_series("01" * 100)])
    assert (bad.is_kept, bad.is_sure) == (False, True)


def test_the_worst_promise_binds_and_every_one_must_be_sure() -> None:
    one_bad = np.zeros(400, dtype=np.int8)
    one_bad[::20] = 1
    judged = verdict([TPOT, TTFT], [np.zeros(400, dtype=np.int8), one_bad])
    assert (judged.binding, judged.is_kept, judged.is_sure) == ("ttft", True, True)
    assert judged.part_spent == 0.5
    edge = verdict([TPOT, TTFT], [one_bad, one_bad])
    assert (edge.binding, edge.is_kept, edge.is_sure) == ("tpot", True, False)
