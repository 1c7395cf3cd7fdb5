"""HTTP/1.1 readers without a socket: bytes in, heads, body pieces and ends out.

`RequestReader` stands between a client and us and is strict: whatever two parsers could read differently (both
framing fields, two lengths, a coding that is not `chunked`, bare line feeds, spaces before a colon) is refused, so
that no request can hide in another (RFC 9112, 11.2). `ResponseReader` stands between us and a server that the
operator chose, and only follows the framing. The grammar is llhttp's, through httptools.

Errors: `BadAnswerError` is a server's answer that cannot be followed. A client's fault is no exception but the last
event, a `Refusal`, because the good requests before it must be answered first.
"""

from dataclasses import dataclass, field
from typing import TypeAlias

import httptools

from sidecar.http.http_head import (
    Framing,
    Headers,
    RequestHead,
    ResponseHead,
    in_origin_form,
    response_framing,
    tokens,
)
from sidecar.limits import MAX_RESPONSE_HEAD_BYTES

_VERSION = b"HTTP/1."


class BadAnswerError(Exception):
    """The server's bytes are not HTTP/1.1; `payload` is what of the body came in the same read and was good."""

    def __init__(self, message: str, *, payload: bytes = b"") -> None:
        super().__init__(message)
        self.payload = payload


@dataclass(slots=True)
class Body:
    """A piece of a request's body, without its chunk framing. (Not frozen, as a head is not, for the same reason.)"""

    data: bytes


@dataclass(frozen=True, slots=True)
class End:
    """A request is whole; a chunked one may have had trailers."""

    trailers: Headers = ()


END = End()


@dataclass(frozen=True, slots=True)
class Beyond:
    """Bytes behind a request that asks for another protocol: not HTTP if the server agrees."""

    data: bytes


@dataclass(frozen=True, slots=True)
class Refusal:
    """What the client must be answered before its connection is closed. `head`: of a request too long to be taken."""

    status: int
    message: str
    head: RequestHead | None = field(default=None, compare=False)


Event: TypeAlias = RequestHead | Body | End | Beyond | Refusal


class RequestReader:
    """Reads a client's stream of requests, pipelined ones too."""

    __slots__ = (
        "_body_bytes", "_dry_bytes", "_events", "_fields", "_head_bytes", "_in_body", "_max_body", "_max_head",
        "_parser", "_refusal", "_silent", "_target", "_unread", "_upgrade", "switching",
    )  # fmt: skip

    def __init__(self, *, max_head: int, max_body: int) -> None:
        self._max_head, self._max_body = max_head, max_body
        self._events: list[Event] = []
        self.switching = self._silent = False
        self.restart()

    def restart(self) -> None:
        """Begin anew, as after an upgrade that the server declined."""
        self._parser = httptools.HttpRequestParser(self)
        self.switching = False
        self._between()

    def _between(self) -> None:
        """Stand between two requests."""
        self._target = b""
        self._fields: list[tuple[bytes, bytes]] = []
        self._head_bytes = self._body_bytes = self._dry_bytes = 0
        self._in_body = False
        self._upgrade: bytes | None = None
        self._unread: RequestHead | None = None
        self._refusal: Refusal | None = None

    def close(self) -> None:
        """Nothing more comes: without its parser, which holds it, this goes with the last reference to it."""
        del self._parser

    @property
    def idle(self) -> bool:
        """Whether no byte of a request has come since the last one ended."""
        return self._head_bytes == 0 and not self._in_body

    def feed(self, data: bytes) -> list[Event]:
        """The events that `data` completes, in order. After a `Refusal` the reader must not be fed again."""
        while data:
            if self.switching:
                self._events.append(Beyond(data))
                break
            if self._in_body:
                self._dry_bytes += len(data)
            else:
                self._head_bytes += len(data)
            data = self._parse(data)
        events, self._events = self._events, []
        return events

    def _parse(self, data: bytes) -> bytes:
        """Feed the parser; what is left over when it stops at an upgrade."""
        rest = b""
        try:
            self._parser.feed_data(data)
        except httptools.HttpParserUpgrade as stop:
            rest = data[stop.args[0] :]
            if not self.switching:
                self._stay(self._unread)
        except httptools.HttpParserError as error:
            self._refuse(400, f"not a valid HTTP/1.1 request: {str(error)[:200]}")
        if not self._in_body and self._head_bytes > self._max_head:
            self._refuse(431, f"the request head is longer than {self._max_head} bytes")
        if self._in_body and self._dry_bytes > self._max_head:
            self._refuse(431, f"the request's trailers or chunk extensions are longer than {self._max_head} bytes")
        if self._refusal is not None:
            self._events.append(self._refusal)
            return b""
        return rest

    def _stay(self, unread: RequestHead | None) -> None:
        """Go on as HTTP/1.1 after an upgrade that we do not pass on, as Java's clients offer h2c with each request.

        llhttp has then stopped behind the head and skipped the body; a parser that is told of the body reads it.
        """
        self._parser = httptools.HttpRequestParser(self)
        if unread is not None:
            framing = b"Transfer-Encoding: chunked" if unread.chunked else b"Content-Length: %d" % (unread.length or 0)
            self._silent = True
            self._parser.feed_data(b"POST / HTTP/1.1\r\n%b\r\n\r\n" % framing)
            self._silent, self._unread = False, None
            self._target, self._fields = b"", []

    def _refuse(self, status: int, message: str, head: RequestHead | None = None) -> None:
        self._refusal = self._refusal or Refusal(status, message, head)

    # Called by httptools.

    def on_url(self, url: bytes) -> None:
        self._target += url

    def on_header(self, name: bytes, value: bytes) -> None:
        self._fields.append((name, value.rstrip(b" \t")))  # llhttp takes off only the blanks before it

    def on_headers_complete(self) -> None:
        if self._refusal is not None or self._silent:
            return
        if self._head_bytes > self._max_head:  # with what may stand behind it in the same read
            size = len(self._target) + sum(len(name) + len(value) + 4 for name, value in self._fields)
            if size > self._max_head:
                self._refuse(431, f"the request head is longer than {self._max_head} bytes")
                return
        head = self._head()
        if self._refusal is None:
            self._events.append(head)
            self._in_body, self._head_bytes, self._fields = True, 0, []
            self._upgrade = head.upgrade
            self._unread = head if self._parser.should_upgrade() and head.has_body else None

    def on_body(self, data: bytes) -> None:
        if self._refusal is not None:
            return
        self._dry_bytes = 0
        self._body_bytes += len(data)
        if self._body_bytes > self._max_body:
            self._refuse(413, f"the request body is longer than {self._max_body} bytes")
            return
        self._events.append(Body(data))

    def on_message_complete(self) -> None:
        if self._refusal is not None or self._unread is not None:
            return
        self._events.append(End(tuple(self._fields)) if self._fields else END)
        self.switching = self._upgrade is not None
        self._between()

    def _head(self) -> RequestHead:
        """The head just read; sets the refusal when it must not be passed on."""
        parser, target, fields = self._parser, self._target, tuple(self._fields)
        version = parser.get_http_version()
        if not target.startswith(b"/"):
            target, fields = in_origin_form(target, fields)
        head = RequestHead(parser.get_method(), target, int(version == "1.1"), fields, keep_alive=True)
        length = head.find(b"content-length")
        if length is not None and length.isdigit():
            head.length = int(length)
        if not head.shape.is_usual or version != "1.1":
            self._frame(head, version)
        if head.method == b"CONNECT" and self._refusal is None:
            self._refuse(501, "this is no forward proxy: CONNECT is not served")
        elif head.length is not None and head.length > self._max_body:
            self._refuse(413, f"the request body is longer than {self._max_body} bytes", head)
        return head

    def _frame(self, head: RequestHead, version: str) -> None:
        """Read what an unusual head says of its framing and its connection. Refuse what two parsers could read
        differently, and what is not served here."""
        places, twice, codings = head.shape.places, head.shape.twice, head.find_all(b"transfer-encoding")
        head.chunked = bool(codings)
        options = tokens(b",".join(head.find_all(b"connection")))
        head.keep_alive = b"close" not in options and (version == "1.1" or b"keep-alive" in options)
        sized = b"content-length" in places
        if b"upgrade" in places and self._parser.should_upgrade() and not head.has_body and not sized:
            head.upgrade = _passed_upgrade(head)
        if version not in ("1.0", "1.1"):
            self._refuse(505, "only HTTP/1.0 and HTTP/1.1 are spoken here")
        elif head.method == b"CONNECT":
            pass
        elif codings and (sized or len(codings) > 1 or codings[0].strip().lower() != b"chunked" or version == "1.0"):
            self._refuse(400, "Transfer-Encoding must be chunked, alone and without Content-Length")
        elif b"content-length" in twice:
            self._refuse(400, "Content-Length stands more than once")
        elif b"host" in twice or (b"host" not in places and version == "1.1"):
            self._refuse(400, "exactly one Host field is needed")


class ResponseReader:
    """Reads one server's answer: its heads with `head`, then its body with `body`; the next one after `restart`."""

    __slots__ = (
        "_after_line",
        "_at_start",
        "_dry_bytes",
        "_fields",
        "_head_fields",
        "_headed",
        "_in_chunk",
        "_keep_alive",
        "_method",
        "_parser",
        "_payload",
        "_reason",
        "complete",
        "framing",
        "surplus",
    )

    def __init__(self, *, method: bytes = b"GET") -> None:
        self._at_start = False
        self.restart(method=method)

    def restart(self, *, method: bytes) -> None:
        """Be ready for the answer to another request, of the same connection."""
        self._method = method
        self._begin()

    def _begin(self) -> None:
        if not self._at_start:  # a parser is made for each connection, not for each answer, while it keeps its place
            self._parser = httptools.HttpResponseParser(self)
            # Both framing fields: the chunks win (RFC 9112, 6.3), and the length is not passed on.
            self._parser.set_dangerous_leniencies(lenient_chunked_length=True)
            self._at_start = True
        self._reason = b""
        self._fields: list[tuple[bytes, bytes]] = []
        self._keep_alive = self._headed = self._in_chunk = self._after_line = False
        self._head_fields = self._dry_bytes = 0
        self._payload: list[bytes] = []
        self.complete = False
        self.surplus = False
        self.framing: Framing = "none"

    def close(self) -> None:
        """Nothing more comes: without its parser, which holds it, this goes with the last reference to it."""
        del self._parser

    def head(self, data: bytes) -> ResponseHead:
        """The head that `data` is, with its empty line. After a 1xx other than 101 the next head follows."""
        if self._headed:
            self._begin()
        self._feed(data)
        if not self._headed or len(data) > MAX_RESPONSE_HEAD_BYTES:
            raise BadAnswerError("the answer's head is broken or too long")
        fields, count = self._fields, self._head_fields
        status, headers = self._parser.get_status_code(), tuple(fields if len(fields) == count else fields[:count])
        if status < 100:
            raise BadAnswerError("the answer's status is none")
        head = ResponseHead(status, self._reason, headers, self._keep_alive)
        head.raw = data
        head.framing = self.framing = response_framing(head, method=self._method)
        self.complete = status >= 200 and (self.complete or self.framing == "none")
        return head

    @property
    def trailers(self) -> Headers:
        """The fields behind a chunked body, once it is complete."""
        return tuple(self._fields[self._head_fields :])

    @property
    def between_chunks(self) -> bool:
        """Whether the next byte begins a chunk, or is payload like every byte."""
        return self.framing == "close" or (self._after_line and not self._in_chunk)

    def body(self, data: bytes) -> bytes:
        """The payload within `data`; sets `complete`, and `surplus` when bytes follow the end."""
        if self.complete:
            self.surplus = self.surplus or bool(data)
            return b""
        self._dry_bytes += len(data)
        self._after_line = data.endswith(b"\r\n")
        try:
            self._feed(data)
        except BadAnswerError as error:
            error.payload = self._taken()
            raise
        if self._dry_bytes > MAX_RESPONSE_HEAD_BYTES:
            raise BadAnswerError("the answer's trailers or chunk extensions are too long", payload=self._taken())
        return self._taken()

    def _taken(self) -> bytes:
        payload, self._payload = self._payload, []
        return payload[0] if len(payload) == 1 else b"".join(payload)

    def _feed(self, data: bytes) -> None:
        try:
            self._parser.feed_data(data)
        except httptools.HttpParserUpgrade:
            self._at_start = False  # 101: the caller sees the status and what follows is not HTTP
        except httptools.HttpParserError as error:
            self._at_start = False
            if not self.complete:
                raise BadAnswerError(f"the answer is not HTTP/1.1: {str(error)[:200]}") from None
            self.surplus = True

    # Called by httptools.

    def on_message_begin(self) -> None:
        self.surplus = self.complete
        self._at_start = False

    def on_status(self, reason: bytes) -> None:
        self._reason += reason

    def on_header(self, name: bytes, value: bytes) -> None:
        self._fields.append((name, value))

    def on_headers_complete(self) -> None:
        self._headed = True
        self._head_fields = len(self._fields)
        self._keep_alive = self._parser.should_keep_alive()

    def on_body(self, data: bytes) -> None:
        self._dry_bytes = 0
        if not self.complete:
            self._payload.append(data)

    def on_chunk_header(self) -> None:
        self._in_chunk = True

    def on_chunk_complete(self) -> None:
        self._in_chunk = False

    def on_message_complete(self) -> None:
        self.complete = self._at_start = True


def may_be_head(data: bytes) -> bool:
    """Whether `data`, without an empty line so far, may become an answer's head: what cannot is not waited for."""
    start = data.lstrip(b"\r\n")[: len(_VERSION)]
    return _VERSION.startswith(start) and b"\n\n" not in data


def _passed_upgrade(head: RequestHead) -> bytes | None:
    """The protocol asked for, unless it is HTTP/2: that would take the stream out of our sight."""
    value = b", ".join(head.find_all(b"upgrade"))
    return None if not value or b"h2c" in tokens(value) else value
