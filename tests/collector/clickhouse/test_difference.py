"""What is missing is what is held less what was sent; nothing is taken back."""

from hypothesis import given
from hypothesis import strategies as st

from collector.clickhouse.difference import NOTHING, Cells, Missing, grown, merged, of_cells, of_sums

KEY = ("", "chat", "m", 600)
counts = st.dictionaries(st.integers(-300, 300), st.integers(1, 10**9), max_size=8)


def cells(bins: dict[int, int], zero_count: int = 0) -> Cells:
    return Cells(sum(bins.values()) + zero_count, 1.0, 0.1, 2.0, zero_count, bins)


def test_a_row_that_was_never_sent_is_sent_as_it_is() -> None:
    assert of_sums({KEY: (0, 0)}, {}, origin="here") == Missing([("", "chat", "m", "here", 600, 0, 0)])


def test_of_a_row_that_grew_what_is_more_is_sent() -> None:
    assert of_sums({KEY: (7, 3)}, {KEY: (5, 3)}, origin="o") == Missing([("", "chat", "m", "o", 600, 2, 0)])


def test_what_was_sent_is_not_sent_again() -> None:
    assert of_sums({KEY: (7, 3)}, {KEY: (7, 3)}, origin="o") == Missing([])


def test_a_row_that_fell_is_left_alone_and_told_of() -> None:
    assert of_sums({KEY: (8, 1)}, {KEY: (7, 3)}, origin="o") == Missing([], fallen=1)
    assert of_sums({KEY: (6, 3)}, {KEY: (7, 3)}, origin="o") == Missing([])


def test_floating_sums_may_have_been_added_in_another_order() -> None:
    total = sum([0.1] * 10)
    assert total != 1.0
    assert of_sums({KEY: (1.0,)}, {KEY: (total,)}, origin="o") == Missing([])


@given(counts, counts, st.integers(0, 9), st.integers(0, 9))
def test_a_histogram_and_what_came_to_it_are_what_it_became(
    before: dict[int, int], more: dict[int, int], zeros: int, more_zeros: int
) -> None:
    sent, held = cells(before, zeros), merged(cells(before, zeros), cells(more, more_zeros))
    missing = of_cells({KEY: held}, {KEY: sent}, origin="o")
    assert missing.fallen == 0
    if not more and not more_zeros:
        assert missing.rows == []
        return
    ((*_, origin, start_s, count, _total, _least, _greatest, zero_count, bins),) = missing.rows
    assert (origin, start_s, count) == ("o", 600, sum(more.values()) + more_zeros)
    assert (bins, zero_count) == (more, more_zeros)


def test_a_histogram_that_lost_a_bucket_is_left_alone() -> None:
    assert of_cells({KEY: cells({1: 9})}, {KEY: cells({1: 1, 2: 1})}, origin="o") == Missing([], fallen=1)
    assert of_cells({KEY: cells({1: 1, 2: 9})}, {KEY: cells({1: 2})}, origin="o") == Missing([], fallen=1)


def test_an_extreme_that_one_does_not_know_is_the_others() -> None:
    found = merged(Cells(1, 1.0, None, None, 0, {1: 1}), Cells(1, 1.0, 0.5, 2.0, 0, {1: 1}))
    assert (found.min, found.max) == (0.5, 2.0)
    assert merged(NOTHING, NOTHING) == NOTHING


def test_steps_that_hold_more_of_anything() -> None:
    held = {0: (1, 5), 10: (1, 6), 20: (2, 5), 30: (0, 4)}
    sent = {0: (1, 5), 10: (1, 5), 20: (1, 5), 30: (1, 5)}
    assert grown(held, sent) == [10, 20]
    assert grown({0: (1, 0)}, {}) == [0]
