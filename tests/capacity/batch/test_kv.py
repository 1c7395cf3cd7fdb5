"""What a batch holds in the cache, against drawn sequences seen at random moments."""

import random

import pytest

from capacity.batch.kv import blocks, holding

LENGTHS = [(100, 10), (400, 40), (1000, 300), (50, 600)]


def test_what_a_sequence_holds_is_biased_to_those_that_stay() -> None:
    chance = random.Random(0)
    seen = []
    for _ in range(200_000):
        tokens_in, out = chance.choices(LENGTHS, weights=[out for _, out in LENGTHS])[0]
        seen.append(tokens_in + chance.random() * out)
    mean = sum(seen) / len(seen)
    deviation = (sum((one - mean) ** 2 for one in seen) / len(seen)) ** 0.5
    holds = holding(LENGTHS)
    assert holds.mean == pytest.approx(mean, rel=0.01)
    assert holds.deviation == pytest.approx(deviation, rel=0.01)


def test_sequences_and_tokens_are_each_others_inverse() -> None:
    holds = holding(LENGTHS)
    for sequences in (1, 2, 17, 300):
        assert holds.sequences_in(holds.tokens_for(sequences)) == sequences
    assert holds.sequences_in(10) == 0


def test_so_many_sequences_need_more_only_as_often_as_said() -> None:
    holds, chance = holding(LENGTHS), random.Random(1)
    sequences, over, tries = 64, 0, 4000
    for _ in range(tries):
        drawn = chance.choices(LENGTHS, weights=[out for _, out in LENGTHS], k=sequences)
        over += sum(into + chance.random() * out for into, out in drawn) > holds.tokens_for(sequences)
    assert 0.03 < over / tries < 0.07


def test_the_last_block_of_each_is_half_empty() -> None:
    holds = holding([(100, 2)])
    assert blocks(holds, 10, 16) == -(-(holds.tokens_for(10) + 80) // 16)
