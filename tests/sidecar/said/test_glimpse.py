"""What is kept of a body: its beginning, and once it is long its end, however it was cut."""

import pytest

from sidecar.said.dialects import LOOK_BYTES, TAIL_BYTES
from sidecar.said.glimpse import Glimpse


@pytest.mark.parametrize("step", [1000, 7001, LOOK_BYTES, 1 << 20])
@pytest.mark.parametrize("size", [0, 10, LOOK_BYTES - 1, LOOK_BYTES, LOOK_BYTES + 1, LOOK_BYTES + TAIL_BYTES, 300_000])
def test_the_beginning_and_the_end_are_kept(size: int, step: int) -> None:
    body = bytes(number * 31 % 251 for number in range(size))
    glimpse = Glimpse()
    for start in range(0, size, step):
        glimpse.add(body[start : start + step])
    assert (glimpse.size, bytes(glimpse.head)) == (size, body[:LOOK_BYTES])
    if size > LOOK_BYTES:
        assert glimpse.tail == body[-TAIL_BYTES:]
    else:
        assert glimpse.tail == b""
