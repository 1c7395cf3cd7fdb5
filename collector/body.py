"""The body of one OTLP/HTTP request: headers and chunks in, unpacked bytes out, within limits. No socket, no clock.

Unpacking stops at the limit however well the body was packed, so a small body cannot grow into memory. Raises
`RefusedError` with the status that OTLP/HTTP asks for: 415 for a type or encoding nobody here speaks, 413 beyond a
limit, 400 for bytes that are not what they say.
"""

import zlib
from dataclasses import dataclass, field
from typing import Final, Literal

from collector.errors import RefusedError, UnavailableError

MAX_BODY_BYTES = 16 << 20
MAX_UNPACKED_BYTES = 32 << 20
MAX_JSON_BYTES = 8 << 20
"""JSON is read at a tenth of the speed of protobuf, into ten times the memory."""
PROTOBUF: Final = "application/x-protobuf"
JSON: Final = "application/json"
_WINDOW_BITS = {"gzip": 31, "x-gzip": 31, "deflate": 15}

Form = Literal["application/x-protobuf", "application/json"]


def form(content_type: str | None) -> Form:
    """Whether the body is protobuf or JSON; raises `RefusedError` 415."""
    kind = (content_type or "").partition(";")[0].strip().lower()
    if kind == PROTOBUF:
        return PROTOBUF
    if kind == JSON:
        return JSON
    raise RefusedError(415, f"content-type {kind or 'missing'}: send {PROTOBUF} or {JSON}")


@dataclass(slots=True)
class Unpacking:
    """Feeds on chunks as they come; `finish` gives the whole body, or raises what was wrong with it."""

    encoding: str
    max_body: int = MAX_BODY_BYTES
    max_unpacked: int = MAX_UNPACKED_BYTES
    _received: int = 0
    _size: int = 0
    _parts: list[bytes] = field(default_factory=list)
    _unpacker: "zlib._Decompress | None" = None
    _refusal: RefusedError | UnavailableError | None = None

    def __post_init__(self) -> None:
        self.encoding = self.encoding.strip().lower() or "identity"
        if self.encoding != "identity" and self.encoding not in _WINDOW_BITS:
            self._refusal = RefusedError(415, f"content-encoding {self.encoding}: send gzip, deflate or identity")
        self._restart()

    def expect(self, content_length: str | None) -> None:
        """Refuse what says beforehand that it is too long."""
        if content_length and content_length.isdecimal() and int(content_length) > self.max_body:
            self.refuse(self._too_long())

    @property
    def size(self) -> int:
        """Bytes that were unpacked so far."""
        return self._size

    def feed(self, chunk: bytes) -> bool:
        """Take the next chunk; whether the body is still good. Of a bad one nothing is kept."""
        if self._refusal is None:
            try:
                self._feed(chunk)
            except RefusedError as error:
                self.refuse(error)
        return self._refusal is None

    def finish(self) -> bytes:
        """The unpacked body. Raises what it was refused for."""
        if self._refusal is None and self._unpacker is not None and not self._unpacker.eof and self._received:
            self.refuse(RefusedError(400, f"the {self.encoding} body ends too early"))
        if self._refusal is not None:
            raise self._refusal
        return b"".join(self._parts)

    def refuse(self, error: RefusedError | UnavailableError) -> None:
        """Keep nothing of the body, for that reason: `finish` raises the first one."""
        self._refusal = self._refusal or error
        self._parts.clear()

    def _feed(self, chunk: bytes) -> None:
        self._received += len(chunk)
        if self._received > self.max_body:
            raise self._too_long()
        if self._unpacker is None:
            self._keep(chunk)
            return
        while chunk:
            if self._unpacker.eof:
                self._restart()
            chunk = self._unpack(self._unpacker, chunk)

    def _restart(self) -> None:
        if self.encoding in _WINDOW_BITS:
            self._unpacker = zlib.decompressobj(_WINDOW_BITS[self.encoding])

    def _unpack(self, unpacker: "zlib._Decompress", chunk: bytes) -> bytes:
        """Unpack within the room left; the bytes that belong to a next gzip member come back."""
        try:
            self._keep(unpacker.decompress(chunk, self.max_unpacked - self._size + 1))
        except zlib.error:
            raise RefusedError(400, f"the body is not {self.encoding}") from None
        return unpacker.unused_data

    def _keep(self, data: bytes) -> None:
        self._size += len(data)
        if self._size > self.max_unpacked:
            raise RefusedError(413, f"the unpacked body is longer than {self.max_unpacked} bytes: send smaller batches")
        self._parts.append(data)

    def _too_long(self) -> RefusedError:
        return RefusedError(413, f"the body is longer than {self.max_body} bytes: send smaller batches")
