"""Lets in whoever knows the token: a pure ASGI layer before the application.

The token comes as `Authorization: Bearer TOKEN`, or, so that a browser can ask for it, as the password of HTTP Basic.
Health answers need none. Comparison takes the same time whatever was sent.
"""

import base64
import binascii
import hmac

from starlette.types import ASGIApp, Receive, Scope, Send

OPEN_PATHS = frozenset(("/healthz", "/readyz"))
_CHALLENGE = [(b"www-authenticate", b'Basic realm="firsttoken"'), (b"content-type", b"text/plain")]


class TokenGate:
    """The application behind a token."""

    def __init__(self, app: ASGIApp, token: str) -> None:
        self._app = app
        self._token = token.encode()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http" or scope["path"] in OPEN_PATHS or self._knows(scope):
            await self._app(scope, receive, send)
            return
        await send({"type": "http.response.start", "status": 401, "headers": _CHALLENGE})
        await send({"type": "http.response.body", "body": b"this collector asks for its token\n"})

    def _knows(self, scope: Scope) -> bool:
        return any(
            hmac.compare_digest(given(value), self._token)
            for name, value in scope["headers"]
            if name == b"authorization"
        )


def given(authorization: bytes) -> bytes:
    """The token that the header's value carries; empty when it carries none."""
    scheme, _, value = authorization.strip().partition(b" ")
    if scheme.lower() == b"bearer":
        return value.strip()
    if scheme.lower() != b"basic":
        return b""
    try:
        return base64.b64decode(value.strip(), validate=True).partition(b":")[2]
    except binascii.Error:
        return b""
