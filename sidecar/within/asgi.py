"""ASGI (version 3.0) as types, and a page asked of an app without a socket."""

import asyncio
from collections.abc import Awaitable, Callable, MutableMapping
from typing import Any, TypeAlias

from sidecar import limits
from sidecar.polling.poller import PollError
from sidecar.transport.upstream import Target

Scope: TypeAlias = MutableMapping[str, Any]
Message: TypeAlias = MutableMapping[str, Any]
Receive: TypeAlias = Callable[[], Awaitable[Message]]
Send: TypeAlias = Callable[[Message], Awaitable[None]]
App: TypeAlias = Callable[[Scope, Receive, Send], Awaitable[None]]

ITSELF = Target("http", "127.0.0.1", 0)
_KEPT = ("app", "asgi", "root_path", "state")  # what an app may ask of a scope that its server or framework made


class InnerPages:
    """Asks an app for its pages. `like` is a scope that the app has been called with."""

    def __init__(self, app: App, like: Scope) -> None:
        self._app = app
        self._like = {key: like[key] for key in _KEPT if key in like}

    async def get(self, _target: Target, path: str) -> bytes:
        """The body of a 200 answer; PollError says why there is none."""
        answer = _Answer()
        try:
            async with asyncio.timeout(limits.SCRAPE_TIMEOUT_S):
                await self._app(self._get(path), answer.receive, answer.send)
        except TimeoutError:
            raise PollError("timeout") from None
        except Exception as error:
            if answer.too_large:
                raise PollError("too_large") from None
            raise PollError("app_error") from error
        if answer.status != 200:
            raise PollError(f"http_{answer.status}" if answer.status else "cut_short")
        return b"".join(answer.pieces)

    def _get(self, path: str) -> Scope:
        return {
            "type": "http",
            "asgi": {"version": "3.0", "spec_version": "2.3"},
            "http_version": "1.1",
            "method": "GET",
            "scheme": "http",
            "path": path,
            "raw_path": path.encode(),
            "query_string": b"",
            "root_path": "",
            "headers": [(b"host", ITSELF.host.encode())],
            "client": (ITSELF.host, ITSELF.port),
            "server": (ITSELF.host, ITSELF.port),
            **self._like,
            "state": dict(self._like.get("state", ())),
        }


class _Answer:
    """Takes one answer, up to the size that a page may have."""

    def __init__(self) -> None:
        self.status = 0
        self.pieces: list[bytes] = []
        self.too_large = False
        self._size = 0
        self._asked = False

    async def receive(self) -> Message:
        if self._asked:
            await asyncio.get_running_loop().create_future()  # this client never leaves
        self._asked = True
        return {"type": "http.request", "body": b"", "more_body": False}

    async def send(self, message: Message) -> None:
        if message["type"] == "http.response.start":
            self.status = message["status"]
        elif message["type"] == "http.response.body":
            self.pieces.append(message.get("body", b""))
            self._size += len(self.pieces[-1])
            if self._size > limits.SCRAPE_BYTES:
                self.too_large = True
                raise PollError("too_large")
