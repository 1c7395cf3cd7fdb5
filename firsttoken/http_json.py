"""JSON over HTTP with the standard library alone: `firsttoken status` needs no extra."""

import http.client
import json
import ssl
from dataclasses import dataclass
from urllib.parse import urlsplit

from firsttoken.errors import UnreachableError
from slo.words import reason

TIMEOUT_S = 5.0
MAX_ANSWER_BYTES = 64 * 1024 * 1024


@dataclass(frozen=True, slots=True)
class Access:
    """What a protected server asks for: a token, the authority that signed its certificate where the system does not
    know it, and a certificate of one's own."""

    token: str = ""
    ca_file: str = ""
    cert_file: str = ""
    key_file: str = ""


NOTHING_ASKED = Access()
_NO_USER = "a user or a password in a URL is not sent, and that URL is not repeated here: write http://HOST:PORT"


def ask_json(url: str, *, body: object = None, timeout_s: float = TIMEOUT_S, access: Access = NOTHING_ASKED) -> object:
    """The JSON that a GET (or, with a body, a POST) answers. Raises UnreachableError."""
    text = ask_text(url, body=body, timeout_s=timeout_s, access=access)
    try:
        return json.loads(text)
    except (ValueError, RecursionError):
        raise UnreachableError(f"{url} answers something that is not JSON") from None


def ask_text(url: str, *, body: object = None, timeout_s: float = TIMEOUT_S, access: Access = NOTHING_ASKED) -> str:
    """The text that a GET (or, with a body, a POST of JSON) answers with a 2xx. Raises UnreachableError."""
    opened = connection(url, timeout_s, access)
    target = request_target(url)
    headers = {"Authorization": f"Bearer {access.token}"} if access.token else {}
    try:
        if body is None:
            opened.request("GET", target, headers=headers)
        else:
            opened.request("POST", target, json.dumps(body), headers | {"Content-Type": "application/json"})
        response = opened.getresponse()
        answer = response.read(MAX_ANSWER_BYTES).decode("utf-8", "replace")
        kind = response.headers.get_content_type()
    except (OSError, http.client.HTTPException) as error:
        raise UnreachableError(f"{url} does not answer: {reason(error)}: is it up, and is that its address?") from None
    finally:
        opened.close()
    if not 200 <= response.status < 300:
        said = "a page for people: is that its address?" if kind == "text/html" else " ".join(answer[:200].split())
        raise UnreachableError(f"{url} answers {response.status}: {said}")
    return answer


def request_target(url: str) -> str:
    """What a request line asks the server of a URL for: the path and the query (RFC 9112, "origin-form")."""
    parts = urlsplit(url)
    return (parts.path or "/") + (f"?{parts.query}" if parts.query else "")


def connection(url: str, timeout_s: float, access: Access) -> http.client.HTTPConnection:
    """A connection to the server of a URL, not opened yet. Raises UnreachableError."""
    try:
        parts = urlsplit(url)
        host, port = parts.hostname, parts.port
    except ValueError as error:
        raise UnreachableError(_NO_USER if "@" in url else f"{url} is no URL: {error}") from None
    if "@" in (parts.netloc or url):
        raise UnreachableError(_NO_USER)
    if parts.scheme not in ("http", "https") or not host:
        raise UnreachableError(f"{url} is no URL: write http://HOST:PORT")
    try:
        if parts.scheme == "http":
            return http.client.HTTPConnection(host, port, timeout=timeout_s)
        return http.client.HTTPSConnection(host, port, timeout=timeout_s, context=_context(access))
    except http.client.InvalidURL:
        raise UnreachableError(f"{url!r} is no URL: a host has no blanks") from None


def _context(access: Access) -> ssl.SSLContext:
    try:
        context = ssl.create_default_context(cafile=access.ca_file or None)
    except OSError as error:
        raise UnreachableError(f"{access.ca_file} holds no certificates: {reason(error)}") from None
    try:
        if access.cert_file:
            context.load_cert_chain(access.cert_file, access.key_file or None)
    except OSError as error:
        raise UnreachableError(f"{access.cert_file} holds no certificate with its key: {reason(error)}") from None
    return context
