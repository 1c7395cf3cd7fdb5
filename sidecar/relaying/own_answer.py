"""Answers of the proxy's own: an error, in the form that OpenAI's clients read errors in, and that the server has too
much to do, in the form of the API that was asked."""

from typing import Protocol

import orjson

from sidecar.http.http_head import Headers, ResponseHead, forwarded_response
from sidecar.judging.watch import Shed

UNREACHABLE = "The server behind this proxy cannot be reached."
BROKE_OFF = "The server behind this proxy closed the connection without an answer."
NOT_HTTP = "The server behind this proxy gave no valid answer."
REASONS = {
    400: b"Bad Request",
    413: b"Content Too Large",
    431: b"Request Header Fields Too Large",
    501: b"Not Implemented",
    502: b"Bad Gateway",
    503: b"Service Unavailable",
    504: b"Gateway Timeout",
    505: b"HTTP Version Not Supported",
}


class Answer(Protocol):
    """A whole answer for a client of HTTP/1.`minor`, whose connection stays open if `keep`."""

    def __call__(self, *, minor: int, keep: bool) -> bytes: ...


def error_answer(status: int, message: str, *, kind: str, minor: int, keep: bool) -> bytes:
    """That something went wrong, of this `kind`."""
    error = {"message": message, "type": kind, "param": None, "code": status}
    return _answer(status, orjson.dumps({"error": error}), (), minor=minor, keep=keep)


def overload_answer(shed: Shed, *, minor: int, keep: bool) -> bytes:
    """That the server could not begin in time."""
    body = orjson.dumps(shed.dialect.overload(f"The server's queue is too long: try again in {shed.retry_s} s."))
    return _answer(503, body, ((b"Retry-After", str(shed.retry_s).encode()),), minor=minor, keep=keep)


def _answer(status: int, body: bytes, more: Headers, *, minor: int, keep: bool) -> bytes:
    length = str(len(body)).encode()
    fields: Headers = ((b"Content-Type", b"application/json"), (b"Content-Length", length), *more)
    head = ResponseHead(status, REASONS.get(status, b""), fields, keep, "length")
    return forwarded_response(head, minor=minor, keep=keep) + body
