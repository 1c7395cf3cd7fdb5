"""Rows as tensors: the form they need, the form that is kept for them, and the padding between."""

import pytest
import torch

from demo_server.inputs import Form, Inputs, Row, form_of, rounded

CPU = torch.device("cpu")


def test_a_form_is_what_its_rows_need() -> None:
    rows = [Row([7], 5, [1, 2]), Row([8], 0, [3]), Row([9], 11, [4, 5, 6])]
    assert form_of(rows) == Form(rows=3, new=1, width=3, is_drawn=False)
    assert form_of([*rows, Row([1], 0, [0], temperature=0.5)]).is_drawn
    assert form_of([Row([1, 2, 3], 4, [0, 1])]) == Form(rows=1, new=3, width=2, is_drawn=False)


def test_few_forms_are_kept_and_none_is_half_as_large_again() -> None:
    kept = [rounded(Form(count, 1, 1, is_drawn=True)).rows for count in range(1, 1025)]
    assert kept == sorted(kept)
    assert all(count <= size < 1.5 * count for count, size in enumerate(kept, 1))
    assert sorted(set(kept))[:10] == [1, 2, 3, 4, 6, 8, 12, 16, 24, 32]
    assert len(set(kept)) == 20
    assert all(rounded(Form(size, 1, size, is_drawn=True)).width == size for size in kept), "a kept form is its own"


def test_tokens_go_where_their_blocks_are() -> None:
    inputs = Inputs(Form(2, 3, 2, is_drawn=False), block_size=4, scratch=9, device=CPU)
    inputs.fill([Row([10, 11, 12], 0, [5]), Row([20, 21, 22], 3, [7, 2], endless=True)])
    batch = inputs.batch
    assert batch.tokens.tolist() == [[10, 11, 12], [20, 21, 22]]
    assert batch.positions.tolist() == [[0, 1, 2], [3, 4, 5]]
    assert batch.slots.tolist() == [20, 21, 22, 31, 8, 9]
    assert batch.blocks.tolist() == [[5, 9], [7, 2]]
    assert inputs.rules.endless.tolist() == [0, 1]
    assert inputs.rules.draws is None


def test_what_is_over_is_padding_that_touches_scratch_alone() -> None:
    inputs = Inputs(Form(3, 1, 2, is_drawn=True), block_size=4, scratch=9, device=CPU)
    held = (inputs.batch.tokens.data_ptr(), inputs.batch.blocks.data_ptr())
    inputs.fill([Row([1], 6, [4, 0], temperature=1.0, top_p=0.5, uniform=0.25)] * 3)
    inputs.fill([Row([5], 1, [3], temperature=0.5, top_p=0.75, uniform=0.125)])
    assert inputs.batch.tokens.tolist() == [[5], [0], [0]]
    assert inputs.batch.slots.tolist() == [13, 36, 36]
    assert inputs.batch.blocks.tolist() == [[3, 9], [9, 9], [9, 9]]
    assert inputs.rules.draws is not None
    assert inputs.rules.draws.tolist() == [[0.5, 0, 0], [0.75, 1, 1], [0.125, 0, 0]]
    assert (inputs.batch.tokens.data_ptr(), inputs.batch.blocks.data_ptr()) == held, "the tensors stay where they are"


def test_more_rows_than_the_form_has_are_a_fault_of_ours() -> None:
    inputs = Inputs(Form(1, 1, 1, is_drawn=False), block_size=4, scratch=9, device=CPU)
    with pytest.raises(AssertionError):
        inputs.fill([Row([1], 0, [0]), Row([2], 0, [1])])
