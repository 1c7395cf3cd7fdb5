"""The requests of a run, drawn one after the other from a seed: when each is due, and what it asks for.

Arrivals are Poisson, as of many users who know nothing of each other. Prompts are of random words, so that no prefix
cache flatters the server, but for as many words as are said to be shared. Lengths are in tokens; how many tokens a word
makes is measured before.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from random import Random

from capacity.certify.lengths import Lengths
from capacity.prompt import chat_body
from capacity.schedule import Arrival


@dataclass(frozen=True, slots=True)
class Tokens:
    """Tokens of a prompt of w words: `fixed` for what is around it, and `each` a word."""

    fixed: float = 0.0
    each: float = 1.0

    def words(self, tokens: int) -> int:
        """How many words make about so many tokens; at least one."""
        return max(round((tokens - self.fixed) / self.each), 1)


@dataclass(frozen=True, slots=True)
class Workload:
    """What is asked of which model."""

    model: str
    lengths: Lengths
    shared_words: int = 0
    tokens: Tokens = Tokens()

    def requests(self, rate_rps: float, seed: str) -> Iterator[tuple[Arrival, bytes]]:
        """Requests without end, due at a rate from 0 on, each with its body; the same seed gives the same ones."""
        chance = Random(seed)  # noqa: S311  chance for a load, no secret
        at_s = 0.0
        while True:
            at_s += chance.expovariate(rate_rps)
            yield self.request(at_s, chance)

    def request(self, at_s: float, chance: Random) -> tuple[Arrival, bytes]:
        """One request, due at a time."""
        tokens_in, tokens_out = self.lengths.draw(chance)
        arrival = Arrival(at_s, self.model, self.tokens.words(tokens_in), tokens_out)
        return arrival, chat_body(arrival, chance, shared_words=self.shared_words)


def measured(short: tuple[int, int | None], long: tuple[int, int | None]) -> Tokens:
    """What two prompts, each as words and the tokens that the server counted, say of a word; one token where it counts
    none."""
    (few, few_tokens), (many, many_tokens) = short, long
    if few_tokens is None or many_tokens is None or many_tokens <= few_tokens:
        return Tokens()
    each = (many_tokens - few_tokens) / (many - few)
    return Tokens(max(few_tokens - each * few, 0.0), each)
