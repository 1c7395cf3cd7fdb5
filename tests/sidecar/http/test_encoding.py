"""Packed bodies: every coding, every split, and no more than a body may grow."""

import contextlib
import gzip
import importlib
import zlib
from collections.abc import Callable, Iterator

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sidecar.http import encoding
from sidecar.http.encoding import UnpackError, unpacker
from tests.sidecar.streams import cut

EVENTS = [b'data: {"n": %d}\n\n' % n for n in range(40)]
PLAIN = b"".join(EVENTS)


def pack_brotli(data: bytes) -> bytes:
    return bytes(importlib.import_module("brotli").compress(data))


def pack_zstd(data: bytes) -> bytes:
    return bytes(importlib.import_module("zstandard").compress(data))


def raw_deflate(data: bytes) -> bytes:
    packer = zlib.compressobj(wbits=-15)
    return packer.compress(data) + packer.flush()


PACKED: dict[str, tuple[str, Callable[[bytes], bytes]]] = {
    "gzip": ("gzip", gzip.compress),
    "gzip by its old name": ("x-gzip", gzip.compress),
    "gzip of two members": ("gzip", lambda data: gzip.compress(data[:50]) + gzip.compress(data[50:])),
    "gzip with padding behind": ("GZIP ", lambda data: gzip.compress(data) + bytes(16)),
    "deflate by the book": ("deflate", zlib.compress),
    "deflate without its frame": ("deflate", raw_deflate),
    "br": ("br", pack_brotli),
    "zstd": ("zstd", pack_zstd),
    "zstd of two frames": ("zstd", lambda data: pack_zstd(data[:50]) + pack_zstd(data[50:])),
}


def unpack(name: str, reads: list[bytes]) -> bytes:
    unpacking = unpacker(name)
    assert unpacking is not None
    return b"".join(piece for data in reads for piece in unpacking.feed(data))


@pytest.mark.parametrize("sentence", PACKED)
@given(places=st.lists(st.integers(0, 2000), max_size=8))
def test_any_split_unpacks_to_the_same(sentence: str, places: list[int]) -> None:
    name, pack = PACKED[sentence]
    assert unpack(name, cut(pack(PLAIN), places)) == PLAIN


@pytest.mark.parametrize("sentence", PACKED)
def test_byte_by_byte(sentence: str) -> None:
    name, pack = PACKED[sentence]
    packed = pack(PLAIN)
    assert unpack(name, [packed[i : i + 1] for i in range(len(packed))]) == PLAIN


def flushed_gzip() -> Iterator[bytes]:
    packer = zlib.compressobj(wbits=31)
    for event in EVENTS:
        yield packer.compress(event) + packer.flush(zlib.Z_SYNC_FLUSH)


def flushed_brotli() -> Iterator[bytes]:
    packer = importlib.import_module("brotli").Compressor()
    for event in EVENTS:
        yield packer.process(event) + packer.flush()


def flushed_zstd() -> Iterator[bytes]:
    zstandard = importlib.import_module("zstandard")
    packer = zstandard.ZstdCompressor().compressobj()
    for event in EVENTS:
        yield packer.compress(event) + packer.flush(zstandard.COMPRESSOBJ_FLUSH_BLOCK)


@pytest.mark.parametrize(("name", "flushed"), [("gzip", flushed_gzip), ("br", flushed_brotli), ("zstd", flushed_zstd)])
def test_an_event_is_readable_in_the_read_that_completes_it(name: str, flushed: Callable[[], Iterator[bytes]]) -> None:
    unpacking = unpacker(name)
    assert unpacking is not None
    for event, packed in zip(EVENTS, flushed(), strict=True):
        assert b"".join(unpacking.feed(packed)) == event


@pytest.mark.parametrize("name", ["", "identity", " Identity "])
def test_a_plain_body_needs_no_unpacking(name: str) -> None:
    assert unpacker(name) is None


@pytest.mark.parametrize("name", ["compress", "gzip, br", "x" * 500])
def test_an_unknown_coding_is_refused_by_name(name: str) -> None:
    with pytest.raises(UnpackError, match=r"gzip, deflate, br and zstd are known") as error:
        unpacker(name)
    assert len(str(error.value)) < 200


@pytest.mark.parametrize("name", ["br", "zstd"])
def test_a_coding_without_its_package_is_refused(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    def absent(_name: str) -> object:
        raise ImportError

    monkeypatch.setattr(encoding.importlib, "import_module", absent)
    with pytest.raises(UnpackError, match="not installed"):
        unpacker(name)


BOMBS: dict[str, tuple[str, Callable[[bytes], bytes]]] = {
    key: PACKED[key] for key in ("gzip", "deflate by the book", "deflate without its frame", "br", "zstd")
}


@pytest.mark.parametrize("sentence", BOMBS)
def test_a_bomb_is_stopped_long_before_it_is_whole(sentence: str) -> None:
    name, pack = BOMBS[sentence]
    packed = pack(bytes(16 << 20))
    unpacking = unpacker(name)
    assert unpacking is not None
    sizes: list[int] = []
    with pytest.raises(UnpackError, match="times its size"):
        sizes.extend(len(piece) for piece in unpacking.feed(packed))
    assert sum(sizes) <= encoding.FREE_BYTES + encoding.MAX_GROWTH * len(packed) < 16 << 20


@pytest.mark.parametrize("make", [encoding.Gzip, encoding.Deflate, encoding.Brotli, encoding.Zstd])
def test_what_a_bomb_unpacks_to_at_a_time_is_bounded(make: Callable[[], encoding.Unpacker]) -> None:
    pack = {
        encoding.Gzip: gzip.compress,
        encoding.Deflate: zlib.compress,
        encoding.Brotli: pack_brotli,
        encoding.Zstd: pack_zstd,
    }
    pieces = make().feed(pack[make](bytes(16 << 20)))  # type: ignore[index]
    assert max(map(len, pieces)) <= 4 << 20


@pytest.mark.parametrize("name", ["gzip", "deflate", "br", "zstd"])
@given(data=st.binary(min_size=1, max_size=300), places=st.lists(st.integers(0, 300), max_size=4))
def test_any_bytes_unpack_or_are_refused(name: str, data: bytes, places: list[int]) -> None:
    unpacking = unpacker(name)
    assert unpacking is not None
    with contextlib.suppress(UnpackError):
        for read in cut(data, places):
            for piece in unpacking.feed(read):
                assert piece


def test_a_large_body_comes_in_small_pieces() -> None:
    plain = bytes(range(256)) * 4000
    unpacking = unpacker("gzip")
    assert unpacking is not None
    pieces = list(unpacking.feed(gzip.compress(plain)))
    assert b"".join(pieces) == plain
    assert max(map(len, pieces)) <= encoding.PIECE_BYTES
