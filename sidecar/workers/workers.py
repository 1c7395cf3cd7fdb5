"""The sidecar in several processes behind one address: a parent, and workers that it keeps alive.

    clients ─▶ one address ─▶ worker 1 ─▶ the server          each worker ─▶ OTLP (spans)
                          └─▶ worker 2 ─▶ the server
                                   └─▶ Report ─▶ parent: WorkersEye ─▶ Telemetry ─▶ admin page, OTLP (metrics)
                                                 parent: Poller, GPUs, slo.yaml ─▶ State, Reload ─▶ workers

To the world it is one sidecar: one admin page, one `service.instance.id`, one heartbeat a second. The parent therefore
sends the metrics, of all workers in one sum. Were each worker an instance that sends its own, the two ways of alerting
would see different services: three requests overdue in three workers are a stalled engine to who reads the page, and
no stall of any instance; a worker killed would be an instance that fell silent, and would take with it what it had
counted in a whole export interval, not in a second; and the seconds of an objective over the engine's state, a fact of
the engine, would be counted once a worker. Spans have no sums, and go out from where they were made.

Before the page is shown, each worker is asked for what it has counted since its last report: it shows what was when it
was asked for, as that of one process does.
"""

import asyncio
import logging
from collections.abc import Callable, Coroutine, Iterator
from dataclasses import replace
from functools import partial

from sidecar import limits
from sidecar.configuration.options import Options
from sidecar.polling.poller import OnPage, Poller
from sidecar.serving.lifecycle import Ending, chore, every, on_hangup
from sidecar.serving.service import poller_before
from sidecar.serving.spec_watch import watch
from sidecar.serving.telemetry import Telemetry, emitter_of, eye_of
from sidecar.settings import UsageError
from sidecar.telling import pages
from sidecar.telling.admin import AdminDoor, Answer, Later
from sidecar.transport.certificates import Identity, ServerTls
from sidecar.transport.listener import Listener, ListenError, announce, listen
from sidecar.workers.shared_address import SharedAddress, share
from sidecar.workers.worker_pipe import TOLD_EVERY_S, Reload, Start
from sidecar.workers.worker_slot import WorkerSlot
from sidecar.workers.workers_eye import WorkersEye

log = logging.getLogger(__name__)


class WorkersError(Exception):
    """Workers that do not start; the message is for the user."""


class Workers:
    """All of it, wired."""

    def __init__(self, options: Options, loop: asyncio.AbstractEventLoop) -> None:
        self._options, self._loop = options, loop
        self._server_tls, self._identity = ServerTls(options.trust), Identity(options.presented)
        self._plan = options.plan()
        own = replace(self._plan, export=replace(self._plan.export, traces=None))
        emitter = emitter_of(own)
        eye = WorkersEye(eye_of(own, loop, emitter), emitter.count)
        self._telemetry = Telemetry(own, loop, eye, emitter=emitter, make_poller=self._poller)
        shown = pages.pages(replace(self._telemetry.sources(), ready=self._ready))
        self._page = shown[b"/metrics"]
        later = Later(self._page_of_now, partial(self._page_of_now, openmetrics=True))
        self._admin = AdminDoor({**shown, b"/metrics": lambda: later}, token=options.admin_token)
        self._slots: list[WorkerSlot] = []
        self._reached = self._announced = self._draining = False
        self._failed: str | None = None

    def _poller(self, eye: WorkersEye, on_page: OnPage) -> Poller:
        poller = poller_before(self._options, eye, on_page, tls=self._server_tls)
        poller.on_reached = self._was_reached
        return poller

    def _was_reached(self) -> None:
        self._reached = True

    # Life.

    async def run(self) -> None:
        """Serve until a signal, then have all workers drain, and send the last telemetry. ListenError: nothing has
        begun. WorkersError: the workers did not start, and all is over."""
        address, admin = await self._open()
        ending = Ending(hurry=self._end_workers)
        self._telemetry.begin(*self._chores(on_hangup(self._reload)))
        changed = partial(self._changed, ending, address, admin)
        numbers = range(1, self._options.workers + 1)
        self._slots = [self._slot(number, address, changed) for number in numbers]
        keeping = [chore(slot.keep(), look=self._telemetry.eye.look) for slot in self._slots]
        await ending.wait()
        self._draining = True
        self._end_workers()
        address.close()
        await self._ended(keeping)
        await self._telemetry.end()
        admin.close()
        self._admin.close()
        if self._failed is not None:
            raise WorkersError(self._failed)

    async def _open(self) -> tuple[SharedAddress, Listener]:
        tls = self._identity.for_clients()  # read for the workers, which each read it again: a bad one is told here
        address = await share(self._options.listen, flag="--listen", tls=tls is not None)
        where = self._options.admin
        try:
            return address, await listen(self._admin, where, flag="--admin", tls=self._identity.for_admin(where))
        except (ListenError, UsageError):
            address.close()
            raise

    def _chores(self, reload: Callable[[], None]) -> Iterator[Coroutine[None, None, None]]:
        yield every(TOLD_EVERY_S, self._second, look=self._telemetry.eye.look)
        if self._options.watched is not None:
            yield watch(self._options.watched, reload)

    def _slot(self, number: int, address: SharedAddress, changed: Callable[[], None]) -> WorkerSlot:
        def start() -> Start:
            return Start(number, self._options, self._plan, self._telemetry.spec)

        return WorkerSlot(number, self._telemetry.eye, start, sockets=address.sockets, changed=changed)

    def _changed(self, ending: Ending, address: SharedAddress, admin: Listener) -> None:
        """A worker takes requests, or has ended."""
        if not self._announced and all(slot.ready for slot in self._slots):
            self._announced = True
            announce("proxy", address)
            announce("admin", admin)
        self._failed = self._failed or self._hopeless()
        if self._failed and not self._draining:
            ending.ask()

    def _hopeless(self) -> str | None:
        """Why there is no use in going on; None while there is. A worker that does not start where others do, or did
        before, is tried again for ever."""
        worst = max(self._slots, key=lambda slot: slot.misfires)
        if worst.misfires < limits.WORKER_TRIES or (self._announced and any(slot.ready for slot in self._slots)):
            return None
        return f"worker {worst.number} ended {worst.misfires} times before it took requests: see what it said above"

    def _end_workers(self) -> None:
        for slot in self._slots:
            slot.end()

    async def _ended(self, keeping: list[asyncio.Task[None]]) -> None:
        """Until every worker is gone; the last of their reports has been heard then."""
        within_s = self._options.drain_s + limits.FLUSH_S + limits.WORKER_END_S
        _, late = await asyncio.wait(keeping, timeout=within_s)
        if late:
            log.error("%d workers have not ended in %g s and are killed", len(late), within_s)
        for slot in self._slots:
            slot.kill()
        await asyncio.wait(keeping)

    # What workers are told.

    def _second(self) -> None:
        state = self._telemetry.eye.state()
        for slot in self._slots:
            slot.second(state)

    async def _reload(self) -> None:
        """Read slo.yaml and the certificates again, here and in every worker."""
        certificates_ok = all([await self._identity.reload(), await self._server_tls.reload()])
        await self._telemetry.reload(others_ok=certificates_ok)
        for slot in self._slots:
            slot.tell(Reload(self._telemetry.spec))

    # Pages.

    def _ready(self) -> Answer:
        """Ready while any worker takes requests and the server behind was reached, until the draining begins."""
        if self._draining:
            return Answer(503, b"draining\n")
        if not self._announced or not any(slot.ready for slot in self._slots):
            return Answer(503, b"no worker takes requests\n")
        if not (self._reached or self._telemetry.eye.reached):
            return Answer(503, b"the server behind has not been reached yet\n")
        return pages.READY

    def _page_of_now(self, *, openmetrics: bool = False) -> Answer:
        """The page of all counts until now; called on a thread of its own, as what is `Later`."""
        page = asyncio.run_coroutine_threadsafe(self._page_after_reports(), self._loop).result()
        if not isinstance(page, Later):
            return page
        return page.openmetrics() if openmetrics and page.openmetrics is not None else page.make()

    async def _page_after_reports(self) -> Answer | Later:
        await asyncio.gather(*(slot.report() for slot in self._slots))
        return self._page()
