"""Requests drawn from a seed."""

from itertools import islice

import orjson
import pytest

from capacity.certify.lengths import lengths
from capacity.certify.workload import Tokens, Workload, measured

WORKLOAD = Workload("m", lengths("100:8"), tokens=Tokens(fixed=10, each=1.5))


def test_the_same_seed_gives_the_same_requests_and_another_gives_others() -> None:
    one, same, other = (list(islice(WORKLOAD.requests(5, seed), 50)) for seed in ("a", "a", "b"))
    assert one == same
    assert all(a[1] != b[1] for a, b in zip(one, other, strict=True))
    times = [arrival.at_s for arrival, _ in islice(WORKLOAD.requests(5, "a"), 2000)]
    assert times == sorted(times)
    assert times[-1] == pytest.approx(400, rel=0.1)


def test_words_are_as_many_as_make_the_tokens_asked_for() -> None:
    arrival, body = next(WORKLOAD.requests(5, "a"))
    assert arrival.input_words == 60
    assert len(orjson.loads(body)["messages"][0]["content"].split()) == 60
    assert Tokens(fixed=50).words(10) == 1


def test_shared_words_come_first_and_the_rest_is_unique() -> None:
    workload = Workload("m", lengths("40:8"), shared_words=30)
    prompts = [
        orjson.loads(body)["messages"][0]["content"].split() for _, body in islice(workload.requests(1, "a"), 20)
    ]
    assert len({tuple(prompt[:30]) for prompt in prompts}) == 1
    assert len({tuple(prompt[30:]) for prompt in prompts}) == 20


def test_tokens_of_a_word_are_measured_where_the_server_counts_them() -> None:
    assert measured((8, 50), (72, 370)) == Tokens(fixed=10, each=5)
    assert measured((8, None), (72, 100)) == Tokens()
    assert measured((8, 100), (72, 100)) == Tokens()
