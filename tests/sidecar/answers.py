"""A stream as a server would send it: packed in any coding, framed in any way, and read back without a socket."""

import importlib
import zlib
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass

from sidecar.http.http_read import ResponseReader
from sidecar.said.record import Record
from tests.sidecar.streams import Reads, Stream, cut

Way = Callable[[Iterable[bytes]], Iterator[bytes]]
"""From the writes of a body to those of another form of it: one for each, and maybe some more that end it."""


def bare(writes: Iterable[bytes]) -> Iterator[bytes]:
    yield from writes


def deflated(wbits: int) -> Way:
    def pack(writes: Iterable[bytes]) -> Iterator[bytes]:
        packer = zlib.compressobj(wbits=wbits)
        for data in writes:
            yield packer.compress(data) + packer.flush(zlib.Z_SYNC_FLUSH)
        yield packer.flush()

    return pack


def brotli(writes: Iterable[bytes]) -> Iterator[bytes]:
    packer = importlib.import_module("brotli").Compressor()
    for data in writes:
        yield packer.process(data) + packer.flush()
    yield packer.finish()


def zstd(writes: Iterable[bytes]) -> Iterator[bytes]:
    zstandard = importlib.import_module("zstandard")
    packer = zstandard.ZstdCompressor().compressobj()
    for data in writes:
        yield packer.compress(data) + packer.flush(zstandard.COMPRESSOBJ_FLUSH_BLOCK)
    yield packer.flush()


CODINGS: dict[str, tuple[str, Way]] = {
    "plain": ("", bare),
    "gzip": ("gzip", deflated(31)),
    "deflate": ("deflate", deflated(15)),
    "deflate without its frame": ("deflate", deflated(-15)),
    "br": ("br", brotli),
    "zstd": ("zstd", zstd),
}
"""By name, the `Content-Encoding` and what packs: what a write brings can be read once it has come."""

LAST_CHUNK = b"0\r\nX-Trailer: t\r\n\r\n"


def chunked(writes: Iterable[bytes]) -> Iterator[bytes]:
    """Each write a chunk."""
    yield from (b"%x\r\n%b\r\n" % (len(data), data) if data else b"" for data in writes)
    yield LAST_CHUNK


def ragged(writes: Iterable[bytes]) -> Iterator[bytes]:
    """Chunks that know nothing of events, with extensions."""
    for number, data in enumerate(writes):
        pieces = cut(data, range(7 + number % 5, len(data), 50)) if data else []
        yield b"".join(b"%X;x=%d\r\n%b\r\n" % (len(piece), number, piece) for piece in pieces)
    yield LAST_CHUNK


CLOSE, LENGTH, CHUNKS = "the close", "a length", "a write a chunk"
FRAMINGS: dict[str, Way] = {CHUNKS: chunked, "chunks across events": ragged, LENGTH: bare, CLOSE: bare}
"""By what ends a body, how it is framed."""


@dataclass(frozen=True)
class Answer:
    """One stream's answer: its head, and its writes with their times. A stream that is packed by itself stays so."""

    stream: Stream
    coding: str = "plain"
    framing: str = CHUNKS

    @property
    def encoding(self) -> str:
        return self.stream.content_encoding or CODINGS[self.coding][0]

    @property
    def packed(self) -> list[bytes]:
        _, pack = CODINGS["plain" if self.stream.content_encoding else self.coding]
        return list(pack(data for _, data in self.stream.reads))

    @property
    def writes(self) -> Reads:
        """What ends the body comes with its last bytes."""
        framed = list(FRAMINGS[self.framing](self.packed))
        times = [at_ns for at_ns, _ in self.stream.reads]
        times += [self.stream.end_ns] * (len(framed) - len(times))
        return tuple(zip(times, framed, strict=True))

    @property
    def body(self) -> bytes:
        return b"".join(data for _, data in self.writes)

    @property
    def head(self) -> bytes:
        framing = {LENGTH: f"Content-Length: {sum(map(len, self.packed))}", CLOSE: ""}
        lines = (
            f"HTTP/1.1 {self.stream.status} Fine",
            f"Content-Type: {self.stream.content_type}" if self.stream.content_type else "",
            f"Content-Encoding: {self.encoding}" if self.encoding else "",
            framing.get(self.framing, "Transfer-Encoding: chunked"),
        )
        return "".join(f"{line}\r\n" for line in lines if line).encode() + b"\r\n"

    @property
    def is_framed(self) -> bool:
        return self.framing != CLOSE

    def read(self, reads: Iterable[tuple[int, bytes]], see: Callable[[bytes], object] = len) -> Record:
        """What is seen of the answer when its bytes come in these reads; `see` is told of each read's payload."""
        stream, reader = self.stream, ResponseReader(method=b"POST")
        reader.head(self.head)
        exchange = stream.started(self.encoding)
        for at_ns, data in reads:
            payload = reader.body(data)
            exchange.feed(payload, at_ns)
            see(payload)
        assert not reader.surplus
        assert self.is_framed is reader.complete or not self.packed
        exchange.response_ended(stream.end_ns, framed=self.is_framed)
        return exchange.record()


def unchunked(framed: bytes) -> bytes:
    """The payload of a whole chunked body."""
    reader = ResponseReader(method=b"POST")
    reader.head(b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n")
    payload = reader.body(framed)
    assert reader.complete
    assert not reader.surplus
    return payload
