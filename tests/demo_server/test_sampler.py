from collections import Counter

import pytest
import torch

from demo_server.sampler import Rules, allowed_bias, choose
from demo_server.sequence import Sampling, Sequence
from demo_server.text import BOS, EOS, VOCABULARY

BIAS = allowed_bias(torch.device("cpu"))
A, B, C = b"ABC"


def logits(shares: dict[int, float]) -> torch.Tensor:
    """One row whose softmax is these shares, and next to nothing elsewhere."""
    row = torch.full((1, VOCABULARY), -100.0)
    for token, share in shares.items():
        row[0, token] = torch.tensor(share).log()
    return row


def tokens_of(rows: torch.Tensor, sequences: list[Sequence]) -> list[int]:
    """One token a row, drawn as its sequence wants it."""
    endless = torch.tensor([int(sequence.sampling.ignore_eos) for sequence in sequences])
    draws = [[sequence.sampling.temperature, sequence.sampling.top_p, sequence.uniform()] for sequence in sequences]
    is_drawn = any(sequence.sampling.temperature > 0 for sequence in sequences)
    chosen: list[int] = choose(rows, BIAS, Rules(endless, torch.tensor(draws).T if is_drawn else None)).tolist()
    return chosen


def draws(row: torch.Tensor, count: int, **how: float) -> Counter[int]:
    sequence = Sequence(1, [0], Sampling(max_tokens=count, seed=5, **how))  # type: ignore[arg-type]
    return Counter(tokens_of(row, [sequence])[0] for _ in range(count))


def test_greedy_takes_the_likeliest() -> None:
    assert draws(logits({A: 0.3, B: 0.6, C: 0.1}), 5) == {B: 5}


def test_only_what_may_be_said_is_said() -> None:
    row = logits({0: 0.2, 200: 0.3, BOS: 0.3, ord("\n"): 0.1, C: 0.1})
    assert draws(row, 3) == {C: 3}
    assert draws(row, 50, temperature=1.0) == {C: 50}


def test_the_end_can_be_drawn_unless_it_is_to_be_ignored() -> None:
    row = logits({EOS: 0.9, A: 0.1})
    assert draws(row, 3) == {EOS: 3}
    assert draws(row, 3, ignore_eos=True) == {A: 3}
    assert draws(row, 50, ignore_eos=True, temperature=1.0) == {A: 50}


@pytest.mark.parametrize(
    ("how", "shares"),
    [
        ({"temperature": 1.0}, {A: 0.5, B: 0.3, C: 0.2}),
        ({"temperature": 0.5}, {A: 25 / 38, B: 9 / 38, C: 4 / 38}),
        ({"temperature": 1.0, "top_p": 0.7}, {A: 5 / 8, B: 3 / 8}),
        ({"temperature": 1.0, "top_p": 0.5}, {A: 1.0}),
        ({"temperature": 1.0, "top_p": 0.01}, {A: 1.0}),
        # Float32 takes both for 0.
        ({"temperature": 1.0, "top_p": 1e-300}, {A: 1.0}),
        ({"temperature": 1e-300}, {A: 1.0}),
    ],
)
def test_draws_follow_temperature_and_nucleus(how: dict[str, float], shares: dict[int, float]) -> None:
    count = 3000
    seen = draws(logits({A: 0.5, B: 0.3, C: 0.2}), count, **how)
    assert set(seen) == set(shares)
    for token, share in shares.items():
        # Seeded; 4 standard deviations of a binomial would be missed by a wrong formula, not by chance.
        assert abs(seen[token] / count - share) <= 4 * (share * (1 - share) / count) ** 0.5


def test_a_draw_does_not_depend_on_its_neighbours() -> None:
    generator = torch.Generator().manual_seed(0)
    rows = torch.randn((3, VOCABULARY), generator=generator)

    def sequences() -> list[Sequence]:
        samplings = [
            Sampling(max_tokens=9, temperature=1.0, seed=1),
            Sampling(max_tokens=9),
            Sampling(max_tokens=9, temperature=0.7, top_p=0.9, seed=2, ignore_eos=True),
        ]
        return [Sequence(number, [0], sampling) for number, sampling in enumerate(samplings)]

    together = tokens_of(rows, sequences())
    alone = [tokens_of(rows[at : at + 1], [sequence])[0] for at, sequence in enumerate(sequences())]
    assert together == alone


def test_logits_are_left_as_they_were() -> None:
    row = logits({EOS: 0.9, A: 0.1})
    before = row.clone()
    draws(row, 2, ignore_eos=True)
    assert torch.equal(row, before)
