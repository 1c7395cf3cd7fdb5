"""Bodies: unpacked whatever the chunks, within limits, and refused by the right status."""

import gzip
import zlib
from collections.abc import Callable
from unittest import mock

import pytest
from hypothesis import given
from hypothesis import strategies as st

from collector.doors import body
from collector.doors.body import JSON, PROTOBUF, Unpacking, form
from collector.errors import RefusedError


def unpacked(encoding: str, chunks: list[bytes], *, max_body: int = 1000, max_unpacked: int = 2000) -> bytes:
    unpacking = Unpacking(encoding, max_body, max_unpacked)
    for chunk in chunks:
        fed(unpacking, chunk)
    return unpacking.finish()


def fed(unpacking: Unpacking, chunk: bytes) -> int:
    """Feed all of the chunk; in how many steps it went."""
    steps = 1
    unpacking.feed(chunk)
    while unpacking.has_more:
        unpacking.feed(b"")
        steps += 1
    return steps


def raw(data: bytes) -> bytes:
    """Deflated without the head that zlib puts before."""
    packer = zlib.compressobj(wbits=-15)
    return packer.compress(data) + packer.flush()


PACK: dict[str, tuple[str, Callable[[bytes], bytes]]] = {
    "not said": ("", bytes),
    "as it is": ("identity", bytes),
    "gzip": ("gzip", gzip.compress),
    "gzip in capitals": ("GZIP ", gzip.compress),
    "deflate": ("deflate", zlib.compress),
    "deflate, bare": ("deflate", raw),
}


def split(data: bytes, sizes: list[int]) -> list[bytes]:
    chunks = []
    for size in sizes:
        chunks.append(data[:size])
        data = data[size:]
    return [*chunks, data]


@given(data=st.binary(max_size=300), sizes=st.lists(st.integers(0, 40)), case=st.sampled_from(sorted(PACK)))
def test_any_split_gives_the_same_body(data: bytes, sizes: list[int], case: str) -> None:
    encoding, pack = PACK[case]
    assert unpacked(encoding, split(pack(data), sizes)) == data


@given(data=st.binary(max_size=40).map(lambda part: part * 20), step=st.integers(1, 300))
def test_any_step_gives_the_same_body(data: bytes, step: int) -> None:
    with mock.patch.object(body, "STEP_BYTES", step):
        for encoding, pack in PACK.values():
            assert unpacked(encoding, [pack(data)]) == data


@pytest.mark.parametrize("case", ["gzip", "deflate", "deflate, bare"])
def test_a_long_body_is_unpacked_step_by_step(case: str) -> None:
    encoding, pack = PACK[case]
    size = 5 * body.STEP_BYTES
    unpacking = Unpacking(encoding)
    assert fed(unpacking, pack(bytes(size))) >= 5
    assert len(unpacking.finish()) == size


def test_gzip_members_join() -> None:
    packed = gzip.compress(b"one ") + gzip.compress(b"two")
    assert unpacked("gzip", [packed]) == b"one two"
    assert unpacked("gzip", [packed[:5], packed[5:30], packed[30:]]) == b"one two"


FAULTS = {
    "an unknown encoding": ("br", b"x", 415),
    "two encodings": ("gzip, gzip", b"x", 415),
    "too long": ("", b"x" * 1001, 413),
    "too long once unpacked": ("gzip", gzip.compress(b"x" * 2001), 413),
    "too long over members": ("gzip", gzip.compress(b"x" * 1500) + gzip.compress(b"x" * 501), 413),
    "not gzip": ("gzip", b"plain", 400),
    "a bad checksum": ("gzip", gzip.compress(b"text")[:-8] + bytes(8), 400),
    "cut off": ("gzip", gzip.compress(b"text")[:-4], 400),
    "deflate that is none": ("deflate", b"plain text", 400),
    "deflate cut off": ("deflate", zlib.compress(b"text")[:-4], 400),
    "a byte of deflate": ("deflate", b"\x78", 400),
    "deflate with more behind": ("deflate", zlib.compress(b"text") + b"more", 400),
    "rubbish after the end": ("gzip", gzip.compress(b"text") + b"rubbish", 400),
}


@pytest.mark.parametrize("case", FAULTS)
def test_a_faulty_body_has_its_status(case: str) -> None:
    encoding, data, status = FAULTS[case]
    with pytest.raises(RefusedError) as caught:
        unpacked(encoding, [data[:7], data[7:]])
    assert caught.value.status == status


def test_exactly_the_limit_is_taken() -> None:
    assert len(unpacked("", [b"x" * 1000])) == 1000
    assert len(unpacked("gzip", [gzip.compress(b"x" * 2000)])) == 2000


def test_a_length_said_beforehand_is_refused_beforehand() -> None:
    unpacking = Unpacking("", 10)
    unpacking.expect("11")
    assert not unpacking.feed(b"")
    with pytest.raises(RefusedError, match="longer than 10"):
        unpacking.finish()


def test_a_bomb_is_never_unpacked_beyond_the_limit() -> None:
    unpacking = Unpacking("gzip", 1 << 20, 1 << 21)
    fed(unpacking, gzip.compress(bytes(64 << 20)))
    assert unpacking._size <= (1 << 21) + body.STEP_BYTES
    assert unpacking.size == 0
    with pytest.raises(RefusedError):
        unpacking.finish()


def test_forms() -> None:
    assert form("application/x-protobuf") == PROTOBUF
    assert form("Application/JSON; charset=utf-8") == JSON
    for other in (None, "", "text/plain"):
        with pytest.raises(RefusedError, match="send application"):
            form(other)
