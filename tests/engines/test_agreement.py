"""The outside view itself: its clock reads a written answer right, and its bounds do refuse."""

import pytest

from tests.engines.agreement import ENOUGH, Seen, assert_tpot_agrees, assert_ttft_agrees
from tests.sidecar.rig import SSE_HEAD, chunk, delta

EVENTS = [b'data: {"choices":[{"delta":{"role":"assistant"}}]}\n\n', delta("a"), delta("b"), b"data: [DONE]\n\n"]


def seen(*pieces: bytes) -> Seen:
    """The answer in these reads, one a second."""
    ends = [sum(map(len, pieces[: number + 1])) for number in range(len(pieces))]
    return Seen(b"".join(pieces), tuple(ends), tuple(float(number + 1) for number in range(len(pieces))), whole=True)


def test_a_token_comes_with_the_read_that_completes_its_event() -> None:
    role, a, b, done = (chunk(event) for event in EVENTS)
    answer = seen(SSE_HEAD + role, a[:-10], a[-10:] + b[:20], b[20:], done + b"0\r\n\r\n")
    assert answer.status == 200
    assert answer.body == b"".join(EVENTS)
    assert (answer.text, answer.tokens_s) == ("ab", [3.0, 4.0])
    assert (answer.ttft_s, answer.tpot_s(3), answer.e2e_s) == (3.0, 0.5, 5.0)


def test_the_bounds_hold_for_the_median_of_enough_requests() -> None:
    assert_ttft_agrees([(0.0029, 0.0)] * ENOUGH + [(9.0, 0.0)] * (ENOUGH - 1))
    assert_ttft_agrees([(1.029, 1.0)] * ENOUGH)
    assert_tpot_agrees([(1.029, 1.0)] * ENOUGH)
    for beyond in ([(0.0031, 0.0)] * ENOUGH, [(1.031, 1.0)] * ENOUGH, [(1.0, 1.0)] * (ENOUGH - 1)):
        with pytest.raises(AssertionError):
            assert_ttft_agrees(beyond)
    with pytest.raises(AssertionError):
        assert_tpot_agrees([(0.00103 * 1.031, 0.00103)] * ENOUGH)
