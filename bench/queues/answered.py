"""A search and the server that answers it."""

from collections.abc import Callable, Generator
from typing import TypeVar

Ask = TypeVar("Ask")
Answer = TypeVar("Answer")
Outcome = TypeVar("Outcome")


def answered(search: Generator[Ask, Answer, Outcome], answer: Callable[[Ask], Answer]) -> Outcome:
    """What a search says once everything that it asks is answered."""
    ask = next(search)
    while True:
        try:
            ask = search.send(answer(ask))
        except StopIteration as end:
            outcome: Outcome = end.value
            return outcome
