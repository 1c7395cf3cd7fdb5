"""JSON over HTTP with the standard library alone: `firsttoken status` needs no extra."""

import http.client
import json
import ssl
from urllib.parse import urlsplit

from firsttoken.errors import UnreachableError

TIMEOUT_S = 5.0
MAX_ANSWER_BYTES = 64 * 1024 * 1024


def ask_json(url: str, *, body: object = None, timeout_s: float = TIMEOUT_S) -> object:
    """The JSON that a GET (or, with a body, a POST) answers. Raises UnreachableError."""
    text = ask_text(url, body=body, timeout_s=timeout_s)
    try:
        return json.loads(text)
    except ValueError:
        raise UnreachableError(f"{url} answers something that is not JSON") from None


def ask_text(url: str, *, body: object = None, timeout_s: float = TIMEOUT_S) -> str:
    """The text that a GET (or, with a body, a POST of JSON) answers with a 2xx. Raises UnreachableError."""
    connection = _connection(url, timeout_s)
    parts = urlsplit(url)
    path = (parts.path or "/") + (f"?{parts.query}" if parts.query else "")
    try:
        if body is None:
            connection.request("GET", path)
        else:
            connection.request("POST", path, json.dumps(body), {"Content-Type": "application/json"})
        response = connection.getresponse()
        answer = response.read(MAX_ANSWER_BYTES).decode("utf-8", "replace")
    except (OSError, http.client.HTTPException) as error:
        raise UnreachableError(f"{url} does not answer: {error or type(error).__name__}") from None
    finally:
        connection.close()
    if not 200 <= response.status < 300:
        raise UnreachableError(f"{url} answers {response.status}: {answer[:200]}")
    return answer


def _connection(url: str, timeout_s: float) -> http.client.HTTPConnection:
    try:
        parts = urlsplit(url)
        host, port = parts.hostname, parts.port
    except ValueError as error:
        raise UnreachableError(f"{url} is no URL: {error}") from None
    if parts.scheme not in ("http", "https") or not host:
        raise UnreachableError(f"{url} is no URL: write http://HOST:PORT")
    if parts.scheme == "https":
        return http.client.HTTPSConnection(host, port, timeout=timeout_s, context=ssl.create_default_context())
    return http.client.HTTPConnection(host, port, timeout=timeout_s)
