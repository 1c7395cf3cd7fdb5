"""The sidecar in one process: what stands where, how it begins and how it ends.

    clients ─▶ Door ─▶ Relay ─▶ Pool ─▶ the server
                         └─▶ Eye ─▶ Telemetry ─▶ admin page, OTLP

Everything but the emitter's lanes and the GPUs' threads runs on one event loop.
"""

import asyncio
from dataclasses import replace
from functools import partial

from sidecar.configuration.options import Options
from sidecar.judging.eye import Eye
from sidecar.polling.poller import OnPage, Poller, Watching, get
from sidecar.serving.lifecycle import Ending, every, on_hangup, raise_file_limit, settle
from sidecar.serving.proxy_server import ProxyServer
from sidecar.serving.spec_watch import watch
from sidecar.serving.telemetry import of_requests
from sidecar.settings import UsageError
from sidecar.telling import pages
from sidecar.telling.admin import AdminDoor
from sidecar.transport.certificates import Identity, ServerTls
from sidecar.transport.listener import Listener, ListenError, announce, listen
from sidecar.usage.usage_policy import UsagePolicy


def poller_before(options: Options, eye: Watching, on_page: OnPage, *, tls: ServerTls) -> Poller:
    """The poller of the server that is stood before."""
    upstream, scrape = options.upstream, options.scrape
    assert upstream is not None, "without an upstream there is nothing to stand before"
    return Poller(
        upstream,
        eye,
        url=scrape.url,
        engine=scrape.engine,
        interval_s=scrape.interval_s,
        fetch=partial(get, tls=tls),
        on_page=on_page,
    )


class Sidecar:
    """All of it, wired."""

    def __init__(self, options: Options, loop: asyncio.AbstractEventLoop) -> None:
        self._options = options
        self._server_tls = ServerTls(options.trust)
        self._identity = Identity(options.presented)
        self._telemetry = of_requests(options.plan(), loop, self._poller)
        self._telemetry.eye.usage = UsagePolicy(options.inject_usage, options.scrape.engine)
        self._proxy = ProxyServer(options, self._telemetry.eye, self._server_tls)
        sources = replace(self._telemetry.sources(), ready=self._proxy.ready)
        self._admin = AdminDoor(pages.pages(sources), token=options.admin_token)

    def _poller(self, eye: Eye, on_page: OnPage) -> Poller:
        poller = poller_before(self._options, eye, on_page, tls=self._server_tls)
        poller.on_reached = self._reached
        return poller

    def _reached(self) -> None:
        self._proxy.door.pool.reached = True

    async def run(self) -> None:
        """Serve until a signal, then drain and send the last telemetry. ListenError: nothing has begun."""
        raise_file_limit()
        proxy = await self._proxy.open()
        try:
            admin = await self._show_pages()
        except (ListenError, UsageError):
            proxy.close()
            raise
        ending = Ending(hurry=self._proxy.door.hurry)
        again = on_hangup(self.reload)
        chores = [every(1.0, self._proxy.door.sweep, look=self._telemetry.eye.look)]
        if self._options.watched is not None:
            chores.append(watch(self._options.watched, again))
        self._telemetry.begin(*chores)
        settle()
        announce("proxy", proxy)
        announce("admin", admin)
        await ending.wait()
        await self._proxy.drain()
        await self._telemetry.end()
        admin.close()
        self._admin.close()

    async def _show_pages(self) -> Listener:
        address = self._options.admin
        return await listen(self._admin, address, flag="--admin", tls=self._identity.for_admin(address))

    async def reload(self) -> bool:
        """Read slo.yaml and the certificates again; whether all of them are in use now."""
        certificates_ok = all([await self._proxy.reload(), await self._identity.reload()])
        return await self._telemetry.reload(others_ok=certificates_ok) and certificates_ok
