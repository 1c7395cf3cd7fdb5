"""From the rows of a forward pass to tensors of a fixed form, in one copy.

The form of a pass decides every shape in it, so a pass of the same form can run again on the same tensors with other
numbers in them, which is what a captured graph wants. Rows that pad a pass, and blocks that pad a table, point at the
scratch block. Whoever builds a pass knows these numbers on the host; the device is never asked for any.
"""

from array import array
from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

import torch
from torch import Tensor

from demo_server.model import Batch
from demo_server.sampler import Rules


@dataclass(frozen=True, slots=True)
class Form:
    """What decides the shapes of a pass: its rows, new tokens a row, blocks a row, and whether any token is drawn."""

    rows: int
    new: int
    width: int
    is_drawn: bool


class Row(NamedTuple):
    """One sequence's part of a pass; `uniform` is the number that its token is drawn with, if `temperature` is not 0.

    `blocks` hold all positions up to the last new token's, and no more. A tuple, for it is made in a third of the time,
    and a GPU waits for a batch of them between its steps.
    """

    tokens: Sequence[int]
    start: int
    blocks: Sequence[int]
    endless: bool = False
    temperature: float = 0.0
    top_p: float = 1.0
    uniform: float = 0.0


def form_of(rows: Sequence[Row]) -> Form:
    """The smallest form that these rows fit; all bring as many new tokens."""
    return Form(
        rows=len(rows),
        new=len(rows[0].tokens),
        width=max(len(row.blocks) for row in rows),
        is_drawn=any(row.temperature > 0 for row in rows),
    )


def rounded(form: Form) -> Form:
    """The form that is kept for all forms up to it; so there are few, each less than half as large again as needed."""
    return Form(_round_up(form.rows), form.new, _round_up(form.width), form.is_drawn)


def _round_up(count: int) -> int:
    """The next of 1, 2, 3, 4, 6, 8, 12, 16, 24, ..."""
    power = 1 << (count - 1).bit_length()  # the next power of two
    between = power // 4 * 3
    return between if count <= between else power


class Inputs:
    """The tensors that a pass reads. They stay where they are; `fill` gives them the numbers of one pass."""

    def __init__(self, form: Form, *, block_size: int, scratch: int, device: torch.device) -> None:
        self.form = form
        self._block_size = block_size
        self._idle = Row([0] * form.new, 0, [scratch] * -(-form.new // block_size))
        self._padding = [scratch] * form.width
        new, held = form.rows * form.new, form.rows * form.width
        self._numbers = torch.zeros(3 * new + held + form.rows, dtype=torch.int64, device=device)
        # One copy fills all of them: they are views of one tensor, in the order in which `fill` lists their numbers.
        tokens, positions, slots, blocks, endless = torch.split(self._numbers, [new, new, new, held, form.rows])
        self.batch = Batch(
            tokens=tokens.view(form.rows, form.new),
            positions=positions.view(form.rows, form.new),
            slots=slots,
            blocks=blocks.view(form.rows, form.width),
        )
        self._draws = torch.zeros((3, form.rows), device=device) if form.is_drawn else None  # (3, B)
        self.rules = Rules(endless, self._draws)

    def fill(self, rows: Sequence[Row]) -> None:
        """Put these rows in, and padding behind them. On a GPU this only queues a copy."""
        form = self.form
        assert len(rows) <= form.rows
        every = [*rows, *[self._idle] * (form.rows - len(rows))]
        numbers = [token for row in every for token in row.tokens]
        if form.new == 1:
            numbers += [row.start for row in every]
            numbers += self._slots_of_decodes(every)
        else:
            numbers += [at for row in every for at in range(row.start, row.start + form.new)]
            numbers += self._slots(every)
        for row in every:
            numbers += row.blocks
            numbers += self._padding[len(row.blocks) :]
        numbers += [row.endless for row in every]
        _copy(array("q", numbers), self._numbers)
        if self._draws is not None:
            draws = array("f", [row.temperature for row in every])
            draws.extend(row.top_p for row in every)
            draws.extend(row.uniform for row in every)
            _copy(draws, self._draws.flatten())

    def _slots_of_decodes(self, rows: Sequence[Row]) -> list[int]:
        """The new token is the last, and so is its block."""
        size = self._block_size
        return [row.blocks[-1] * size + row.start % size for row in rows]

    def _slots(self, rows: Sequence[Row]) -> list[int]:
        size = self._block_size
        spans = [(row.blocks, range(row.start, row.start + self.form.new)) for row in rows]
        return [blocks[at // size] * size + at % size for blocks, span in spans for at in span]


def _copy(values: "array[int] | array[float]", into: Tensor) -> None:
    """Pinned memory is what lets a GPU fetch it while the host goes on; its allocator keeps it until then."""
    host = torch.frombuffer(values, dtype=into.dtype)
    into.copy_(host.pin_memory() if into.is_cuda else host, non_blocking=True)
