"""The sidecar that stands before nothing: it reads an engine's metrics page, and that is all it knows.

    the engine's metrics page ─▶ Poller ─▶ EngineEye ─▶ Tally, EngineLatencies ─▶ admin page, OTLP (source `engine`)

No request passes through it, so it costs the engine a page a second and nothing else. What it cannot know it says in
the log once the first page was read: see `backing`.
"""

import asyncio
from dataclasses import replace
from functools import partial

from sidecar.configuration.options import Options
from sidecar.counting.tally import Tally
from sidecar.judging.labels import ModelLabels
from sidecar.polling.engine_eye import EngineEye
from sidecar.polling.poller import OnPage, Poller, get, page_of
from sidecar.serving.lifecycle import Ending, on_hangup
from sidecar.serving.spec_watch import watch
from sidecar.serving.telemetry import Telemetry, emitter_of
from sidecar.telling import pages
from sidecar.telling.admin import AdminDoor, Answer
from sidecar.transport.certificates import Identity, ServerTls
from sidecar.transport.listener import announce, listen


class ScrapeOnly:
    """All of it, wired. `options` names a page to scrape."""

    def __init__(self, options: Options, loop: asyncio.AbstractEventLoop) -> None:
        self._options = options
        self._tls, self._identity = ServerTls(options.trust), Identity(options.presented)
        # Its chores ask in an order of their own: see `_poll`.
        plan = replace(options.plan(), models=False, scrape=False)
        eye = EngineEye(tally=Tally(lambda _: ()), labels=ModelLabels(options.max_models))
        self._telemetry = Telemetry(plan, loop, eye, emitter=emitter_of(plan), make_poller=self._poller, view=eye.view)
        sources = replace(self._telemetry.sources(), ready=self._ready)
        self._admin = AdminDoor(pages.pages(sources), token=options.admin_token)

    def _poller(self, eye: EngineEye, _: OnPage) -> Poller:
        scrape = self._options.scrape
        assert scrape.url is not None, "there is a page to scrape"
        target, _path = page_of(scrape.url, scrape.engine)
        return Poller(
            target,
            eye,
            url=scrape.url,
            engine=scrape.engine,
            interval_s=scrape.interval_s,
            fetch=partial(get, tls=self._tls),
            on_page=eye.page,
        )

    def _ready(self) -> Answer:
        """Ready once a page of the engine was read."""
        if self._telemetry.eye.has_seen:
            return pages.READY
        return Answer(503, b"no metrics page of a known engine has been read yet\n")

    async def run(self) -> None:
        """Watch until a signal, then send the last telemetry. ListenError: nothing has begun."""
        address = self._options.admin
        admin = await listen(self._admin, address, flag="--admin", tls=self._identity.for_admin(address))
        ending = Ending()
        again, chores = on_hangup(self.reload), [self._poll()]
        if self._options.watched is not None:
            chores.append(watch(self._options.watched, again))
        self._telemetry.begin(*chores)
        announce("admin", admin)
        await ending.wait()
        await self._telemetry.end()
        admin.close()
        self._admin.close()

    async def reload(self) -> bool:
        """Read slo.yaml and the certificates again; whether all of them are in use now."""
        certificates_ok = all([await self._tls.reload(), await self._identity.reload()])
        return await self._telemetry.reload(others_ok=certificates_ok) and certificates_ok

    async def _poll(self) -> None:
        """Learn the served models first: an engine's page may name none."""
        poller = self._telemetry.poller
        await poller.models_once()
        await asyncio.gather(poller.poll_models(), poller.poll_metrics())
