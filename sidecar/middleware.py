"""The eye inside an ASGI server: `app.add_middleware(FirstTokenMiddleware)`, or
`vllm serve --middleware sidecar.middleware.FirstTokenMiddleware`. Configured by environment (see `attachment`).

    server ─▶ FirstTokenMiddleware ─▶ app          a `AsgiRelay` for each admitted request
                     └─▶ AsgiRelay ─▶ Watch ─▶ Eye   (the same as behind the proxy)

Attached on first use, to the event loop that runs then; telemetry begins when the app has started (or with the first
request of one that has no lifespan) and ends with the app's shutdown, or else with the process. Whatever goes wrong in
here is counted or told and the request goes on. WebSockets and every other request pass untouched.
"""

import asyncio
import logging
import os

from sidecar.address import is_loopback
from sidecar.http.http_head import TOKEN, TRACEPARENT, RequestHead
from sidecar.judging.faults import told
from sidecar.transport.trust import shows
from sidecar.within.asgi import App, Message, Receive, Scope, Send
from sidecar.within.asgi_relay import AsgiRelay
from sidecar.within.attachment import PROGRAM, Attachment, read

log = logging.getLogger(__name__)

_ENDED = ("lifespan.shutdown.complete", "lifespan.shutdown.failed")


class FirstTokenMiddleware:
    """Measures every request for generation that passes through to `app`."""

    def __init__(self, app: App) -> None:
        self._app = app
        self._attachment: Attachment | None = None
        self._failed = False

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """One connection scope, as ASGI 3 calls an app."""
        kind = scope["type"]
        if kind == "lifespan":
            await self._live(scope, receive, send)
        elif kind == "http" and scope["method"] == "POST" and (relay := self._admit(scope, receive, send)):
            await relay.run(self._app)
        else:
            await self._app(scope, receive, send)

    def _admit(self, scope: Scope, receive: Receive, send: Send) -> AsgiRelay | None:
        """The relay of a request that may ask for generation; None: it only passes."""
        attachment = self._attached(scope)
        if attachment is None:
            return None
        telemetry = attachment.telemetry

        def admit() -> AsgiRelay | None:
            attachment.begin()
            head = _head(scope)
            watch = telemetry.eye.admit(head, trusted=_is_loopback(scope) or shows(head, attachment.token))
            if watch is None:
                return None
            inner = scope if watch.traceparent is None else _under(watch.traceparent, scope)
            if TOKEN in head.shape.places:
                inner = _without_token(inner)
            return AsgiRelay(watch, telemetry.eye.look, scope=inner, receive=receive, send=send)

        return telemetry.eye.look(admit)

    def _attached(self, scope: Scope) -> Attachment | None:
        """The attachment to the running loop, made on first use; None when that failed."""
        loop = asyncio.get_running_loop()
        if not self._failed and (self._attachment is None or self._attachment.loop is not loop):
            try:
                self._attachment = Attachment(self._app, scope, read(os.environ))
            except Exception as error:  # noqa: BLE001  the server outranks telemetry
                self._failed, self._attachment = True, None
                log.error("%s: cannot be attached (%s): nothing is measured", PROGRAM, told(error))
        return self._attachment

    async def _live(self, scope: Scope, receive: Receive, send: Send) -> None:
        """The app's life: attach once it has started, and send the last telemetry before it is over."""
        attachment = self._attached(scope)

        async def sent(message: Message) -> None:
            if attachment is not None:
                try:
                    if message["type"] == "lifespan.startup.complete":
                        attachment.begin()
                    elif message["type"] in _ENDED:
                        await attachment.end()
                except Exception as error:  # noqa: BLE001  the server outranks telemetry
                    log.error("%s: %s at %s", PROGRAM, told(error), message["type"])
            await send(message)

        await self._app(scope, receive, sent)


def _head(scope: Scope) -> RequestHead:
    target = scope.get("raw_path") or scope["path"].encode()
    headers = tuple(scope["headers"])
    return RequestHead(method=scope["method"].encode(), target=target, minor=1, headers=headers, keep_alive=True)


def _under(traceparent: bytes, scope: Scope) -> Scope:
    """The scope for the app: its own span shall be the child of ours."""
    others = [field for field in scope["headers"] if field[0] != TRACEPARENT]
    return {**scope, "headers": [*others, (TRACEPARENT, traceparent)]}


def _without_token(scope: Scope) -> Scope:
    """The scope for the app, which has no use for what was shown to us."""
    return {**scope, "headers": [field for field in scope["headers"] if field[0].lower() != TOKEN]}


def _is_loopback(scope: Scope) -> bool:
    """Whether the client is on this machine; one that the server does not name is not trusted."""
    client = scope.get("client")
    return client is not None and is_loopback(str(client[0]))
