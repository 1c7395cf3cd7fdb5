"""The tokens of one answer: when they came, and how many there are.

A token event is the read that completes an event with generated payload. The first gives the time to first token, first
and last give the time per output token; nothing else moves them. How many tokens an answer has is the server's own
count where it gives one; it speaks of the answer up to the event that carries it, so when token events follow, it is
stale and events are counted instead (a stream cut before its last usage, a count that only opens a stream).
"""

from operator import sub
from typing import Literal

from sidecar.said.facts import MAX_CHOICES, Event, Usage


class Tokens:
    """The token events of one answer in order, and the server's counts. Times in nanoseconds; `events` counts token
    events, `input_tokens` is the server's count of the prompt, `answered` whether anything was generated at all."""

    __slots__ = (
        "_counted",
        "_is_current",
        "_progress",
        "_reasoning",
        "_reasoning_shown",
        "_several_choices",
        "answered",
        "events",
        "first_answer_at_ns",
        "first_at_ns",
        "input_tokens",
        "last_at_ns",
        "longest_gap_ns",
    )

    def __init__(self, choices: int) -> None:
        self.events = 0
        self.answered = False
        self.first_at_ns: int | None = None
        self.last_at_ns: int | None = None
        self.first_answer_at_ns: int | None = None
        self.longest_gap_ns = 0
        self.input_tokens: int | None = None
        self._counted: int | None = None
        self._is_current = False
        self._reasoning = 0
        self._reasoning_shown = False
        self._several_choices = choices > 1
        self._progress: dict[int, int] = {}

    def token(self, at_ns: int, *, answer: bool = True) -> None:
        """A token event; `answer`: it is visible answer, not reasoning alone."""
        self.answered = True
        last_ns = self.last_at_ns
        if answer and self.first_answer_at_ns is None:
            self.first_answer_at_ns = at_ns
        if last_ns is None:
            self.first_at_ns = at_ns
        elif at_ns - last_ns > self.longest_gap_ns:
            self.longest_gap_ns = at_ns - last_ns
        self.last_at_ns = at_ns
        self.events += 1
        self._is_current = False

    def run(self, at_ns: list[int], *, answer: bool) -> None:
        """Several token events in order, at least one."""
        self.token(at_ns[0], answer=answer)
        if len(at_ns) > 1:
            longest_ns = max(map(sub, at_ns[1:], at_ns))
            self.longest_gap_ns = max(self.longest_gap_ns, longest_ns)
            self.last_at_ns = at_ns[-1]
            self.events += len(at_ns) - 1

    def take(self, fact: Event, at_ns: int, *, streamed: bool) -> None:
        """What an event says of tokens. Of an answer that is not streamed only the counts matter: it has no pace."""
        if fact.choice:
            self._several_choices = True
        if (fact.answer or fact.reasoning) and self._has_grown(fact):
            self.answered = True
            if streamed:
                self.token(at_ns, answer=fact.answer)
                self._reasoning_shown = self._reasoning_shown or fact.reasoning
        if fact.usage is not None:
            self._count(fact.usage if fact.progress is None else self._of_all_choices(fact.usage, fact.choice))

    def _has_grown(self, fact: Event) -> bool:
        """Whether an event that repeats the answer so far adds to it."""
        if fact.progress is None:
            return True
        before = self._progress.get(fact.choice, 0)
        if fact.progress > before and (before or len(self._progress) < MAX_CHOICES):
            self._progress[fact.choice] = fact.progress
        return fact.progress > before

    def _of_all_choices(self, usage: Usage, choice: int) -> Usage:
        """The usage of the whole answer, of one that speaks of `choice` alone, as frames with `progress` do."""
        if usage.output_tokens is None:
            return usage
        others = sum(progress for other, progress in self._progress.items() if other != choice)
        return usage._replace(output_tokens=usage.output_tokens + others)

    def _count(self, usage: Usage) -> None:
        if usage.input_tokens is not None:
            self.input_tokens = max(self.input_tokens or 0, usage.input_tokens)
        if usage.output_tokens is not None:
            self._counted = usage.output_tokens
            self._reasoning = usage.reasoning_tokens
            self._is_current = True

    @property
    def output_tokens(self) -> int | None:
        """All tokens generated: the server's count, else the token events; None when neither is known."""
        return self._counted if self._is_current else self.events or None

    @property
    def source(self) -> Literal["usage", "chunks"]:
        """Where `output_tokens` comes from."""
        return "usage" if self._is_current else "chunks"

    @property
    def streamed_tokens(self) -> int | None:
        """The output tokens that the stream showed: without reasoning that was counted and kept hidden."""
        if not self.events:
            return None
        output = self.output_tokens
        if output is None or not self._is_current or self._reasoning_shown:
            return output
        # Some servers leave reasoning out of the count already: then it cannot be in it.
        return output - self._reasoning if self._reasoning < output else output

    @property
    def per_token_s(self) -> float | None:
        """Mean time of a token after the first. None for several choices, and with fewer than two token events: one
        event that brings many tokens at once says nothing about their pace."""
        if self._several_choices or self.events < 2:
            return None
        tokens = self.streamed_tokens
        if tokens is None or tokens < 2:
            return None
        assert self.first_at_ns is not None
        assert self.last_at_ns is not None
        return (self.last_at_ns - self.first_at_ns) / 1e9 / (tokens - 1)
