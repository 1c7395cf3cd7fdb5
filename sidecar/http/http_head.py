"""HTTP/1.1 heads as values, and what a proxy must change in them.

Takes and gives bytes; knows no socket. A head goes through as it came (names, order, case, duplicates, reason
phrase) but for what RFC 9110 (7.6.1) calls hop-by-hop: `Connection`, what it names, and the fields that speak of one
connection only. Framing fields follow RFC 9112 (6.3): of two that contradict each other only one is passed on.
"""

from dataclasses import dataclass, field
from typing import Literal

from sidecar.http.head_shape import HOP_BY_HOP, TOKEN, Headers, Shape, shape_of

__all__ = ["HOP_BY_HOP", "TOKEN", "Headers"]

Framing = Literal["none", "length", "chunked", "close"]

BODILESS_STATUS = frozenset((204, 304))
_STATUS_LINE = b"HTTP/1.1 "
TRACEPARENT = b"traceparent"


def tokens(value: bytes) -> list[bytes]:
    """The lower-case members of a comma-separated field such as `Connection`."""
    return [part.strip().lower() for part in value.split(b",") if part.strip()]


def find(headers: Headers, name: bytes) -> bytes | None:
    """The first value of `name` (given in lower case), or None."""
    for key, value in headers:
        if len(key) == len(name) and key.lower() == name:
            return value
    return None


def find_all(headers: Headers, name: bytes) -> list[bytes]:
    """Every value of `name` (given in lower case), in order."""
    return [value for key, value in headers if key.lower() == name]


@dataclass(slots=True)
class RequestHead:
    """A request's head; `target` is raw, as the client wrote it.

    A value all the same: who reads it off the wire fills it in, and from then on nobody changes it. (One is made for
    each request; frozen, it would cost three times as much.)
    """

    method: bytes
    target: bytes
    minor: int
    headers: Headers
    keep_alive: bool
    chunked: bool = False
    length: int | None = None
    upgrade: bytes | None = None
    shape: Shape = field(init=False, repr=False, compare=False)
    """What the names of `headers` say."""

    def __post_init__(self) -> None:
        self.shape = shape_of(self.headers)

    @property
    def has_body(self) -> bool:
        return self.chunked or bool(self.length)

    @property
    def path(self) -> bytes:
        """The raw path without the query."""
        return self.target.partition(b"?")[0]

    def find(self, name: bytes) -> bytes | None:
        """The first value of `name` (given in lower case), or None."""
        place = self.shape.places.get(name)
        return None if place is None else self.headers[place][1]

    def find_all(self, name: bytes) -> list[bytes]:
        """Every value of `name` (given in lower case), in order."""
        return find_all(self.headers, name) if name in self.shape.places else []


@dataclass(slots=True)
class ResponseHead:
    """A response's head; `framing` says how its body ends, `raw` are the bytes that it was read from. A value, as a
    request's head is."""

    status: int
    reason: bytes
    headers: Headers
    keep_alive: bool
    framing: Framing = "none"
    raw: bytes = field(default=b"", init=False, repr=False, compare=False)
    shape: Shape = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        self.shape = shape_of(self.headers)

    def find(self, name: bytes) -> bytes | None:
        """The first value of `name` (given in lower case), or None."""
        place = self.shape.places.get(name)
        return None if place is None else self.headers[place][1]


def response_framing(head: ResponseHead, *, method: bytes) -> Framing:
    """How the body of a response ends (RFC 9112, 6.3), whatever its head says of that already."""
    if method == b"HEAD" or head.status < 200 or head.status in BODILESS_STATUS:
        return "none"
    if (coding := head.find(b"transfer-encoding")) is not None:
        # As llhttp reads it, which must find the end: what it does not take for chunked lasts until the close.
        return "chunked" if coding.rpartition(b",")[2].strip(b" ").lower() == b"chunked" else "close"
    return "length" if b"content-length" in head.shape.places else "close"


def in_origin_form(target: bytes, headers: Headers) -> tuple[bytes, Headers]:
    """Target and fields of a request as a server is asked (RFC 9112, 3.2).

    A client that takes us for its forward proxy writes a whole URL: its host then stands before that of Host.
    """
    if target.startswith(b"/"):
        return target, headers
    scheme, found, rest = target.partition(b"://")
    if not found or b"/" in scheme or b"?" in scheme:
        return target, headers
    size = next((at for at, byte in enumerate(rest) if byte in b"/?#"), len(rest))
    authority, path = rest[:size].rpartition(b"@")[2], rest[size:]
    fields = tuple((name, authority if name.lower() == b"host" else value) for name, value in headers)
    return path if path.startswith(b"/") else b"/" + path, fields


def forwarded_request(
    head: RequestHead,
    *,
    prefix: bytes,
    host: bytes | None,
    traceparent: bytes | None,
    length: int | None = None,
    body: bytes = b"",
) -> bytes:
    """The head to send upstream, and behind it `body`.

    `host` replaces the client's Host when given, `length` its Content-Length; `traceparent` replaces every one that
    came, in the place of the first. A body is framed as the client framed it; an upgrade is passed on as one.
    """
    base = prefix if head.target.startswith(b"/") else b""  # `OPTIONS *` asks for no path
    lines = [b"%s %s%s HTTP/1.1" % (head.method, base, head.target)]
    places, headers = head.shape.places, head.headers if length is None else _resized(head, length)
    if host is None and head.shape.passes and b"host" in places and TRACEPARENT not in places:  # nearly every request
        lines += map(b": ".join, headers)
    else:
        traceparent = _changed_fields(lines, head, headers, host=host, traceparent=traceparent)
    if traceparent:
        lines.append(b"%s: %s" % (TRACEPARENT, traceparent))
    if head.upgrade is not None:
        lines.append(b"Connection: Upgrade\r\nUpgrade: %s" % head.upgrade)
    lines += (b"", body)
    return b"\r\n".join(lines)


def _resized(head: RequestHead, length: int) -> Headers:
    """The fields of a request whose body has become `length` bytes long; chunks need no length."""
    place = head.shape.places.get(b"content-length")
    if place is None:
        return head.headers
    name, _ = head.headers[place]
    return *head.headers[:place], (name, b"%d" % length), *head.headers[place + 1 :]


def _changed_fields(
    lines: list[bytes], head: RequestHead, headers: Headers, *, host: bytes | None, traceparent: bytes | None
) -> bytes | None:
    """Add `headers`, the fields of `head`, as they are sent upstream; the traceparent that has still to be sent."""
    dropped = _named_by_connection(head)
    for lower, (name, value) in zip(head.shape.names, headers, strict=True):
        if lower == b"host" and host is not None:
            value = host  # noqa: PLW2901  the one field whose value may be ours
        elif lower == TRACEPARENT and traceparent is not None:
            if not traceparent:
                continue
            value, traceparent = traceparent, b""  # noqa: PLW2901
        elif lower in dropped:
            continue
        lines.append(b"%s: %s" % (name, value))
    if b"host" not in head.shape.places:
        lines.append(b"Host: %s" % (host or b""))  # an HTTP/1.0 client may leave it out; HTTP/1.1 may not
    return traceparent


def forwarded_response(head: ResponseHead, *, minor: int, keep: bool) -> bytes:
    """The head to send to a client that speaks HTTP/1.`minor`.

    `keep` says whether its connection stays open. An HTTP/1.0 client is told so explicitly and gets no
    `Transfer-Encoding`: the caller must take the chunks apart for it. Nearly every head goes as the bytes that came.
    """
    shape = head.shape
    chunked = head.framing == "chunked" or b"transfer-encoding" in shape.places
    passes = minor and shape.passes and not (chunked and b"content-length" in shape.places)
    if passes and keep and head.raw[: len(_STATUS_LINE)] == _STATUS_LINE:
        return head.raw
    lines = [b"HTTP/1.1 %d %s" % (head.status, head.reason)]
    if passes:
        lines += map(b": ".join, head.headers)
    else:
        dropped = _named_by_connection(head)
        if chunked:
            dropped |= {b"content-length"}
        if minor == 0:
            dropped |= {b"transfer-encoding"}
        lines += [
            b": ".join(pair) for lower, pair in zip(shape.names, head.headers, strict=True) if lower not in dropped
        ]
    if not keep:
        lines.append(b"Connection: close")
    elif minor == 0:
        lines.append(b"Connection: keep-alive")
    return b"\r\n".join(lines) + b"\r\n\r\n"


def chunk(data: bytes) -> bytes:
    """A chunk of a body; `data` is not empty (RFC 9112, 7.1)."""
    return b"%x\r\n%b\r\n" % (len(data), data)


def last_chunk(trailers: Headers) -> bytes:
    """The chunk that ends a body, with the fields behind it."""
    return b"0\r\n" + b"".join(b"%b: %b\r\n" % field for field in trailers) + b"\r\n"


def interim_response(head: ResponseHead) -> bytes:
    """A 1xx head as it came; for 101 with the fields that make the switch."""
    lines = [b"HTTP/1.1 %d %s" % (head.status, head.reason)]
    lines += [b"%s: %s" % field for field in head.headers]
    return b"\r\n".join(lines) + b"\r\n\r\n"


def _named_by_connection(head: RequestHead | ResponseHead) -> frozenset[bytes]:
    """Fields that end here. `Connection` cannot name the fields that frame or address the message."""
    if b"connection" not in head.shape.places:
        return HOP_BY_HOP
    named: set[bytes] = set()
    for value in find_all(head.headers, b"connection"):
        named.update(tokens(value))
    named -= {b"host", b"content-length", b"transfer-encoding", b"close"}
    return HOP_BY_HOP | named
