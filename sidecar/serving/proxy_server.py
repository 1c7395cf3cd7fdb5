"""The side that clients come to: the door, the pool behind it, whether they are ready, and their end."""

import logging
import socket
import time
from collections.abc import Iterable

from sidecar.configuration.options import Options
from sidecar.judging.eye import Eye
from sidecar.relaying.proxy import Door
from sidecar.telling.admin import Answer
from sidecar.telling.pages import READY
from sidecar.transport.certificates import Identity, ServerTls
from sidecar.transport.listener import Listener, listen, listen_on
from sidecar.transport.upstream import Pool

log = logging.getLogger(__name__)


class ProxyServer:
    """One process's door. `options` name a server to stand before; `tls` is for connections to it."""

    def __init__(self, options: Options, eye: Eye, tls: ServerTls | None = None) -> None:
        assert options.upstream is not None, "without an upstream there is nothing to stand before"
        self._options = options
        self._server: Listener | None = None
        self._identity, self._tls = Identity(options.presented), tls or ServerTls(options.trust)
        pool = Pool(options.upstream, connect_s=options.connect_s, tls=self._tls)
        self.door = Door(pool, eye, options.manners)

    async def open(self) -> Listener:
        """Take clients from now on. ListenError: the address cannot be had."""
        self._server = await listen(self.door, self._options.listen, flag="--listen", tls=self._identity.for_clients())
        return self._server

    async def open_on(self, sockets: Iterable[socket.socket]) -> None:
        """Take the clients of sockets that are bound already."""
        self._server = await listen_on(self.door, sockets, tls=self._identity.for_clients())

    def ready(self) -> Answer:
        """Ready once the server behind was reached, until the draining begins."""
        if self.door.draining:
            return Answer(503, b"draining\n")
        if not self.door.pool.reached:
            return Answer(503, b"the server behind has not been reached yet\n")
        return READY

    async def reload(self) -> bool:
        """Read the certificates again for connections to come; whether they are in use now."""
        return all([await self._identity.reload(), await self._tls.reload()])

    async def drain(self) -> None:
        """Take no more clients and let the requests in flight end, as long as they may."""
        self.close()
        began_s = time.monotonic()
        if broken_off := await self.door.drain(self._options.drain_s):
            took_s = time.monotonic() - began_s
            log.warning("%d requests were still in flight after %.1f s and were broken off", broken_off, took_s)

    def close(self) -> None:
        """Take no more clients."""
        if self._server is not None:
            self._server.close()
