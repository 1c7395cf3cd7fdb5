"""Answers of the proxy's own: an error, in the form that OpenAI's clients read errors in."""

import orjson

from sidecar.http.http_head import Headers, ResponseHead, forwarded_response

REASONS = {
    400: b"Bad Request",
    413: b"Content Too Large",
    431: b"Request Header Fields Too Large",
    501: b"Not Implemented",
    502: b"Bad Gateway",
    504: b"Gateway Timeout",
    505: b"HTTP Version Not Supported",
}


def error_answer(status: int, message: str, *, kind: str, minor: int, keep: bool) -> bytes:
    """A whole answer for a client of HTTP/1.`minor`, whose connection stays open if `keep`."""
    error = {"message": message, "type": kind, "param": None, "code": status}
    body = orjson.dumps({"error": error})
    length = str(len(body)).encode()
    fields: Headers = ((b"Content-Type", b"application/json"), (b"Content-Length", length))
    head = ResponseHead(status, REASONS.get(status, b""), fields, keep, "length")
    return forwarded_response(head, minor=minor, keep=keep) + body
