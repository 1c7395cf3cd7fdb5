"""The values that travel through the engine: a request, its sequence, one output.

A `GenerationRequest` is what the HTTP side asks for and never changes. A `Sequence` is its life in the engine:
tokens so far, how many of them have their keys and values in the cache, and the blocks that hold those. An `Output`
is what goes back. Nothing here knows torch, HTTP or a clock.
"""

import random
from collections.abc import Iterable
from dataclasses import dataclass, replace
from typing import Literal

FinishReason = Literal["stop", "length", "error"]


@dataclass(frozen=True, slots=True)
class Sampling:
    """How tokens are chosen and when to stop. `temperature` 0 is greedy; `seed` None gives each sequence its own."""

    max_tokens: int
    temperature: float = 0.0
    top_p: float = 1.0
    seed: int | None = None
    ignore_eos: bool = False
    stop: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class GenerationRequest:
    """One admitted request. `break_after`: an injected fault ends it with an error after that many tokens at most."""

    model: str
    prompt: tuple[int, ...]
    sampling: Sampling
    break_after: int | None = None

    def breaking_after(self, tokens: int) -> "GenerationRequest":
        """The same request, doomed."""
        return replace(self, break_after=tokens)


@dataclass(frozen=True, slots=True)
class Output:
    """What one step added to one request: text that may be shown, and how it ended, once it has.

    `completion_tokens` counts all tokens generated so far. `stop_reason` is the stop string that matched, if one did.
    """

    sequence_id: int
    text: str
    completion_tokens: int
    finish: FinishReason | None = None
    stop_reason: str | None = None


class Sequence:
    """Tokens of one request and the state of their cache.

    Tokens [0, computed) have keys and values in `blocks`; the rest must be run through the model before the next token
    can be sampled. A waiting sequence has computed = 0, one that decodes has computed = len(tokens) - 1. `keys` name
    its first full blocks (`prefix`), and others can find the first `named` of them.
    """

    __slots__ = ("_random", "blocks", "computed", "id", "keys", "named", "prompt_tokens", "sampling", "tokens")

    def __init__(self, id: int, prompt: Iterable[int], sampling: Sampling) -> None:  # noqa: A002
        self.id = id
        self.tokens = list(prompt)
        self.prompt_tokens = len(self.tokens)
        self.sampling = sampling
        self.computed = 0
        self.blocks: list[int] = []
        self.keys: list[bytes] = []
        self.named = 0
        self._random = random.Random(id if sampling.seed is None else sampling.seed)  # noqa: S311
        assert self.tokens, "a sequence starts with at least one token"

    def __len__(self) -> int:
        return len(self.tokens)

    @property
    def output_tokens(self) -> int:
        """How many tokens were generated."""
        return len(self.tokens) - self.prompt_tokens

    @property
    def uncomputed(self) -> int:
        """How many tokens still have to go through the model."""
        return len(self.tokens) - self.computed

    def uniform(self) -> float:
        """The next number in [0, 1) of this sequence's own stream: one a token, whatever shares its batch."""
        return self._random.random()

    def advance(self, count: int) -> None:
        """Note that the next `count` tokens now have their keys and values in `blocks`."""
        assert 0 < count <= self.uncomputed
        self.computed += count

    def append(self, token: int) -> None:
        """Add a sampled token."""
        assert self.computed == len(self.tokens), "a token is sampled only after all before it are computed"
        self.tokens.append(token)
