"""One question to a server, asked by itself and outside any load: blocking, with an end to its wait and its answer."""

import http.client
import ssl
from urllib.parse import urlsplit

ASK_TIMEOUT_S = 10.0
MAX_ANSWER_BYTES = 1024 * 1024
UNANSWERED = (OSError, http.client.HTTPException)
"""What `exchange` raises where no answer comes."""


def exchange(url: str, method: str = "GET", body: bytes | None = None) -> tuple[int, bytes]:
    """The status and the body, up to `MAX_ANSWER_BYTES`, that `url` answers with; a body that is sent is JSON. Raises
    one of `UNANSWERED`."""
    parts = urlsplit(url)
    assert parts.hostname is not None
    if parts.scheme == "https":
        context = ssl.create_default_context()
        connection: http.client.HTTPConnection = http.client.HTTPSConnection(
            parts.hostname, parts.port, timeout=ASK_TIMEOUT_S, context=context
        )
    else:
        connection = http.client.HTTPConnection(parts.hostname, parts.port, timeout=ASK_TIMEOUT_S)
    try:
        path = (parts.path or "/") + (f"?{parts.query}" if parts.query else "")
        connection.request(method, path, body, {"content-type": "application/json"} if body else {})
        answer = connection.getresponse()
        return answer.status, answer.read(MAX_ANSWER_BYTES)
    finally:
        connection.close()
