"""A shift split into what the server did and what the mix of prompt lengths did."""

import pytest

from collector.judging.mix import Stratum, parts


def test_every_stratum_slower_is_the_server() -> None:
    found = parts(0.25, [Stratum(0.2, 0.25, 900), Stratum(1.0, 1.25, 100)])
    assert found is not None
    assert found.server == pytest.approx(0.25)
    assert found.mix == pytest.approx(0.0)
    assert found.kind == "server"


def test_every_stratum_as_it_was_is_the_mix() -> None:
    found = parts(0.6, [Stratum(0.2, 0.2, 300), Stratum(1.0, 1.01, 700)])
    assert found is not None
    assert found.server == pytest.approx(0.007, abs=0.001)
    assert found.kind == "mix"


def test_of_both_the_larger_part_speaks() -> None:
    server = parts(0.5, [Stratum(0.2, 0.26, 500), Stratum(1.0, 1.3, 500)])
    mix = parts(0.5, [Stratum(0.2, 0.22, 500), Stratum(1.0, 1.1, 500)])
    assert server is not None
    assert mix is not None
    assert (server.kind, mix.kind) == ("server", "mix")
    assert (1 + mix.server) * (1 + mix.mix) == pytest.approx(1.5)


def test_a_server_that_became_slower_under_shorter_prompts_is_told_of() -> None:
    """The whole is as it was: each part is not."""
    found = parts(0.0, [Stratum(0.2, 0.3, 900), Stratum(1.0, 1.5, 100)])
    assert found is not None
    assert found.server == pytest.approx(0.5)
    assert found.mix == pytest.approx(1 / 1.5 - 1)


@pytest.mark.parametrize(
    "strata",
    [
        [],
        [Stratum(None, 0.3, 500)],
        [Stratum(0.2, None, 500)],
        [Stratum(0.2, 0.3, 499), Stratum(None, 3.0, 501)],
        [Stratum(0.2, 0.3, 0)],
    ],
)
def test_too_few_known_requests_say_nothing(strata: list[Stratum]) -> None:
    assert parts(0.25, strata) is None


def test_milliseconds_say_the_same() -> None:
    assert parts(0.25, [Stratum(200.0, 250.0, 900)]) == parts(0.25, [Stratum(0.2, 0.25, 900)])
