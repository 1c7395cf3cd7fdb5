import pytest

from demo_server.sequence import GenerationRequest, Sampling, Sequence

SAMPLING = Sampling(max_tokens=8)


def test_a_sequence_counts_what_is_computed_and_what_was_generated() -> None:
    sequence = Sequence(1, (10, 11, 12), SAMPLING)
    assert (len(sequence), sequence.uncomputed, sequence.output_tokens) == (3, 3, 0)
    sequence.advance(3)
    sequence.append(65)
    assert (len(sequence), sequence.uncomputed, sequence.output_tokens) == (4, 1, 1)
    assert sequence.tokens == [10, 11, 12, 65]


def test_a_token_cannot_come_before_its_prefix_is_computed() -> None:
    sequence = Sequence(1, (10, 11), SAMPLING)
    sequence.advance(1)
    with pytest.raises(AssertionError):
        sequence.append(65)
    with pytest.raises(AssertionError):
        sequence.advance(2)


def test_an_empty_prompt_is_no_sequence() -> None:
    with pytest.raises(AssertionError):
        Sequence(1, (), SAMPLING)


def test_chance_belongs_to_the_sequence() -> None:
    def first_numbers(number: int, seed: int | None) -> list[float]:
        sequence = Sequence(number, (1,), Sampling(max_tokens=8, seed=seed))
        return [sequence.uniform() for _ in range(4)]

    assert first_numbers(1, seed=7) == first_numbers(2, seed=7)
    assert first_numbers(1, seed=7) != first_numbers(1, seed=8)
    assert first_numbers(1, seed=None) != first_numbers(2, seed=None)
    assert all(0 <= number < 1 for number in first_numbers(3, seed=None))


def test_a_doomed_request_is_otherwise_the_same() -> None:
    request = GenerationRequest("demo", (1, 2), SAMPLING)
    doomed = request.breaking_after(3)
    assert (doomed.model, doomed.prompt, doomed.sampling, doomed.break_after) == ("demo", (1, 2), SAMPLING, 3)
    assert request.break_after is None
