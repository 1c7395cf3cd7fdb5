"""Packed bodies unpacked a read at a time: `Content-Encoding` gzip, deflate, br and zstd.

`unpacker(name)` gives what unpacks one body; `feed(data)` gives the pieces of plain bytes that became readable, none
longer than a few megabytes; `UnpackError` when the bytes are not what the header says, or unpack to far more than any
stream of answers does. Servers flush after each event, so an event is readable in the read that completes it.

The size of the whole is not limited (an answer may stream for hours), the growth is: beyond `FREE_BYTES` a body may
unpack to at most `MAX_GROWTH` times its packed size. Repetitive JSON packs by 10 to 60, a bomb by 1,000 and more.
"""

import importlib
import zlib
from collections.abc import Callable, Iterator
from typing import Any, Protocol

FREE_BYTES = 1 << 20
MAX_GROWTH = 200
PIECE_BYTES = 1 << 16
# A zstd block of four bytes can stand for 128 KiB: with this many packed bytes at a time a piece stays under 4 MiB.
ZSTD_SLICE_BYTES = 128
ZSTD_WINDOW_BYTES = 8 << 20  # RFC 9659: what a zstd encoder may ask of an HTTP client


class UnpackError(Exception):
    """The body cannot be read further: corrupt, or growing beyond the limit."""


class Unpacker(Protocol):
    """What unpacks one body."""

    def feed(self, data: bytes) -> Iterator[bytes]: ...


def unpacker(content_encoding: str) -> Unpacker | None:
    """What unpacks a body with this header value; raises `UnpackError` for one that cannot be unpacked here.

    None: the body is plain. brotli and zstandard are used where they are installed. A body packed twice is not read.
    """
    if not content_encoding:
        return None
    name = content_encoding.strip().lower()
    if name in ("", "identity"):
        return None
    make = _MAKERS.get(name)
    if make is None:
        raise UnpackError(f"no way to unpack content-encoding {name[:40]!r}: gzip, deflate, br and zstd are known")
    try:
        return Bounded(make())
    except ImportError:
        raise UnpackError(
            f"content-encoding {name} needs a package that is not installed: brotli or zstandard"
        ) from None


class Bounded:
    """An unpacker held to the growth limit, with the errors of every library turned into `UnpackError`."""

    __slots__ = ("_inner", "_packed_bytes", "_plain_bytes")

    def __init__(self, inner: Unpacker) -> None:
        self._inner = inner
        self._packed_bytes = 0
        self._plain_bytes = 0

    def feed(self, data: bytes) -> Iterator[bytes]:
        self._packed_bytes += len(data)
        pieces = self._inner.feed(data)
        while True:
            try:
                piece = next(pieces, None)
            except Exception as error:  # noqa: BLE001  each library has its own tree, and none shares a base
                raise UnpackError(f"the body is not what its content-encoding says: {type(error).__name__}") from None
            if piece is None:
                return
            self._plain_bytes += len(piece)
            if self._plain_bytes > FREE_BYTES + MAX_GROWTH * self._packed_bytes:
                raise UnpackError(f"the body unpacks to more than {MAX_GROWTH} times its size")
            if piece:
                yield piece


class Gzip:
    """gzip, also of several members one after the other; what stands after the last is passed over."""

    __slots__ = ("_inflate",)

    def __init__(self) -> None:
        self._inflate = zlib.decompressobj(wbits=31)

    def feed(self, data: bytes) -> Iterator[bytes]:
        while data:
            if self._inflate.eof:
                if not data.startswith(b"\x1f"):
                    return
                self._inflate = zlib.decompressobj(wbits=31)
            yield from _inflated(self._inflate, data)
            data = self._inflate.unused_data


class Deflate:
    """`deflate`: zlib by the book, raw deflate from some servers; the first two bytes tell which."""

    __slots__ = ("_head", "_inflate")

    def __init__(self) -> None:
        self._head = b""
        self._inflate: Any = None

    def feed(self, data: bytes) -> Iterator[bytes]:
        if self._inflate is None:
            self._head += data
            if len(self._head) < 2:
                return
            data = self._head
            is_zlib = data[0] & 15 == 8 and (data[0] << 8 | data[1]) % 31 == 0  # RFC 1950, section 2.2
            self._inflate = zlib.decompressobj(wbits=15 if is_zlib else -15)
        yield from _inflated(self._inflate, data)


def _inflated(inflate: Any, data: bytes) -> Iterator[bytes]:
    piece = inflate.decompress(data, PIECE_BYTES)
    yield piece
    # A full piece means that more may wait, as input not yet taken or inside the inflater.
    while len(piece) == PIECE_BYTES:
        piece = inflate.decompress(inflate.unconsumed_tail, PIECE_BYTES)
        yield piece


class Brotli:
    """br, by the brotli package where it is installed."""

    __slots__ = ("_decompressor",)

    def __init__(self) -> None:
        self._decompressor: Any = importlib.import_module("brotli").Decompressor()

    def feed(self, data: bytes) -> Iterator[bytes]:
        yield self._decompressor.process(data, output_buffer_limit=PIECE_BYTES)
        while not self._decompressor.can_accept_more_data():
            yield self._decompressor.process(b"", output_buffer_limit=PIECE_BYTES)


class Zstd:
    """zstd, by the zstandard package where it is installed."""

    __slots__ = ("_decompressor", "_open", "_zstandard")

    def __init__(self) -> None:
        self._zstandard: Any = importlib.import_module("zstandard")
        self._open: Callable[[], Any] = self._zstandard.ZstdDecompressor(
            max_window_size=ZSTD_WINDOW_BYTES
        ).decompressobj
        self._decompressor: Any = self._open()

    def feed(self, data: bytes) -> Iterator[bytes]:
        for start in range(0, len(data), ZSTD_SLICE_BYTES):
            piece = data[start : start + ZSTD_SLICE_BYTES]
            while piece:
                if self._decompressor.eof:
                    self._decompressor = self._open()
                yield self._decompressor.decompress(piece)
                piece = self._decompressor.unused_data


_MAKERS: dict[str, Callable[[], Unpacker]] = {
    "gzip": Gzip,
    "x-gzip": Gzip,
    "deflate": Deflate,
    "br": Brotli,
    "zstd": Zstd,
}
