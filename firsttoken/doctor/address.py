"""Where something answers, and how it is named to people: a URL without its secrets, and foreign text made harmless."""

import re
from base64 import b64encode
from dataclasses import dataclass
from urllib.parse import SplitResult, unquote, urlsplit

from firsttoken.errors import UsageError
from slo.words import visible

MAX_TEXT = 300
_CREDENTIALS = re.compile(r"(?<=://)[^/\s]+@")
_QUERY = re.compile(r"(https?://[^\s?\"']+)\?[^\s\"']+")


@dataclass(frozen=True, slots=True)
class Address:
    """The root of a server. `authorization` is the header's value, and '' where nothing is to be shown."""

    url: str
    authorization: str = ""

    def at(self, path: str) -> str:
        """The URL of a path below the root."""
        return f"{self.url}{path}"


def address(flag: str, text: str, *, is_typed: bool = False, leaf: str = "") -> Address:
    """The address that a flag names; `leaf` is a path that may stand at its end, as /metrics. Raises UsageError.

    A user and a password come from the environment: on a command line (`is_typed`) all of a machine's users see them.
    """
    parts = _split(flag, text)
    if is_typed and parts.password:
        raise UsageError(f"{flag}: a password must not stand on a command line: use the environment")
    host = f"[{parts.hostname}]" if ":" in (parts.hostname or "") else parts.hostname
    port = "" if parts.port is None else f":{parts.port}"
    path = parts.path.rstrip("/").removesuffix(leaf) if leaf else parts.path.rstrip("/")
    pair = f"{unquote(parts.username or '')}:{unquote(parts.password or '')}"
    basic = f"Basic {b64encode(pair.encode()).decode('ascii')}" if pair != ":" else ""
    return Address(f"{parts.scheme}://{host}{port}{path.rstrip('/')}", basic)


def _split(flag: str, text: str) -> SplitResult:
    try:
        parts = urlsplit(text)
        _ = parts.port
    except ValueError as error:
        raise _no_url(flag, text, f" ({error})") from None
    if parts.scheme not in ("http", "https") or not parts.hostname or text.split() != [visible(text)]:
        raise _no_url(flag, text)
    return parts


def _no_url(flag: str, text: str, why: str = "") -> UsageError:
    """Of a text with an @ nothing is shown: where it is no URL, nobody can tell where in it a password ends."""
    if "@" in text:
        return UsageError(
            f"{flag} is no URL: write http://USER@HOST:PORT, with %2F for a / in what stands before the @"
        )
    return UsageError(f"{flag} {plain_text(text)} is no URL{why}: write http://HOST:PORT")


def plain_text(text: str) -> str:
    """What somebody else wrote, on one line of bounded length: no credential of a URL, nothing that steers a
    terminal."""
    clean = _QUERY.sub(r"\1", _CREDENTIALS.sub("", " ".join(text.split())))
    shown = visible(clean)
    return shown if len(shown) <= MAX_TEXT else f"{shown[: MAX_TEXT - 3]}..."
