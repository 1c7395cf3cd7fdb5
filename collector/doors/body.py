"""The body of one OTLP/HTTP request: headers and chunks in, unpacked bytes out, within limits. No socket, no clock.

Unpacking stops at the limit however well the body was packed, so a small body cannot grow into memory, and goes a step
at a time, so that nobody else waits for a long one. Raises `RefusedError` with the status that OTLP/HTTP asks for: 415
for a type or encoding nobody here speaks, 413 beyond a limit, 400 for bytes that are not what they say.
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
STEP_BYTES = 1 << 20
"""What is unpacked at a time: a few milliseconds of work."""
ENCODINGS = "gzip, deflate or identity"
_GZIP = 31
_ZLIB = 15
_RAW = -15
_WINDOW_BITS = {"gzip": _GZIP, "x-gzip": _GZIP, "deflate": _ZLIB}
_ZLIB_HEAD_BYTES = 2

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
    _rest: bytes = b""
    _has_more: bool = False
    _refusal: RefusedError | UnavailableError | None = None

    def __post_init__(self) -> None:
        self.encoding = self.encoding.strip().lower() or "identity"
        if self.encoding != "identity" and self.encoding not in _WINDOW_BITS:
            self._refusal = RefusedError(415, f"content-encoding {self.encoding}: send {ENCODINGS}")

    def expect(self, content_length: str | None) -> None:
        """Refuse what says beforehand that it is too long."""
        if content_length and content_length.isdecimal() and int(content_length) > self.max_body:
            self.refuse(self._too_long())

    @property
    def size(self) -> int:
        """Bytes that were unpacked so far and are kept."""
        return self._size if self._refusal is None else 0

    @property
    def has_more(self) -> bool:
        """Whether something fed is not unpacked yet: feed nothing, to go on by a step."""
        return self._has_more and self._refusal is None

    def feed(self, chunk: bytes) -> bool:
        """Take the next chunk, and unpack a step; whether the body is still good. Of a bad one nothing is kept."""
        if self._refusal is None:
            try:
                self._feed(chunk)
            except RefusedError as error:
                self.refuse(error)
        return self._refusal is None

    def finish(self) -> bytes:
        """The unpacked body. Raises what it was refused for."""
        assert not self.has_more
        is_whole = self.encoding == "identity" or not self._received or (self._unpacker and self._unpacker.eof)
        if not is_whole:
            self.refuse(RefusedError(400, f"the {self.encoding} body ends too early"))
        try:
            if self._refusal is not None:
                raise self._refusal
        finally:
            self._refusal = None  # its traceback holds this frame, and so would hold itself and all that came
        return b"".join(self._parts)

    def refuse(self, error: RefusedError | UnavailableError) -> None:
        """Keep nothing of the body, for that reason: `finish` raises the first one."""
        self._refusal = self._refusal or error.with_traceback(None)
        self._parts.clear()

    def _feed(self, chunk: bytes) -> None:
        self._received += len(chunk)
        if self._received > self.max_body:
            raise self._too_long()
        if self.encoding == "identity":
            self._keep(chunk)
        elif chunk or self._has_more:
            self._unpack(self._rest + chunk)

    def _unpack(self, data: bytes) -> None:
        """Unpack one step of the data, and hold back the rest of it."""
        unpacker = self._begun(data)
        if unpacker is None:
            self._rest = data
            return
        try:
            step = unpacker.decompress(data, STEP_BYTES)
        except zlib.error:
            raise RefusedError(400, f"the body is not {self.encoding}") from None
        self._keep(step)
        self._rest = unpacker.unused_data if unpacker.eof else unpacker.unconsumed_tail
        # A full step may leave bytes inside the unpacker, though it took all that it was fed.
        self._has_more = bool(self._rest) or (len(step) == STEP_BYTES and not unpacker.eof)

    def _begun(self, data: bytes) -> "zlib._Decompress | None":
        """The unpacker for the data: a new one for the first and for each further gzip member; None while too little
        is there to choose by."""
        if self._unpacker is not None and not self._unpacker.eof:
            return self._unpacker
        bits = _WINDOW_BITS[self.encoding]
        if self.encoding == "deflate":
            if self._unpacker is not None:
                raise RefusedError(400, "the deflate body goes on after its end")
            if len(data) < _ZLIB_HEAD_BYTES:
                return None
            bits = _ZLIB if _is_zlib(data) else _RAW
        self._unpacker = zlib.decompressobj(bits)
        return self._unpacker

    def _keep(self, data: bytes) -> None:
        self._size += len(data)
        if self._size > self.max_unpacked:
            raise RefusedError(413, f"the unpacked body is longer than {self.max_unpacked} bytes: send smaller batches")
        self._parts.append(data)

    def _too_long(self) -> RefusedError:
        return RefusedError(413, f"the body is longer than {self.max_body} bytes: send smaller batches")


def _is_zlib(data: bytes) -> bool:
    """Whether the data begins as zlib's do (RFC 1950): RFC 9110 means these by deflate, but some send them bare."""
    return data[0] & 0x0F == zlib.DEFLATED and int.from_bytes(data[:2]) % 31 == 0
