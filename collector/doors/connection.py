"""One connection of the collector's HTTP: uvicorn's, that lets go of whoever connects and does not ask.

uvicorn has a limit for the time between two requests of a connection, and none for the first one or for a head that
comes a byte at a time, nor for how many may be open. A few thousand such connections would keep everybody else out for
as long as they like.
"""

import asyncio

from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol

HEAD_S = 20.0
MAX_OPEN = 4096


class Connection(HttpToolsProtocol):
    """Closed when the head of a request is not whole within `HEAD_S` of its beginning, or of the connection's."""

    _patience: asyncio.TimerHandle | None = None

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]  # as uvicorn has it
        super().connection_made(transport)
        if len(self.connections) > MAX_OPEN:
            transport.abort()
            return
        self._be_patient()

    def connection_lost(self, exc: Exception | None) -> None:
        self._head_came()
        super().connection_lost(exc)

    def shutdown(self) -> None:
        """As uvicorn's; but a connection at rest over TLS ends at once, though its peer does not answer the goodbye."""
        super().shutdown()
        is_tls = self.transport.get_extra_info("ssl_object") is not None
        if is_tls and self.transport.is_closing() and self.transport.get_write_buffer_size() == 0:
            self.transport.abort()

    def on_message_begin(self) -> None:
        super().on_message_begin()
        self._be_patient()

    def on_headers_complete(self) -> None:
        self._head_came()
        super().on_headers_complete()

    def _be_patient(self) -> None:
        if self._patience is None:
            self._patience = self.loop.call_later(HEAD_S, self.transport.close)

    def _head_came(self) -> None:
        if self._patience is not None:
            self._patience.cancel()
            self._patience = None
