"""The story: a healthy while, an incident, the page, recovery, its end. It only watches and switches faults.

What it takes is a stage that is already set (URLs of running processes, a pager) and a plan; what it gives is an
`Ending`. Whether the page rang is the pager's word, never a guess from the figures on the screen.
"""

import asyncio
import sqlite3
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from firsttoken import demo_compare, prometheus
from firsttoken.demo_plan import MODEL, NO_FAULT, Incident, Plan
from firsttoken.demo_stage import Stage
from firsttoken.demo_view import Frame, Phase
from firsttoken.errors import UnreachableError
from firsttoken.http_json import ask_json, ask_text
from firsttoken.pager import Notification, Pager
from firsttoken.status import ask
from firsttoken.status_reply import Status
from slo.signals import KV_OCCUPANCY, MODEL_LABEL

FRAME_S = 1.0
PAGE = "page"


@dataclass(frozen=True, slots=True)
class Ending:
    """What came of it, in words; `healthy` is SQL's p95 as the healthy part ended (epoch seconds)."""

    is_fine: bool
    lines: tuple[str, ...]
    healthy: demo_compare.Measured | None = None
    healthy_until_s: float = 0.0


class Story:
    """One telling. `now_s` gives epoch seconds; `show` is called with each frame."""

    def __init__(self, plan: Plan, stage: Stage, pager: Pager, *, now_s: Callable[[], float]) -> None:
        self._plan = plan
        self._stage = stage
        self._pager = pager
        self._now_s = now_s
        self._start_s = now_s()
        self._phase = Phase("healthy", "", 0.0, plan.healthy_s)

    @property
    def _at_s(self) -> float:
        return self._now_s() - self._start_s

    async def tell(self) -> Ending:
        """The whole story; ends when the page has ended, or when what should have come did not come in time."""
        self.enter("healthy", "no fault; users send requests through the sidecar", self._plan.healthy_s)
        await asyncio.sleep(self._plan.healthy_s)
        until_s, healthy = self._now_s(), await asyncio.to_thread(measured, self._stage.folder)
        if early := self._pager.first(PAGE, "firing"):
            said = f"{early.text} at {early.at_s - self._start_s:.0f} s"
            return Ending(False, (f"PAGED WHILE NOTHING WAS WRONG: {said}",), healthy, until_s)
        if self._plan.incident is None:
            return Ending(True, ("no page, as it should be: nothing was wrong",), healthy, until_s)
        lines: list[str] = []
        is_fine = await self._page(self._plan.incident, lines) and await self._recovery(lines)
        return Ending(is_fine, tuple(lines), healthy, until_s)

    async def _page(self, incident: Incident, lines: list[str]) -> bool:
        """From the fault to the page, and a little longer; whether it rang."""
        plan = self._plan
        self.enter("incident", f"{incident.kind}: {incident.about}", plan.page_s + plan.hold_s)
        began_s = self._at_s
        lines.append(f"incident {incident.kind} began at {began_s:.0f} s")
        await self._fault(incident.fault)
        rang = await self._wait("firing", plan.page_limit_s)
        if rang is None:
            lines.append(f"NO PAGE within {plan.page_limit_s:.0f} s of the incident")
            return False
        at_s = rang.at_s - self._start_s
        lines.append(f"page fired at {at_s:.0f} s, {at_s - began_s:.0f} s into the incident: {', '.join(rang.names)}")
        await asyncio.sleep(plan.hold_s)
        return True

    async def _recovery(self, lines: list[str]) -> bool:
        """From the fault's end to the page's; whether it resolved."""
        limit_s = self._plan.resolve_limit_s
        self.enter("recovery", "the fault is gone; good requests must drive the bad ones out", self._plan.resolve_s)
        began_s = self._at_s
        await self._fault(NO_FAULT)
        lines.append(f"incident ended at {began_s:.0f} s")
        over = await self._wait("resolved", limit_s)
        if over is None:
            lines.append(f"THE PAGE DID NOT RESOLVE within {limit_s:.0f} s of the incident's end")
            return False
        at_s = over.at_s - self._start_s
        lines.append(f"page resolved at {at_s:.0f} s, {at_s - began_s:.0f} s after the incident ended")
        return True

    def enter(self, name: str, about: str, length_s: float) -> None:
        """Begin a part of the story, for those who watch."""
        self._phase = Phase(name, about, self._at_s, length_s)

    async def _fault(self, fault: object) -> None:
        await asyncio.to_thread(ask_json, f"{self._stage.server_url}/admin/faults", body=fault)

    async def _wait(self, status: str, limit_s: float) -> Notification | None:
        try:
            async with asyncio.timeout(limit_s):
                return await self._pager.wait(PAGE, status)
        except TimeoutError:
            return None

    async def watch(self, show: Callable[[Frame], None]) -> None:
        """Show a frame a second, for ever."""
        while True:
            show(await asyncio.to_thread(self.frame))
            await asyncio.sleep(FRAME_S)

    def frame(self) -> Frame:
        """Everything there is to see now; what does not answer is absent."""
        told = self._pager.notifications
        return Frame(
            at_s=self._at_s,
            phase=self._phase,
            status=_status(self._stage.collector_url),
            kv_used=_kv_used(self._stage.admin_url),
            prometheus=_prometheus_verdict(self._stage.prometheus_url),
            notifications=tuple((notification.at_s - self._start_s, notification) for notification in told),
        )


def measured(folder: Path) -> demo_compare.Measured | None:
    """The newest p95 row of the demo's database; None while it can't be read."""
    try:
        return demo_compare.latest(folder / "firsttoken.db")
    except sqlite3.Error:
        return None


def _status(url: str) -> Status:
    try:
        return ask(url)
    except UnreachableError:
        return Status(None, ())


def _prometheus_verdict(url: str | None) -> tuple[str, ...] | None:
    if url is None:
        return None
    try:
        return prometheus.firing(ask_json(f"{url}/api/v1/alerts"))
    except UnreachableError:
        return ()


def _kv_used(admin_url: str) -> float | None:
    try:
        return gauge(ask_text(f"{admin_url}/metrics"), KV_OCCUPANCY.prometheus, model=MODEL)
    except UnreachableError:
        return None


def gauge(page: str, name: str, *, model: str) -> float | None:
    """The value of a model's gauge on a Prometheus text page; None when it is not there."""
    for line in page.splitlines():
        if line.startswith((f"{name}{{", f"{name} ")) and (f'{MODEL_LABEL}="{model}"' in line or "{" not in line):
            try:
                return float(line.rpartition(" ")[2])
            except ValueError:
                return None
    return None
