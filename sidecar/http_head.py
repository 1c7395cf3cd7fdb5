"""HTTP/1.1 heads as values, and what a proxy must change in them.

Takes and gives bytes; knows no socket. A head goes through as it came (names, order, case, duplicates, reason
phrase) but for what RFC 9110 (7.6.1) calls hop-by-hop: `Connection`, what it names, and the fields that speak of one
connection only. Framing fields follow RFC 9112 (6.3): of two that contradict each other only one is passed on.
"""

from dataclasses import dataclass
from typing import Literal

Headers = tuple[tuple[bytes, bytes], ...]
Framing = Literal["none", "length", "chunked", "close"]

HOP_BY_HOP = frozenset((b"connection", b"keep-alive", b"proxy-connection", b"te", b"upgrade", b"http2-settings"))
BODILESS_STATUS = frozenset((204, 304))
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


@dataclass(frozen=True, slots=True)
class RequestHead:
    """A request's head; `target` is raw, as the client wrote it."""

    method: bytes
    target: bytes
    minor: int
    headers: Headers
    keep_alive: bool
    chunked: bool = False
    length: int | None = None
    upgrade: bytes | None = None

    @property
    def has_body(self) -> bool:
        return self.chunked or bool(self.length)

    @property
    def path(self) -> bytes:
        """The raw path without the query."""
        return self.target.partition(b"?")[0]


@dataclass(frozen=True, slots=True)
class ResponseHead:
    """A response's head; `framing` says how its body ends."""

    status: int
    reason: bytes
    headers: Headers
    keep_alive: bool
    framing: Framing


def response_framing(status: int, headers: Headers, *, method: bytes) -> Framing:
    """How the body of a response ends (RFC 9112, 6.3)."""
    if method == b"HEAD" or status < 200 or status in BODILESS_STATUS:
        return "none"
    if (coding := find(headers, b"transfer-encoding")) is not None:
        return "chunked" if tokens(coding)[-1:] == [b"chunked"] else "close"
    return "close" if find(headers, b"content-length") is None else "length"


def in_origin_form(target: bytes, headers: Headers) -> tuple[bytes, Headers]:
    """Target and fields of a request as a server is asked (RFC 9112, 3.2).

    A client that takes us for its forward proxy writes a whole URL: its host then stands before that of Host.
    """
    scheme, found, rest = target.partition(b"://")
    if not found or b"/" in scheme or b"?" in scheme:
        return target, headers
    size = next((at for at, byte in enumerate(rest) if byte in b"/?#"), len(rest))
    authority, path = rest[:size].rpartition(b"@")[2], rest[size:]
    fields = tuple((name, authority if name.lower() == b"host" else value) for name, value in headers)
    return path if path.startswith(b"/") else b"/" + path, fields


def forwarded_request(head: RequestHead, *, prefix: bytes, host: bytes | None, traceparent: bytes | None) -> bytes:
    """The head to send upstream.

    `host` replaces the client's Host when given; `traceparent` replaces every one that came, in the place of the
    first. A body is framed as the client framed it; an upgrade is passed on as one.
    """
    dropped = _named_by_connection(head.headers)
    base = prefix if head.target.startswith(b"/") else b""  # `OPTIONS *` asks for no path
    lines = [b"%s %s%s HTTP/1.1" % (head.method, base, head.target)]
    for name, value in head.headers:
        lower = name.lower()
        if lower == b"host" and host is not None:
            value = host  # noqa: PLW2901  the one field whose value may be ours
        elif lower == TRACEPARENT and traceparent is not None:
            if not traceparent:
                continue
            value, traceparent = traceparent, b""  # noqa: PLW2901
        elif lower in dropped:
            continue
        lines.append(b"%s: %s" % (name, value))
    if find(head.headers, b"host") is None:
        lines.append(b"Host: %s" % (host or b""))  # an HTTP/1.0 client may leave it out; HTTP/1.1 may not
    if traceparent:
        lines.append(b"%s: %s" % (TRACEPARENT, traceparent))
    if head.upgrade is not None:
        lines.append(b"Connection: Upgrade\r\nUpgrade: %s" % head.upgrade)
    return b"\r\n".join(lines) + b"\r\n\r\n"


def forwarded_response(head: ResponseHead, *, minor: int, keep: bool) -> bytes:
    """The head to send to a client that speaks HTTP/1.`minor`.

    `keep` says whether its connection stays open. An HTTP/1.0 client is told so explicitly and gets no
    `Transfer-Encoding`: the caller must take the chunks apart for it.
    """
    dropped = _named_by_connection(head.headers)
    chunked = head.framing == "chunked" or find(head.headers, b"transfer-encoding") is not None
    lines = [b"HTTP/1.1 %d %s" % (head.status, head.reason)]
    for name, value in head.headers:
        lower = name.lower()
        if lower in dropped or (chunked and lower == b"content-length"):
            continue
        if minor == 0 and lower == b"transfer-encoding":
            continue
        lines.append(b"%s: %s" % (name, value))
    if not keep:
        lines.append(b"Connection: close")
    elif minor == 0:
        lines.append(b"Connection: keep-alive")
    return b"\r\n".join(lines) + b"\r\n\r\n"


def interim_response(head: ResponseHead) -> bytes:
    """A 1xx head as it came; for 101 with the fields that make the switch."""
    lines = [b"HTTP/1.1 %d %s" % (head.status, head.reason)]
    lines += [b"%s: %s" % field for field in head.headers]
    return b"\r\n".join(lines) + b"\r\n\r\n"


def _named_by_connection(headers: Headers) -> frozenset[bytes]:
    """Fields that end here. `Connection` cannot name the fields that frame or address the message."""
    named: set[bytes] = set()
    for value in find_all(headers, b"connection"):
        named.update(tokens(value))
    named -= {b"host", b"content-length", b"transfer-encoding", b"close"}
    return HOP_BY_HOP | named
