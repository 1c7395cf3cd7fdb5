"""What the collector's HTTP works with: the store, the ticks, and what is read of them once a tick for everybody.

However many look at once, a status is made once an evaluation and the page's past is read once: those who come while
it is read wait for the same answer. While the database is away the past stays what it was, and nobody waits for it
longer than a reader's patience.
"""

import asyncio
import logging
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import orjson
from sqlalchemy import text
from sqlalchemy.engine import Connection

from collector.answering import readiness, selfmetrics
from collector.answering.asked import StatusAsked
from collector.answering.hindsight import Hindsight
from collector.answering.selfmetrics import Family, Size, Work
from collector.answering.status import status
from collector.errors import UnavailableError
from collector.judging.evaluate import Evaluation
from collector.keeping.reader import Reader
from collector.keeping.store import Store
from collector.pages import history, view
from collector.pages.drill import Drill, drill
from collector.pages.filters import Filters
from collector.pages.view import EVERYTHING
from collector.ticking.ticks import Ticks
from collector.values.alerting import Alert
from slo.objective import Spec

SIZE_AGE_S = 60
MAX_PAGES = 32
"""Choices of objectives of which the page is kept until the next tick."""

log = logging.getLogger(__name__)


@dataclass(slots=True)
class _Made:
    """The status of one evaluation under one set of specs; `body` once somebody asked for all of it."""

    evaluation: Evaluation | None
    specs: Sequence[Spec]
    alerts: Sequence[Alert]
    status: dict[str, Any]
    body: bytes | None = None


@dataclass(slots=True)
class Desk:
    """What the routes work with. `stopping` is set when the process is to end, so that streams of events end too."""

    store: Store
    ticks: Ticks
    version: str
    reload_ok: bool = True
    stopping: asyncio.Event = field(default_factory=asyncio.Event)
    viewers: int = 0
    refused: Counter[int] = field(default_factory=Counter)
    reader: Reader = field(init=False)
    hindsight: Hindsight = field(init=False)
    _recent: history.Recent = field(init=False)
    _past: history.History | None = None
    _reading: asyncio.Task[None] | None = None
    _made: _Made | None = None
    _making: asyncio.Task[_Made] | None = None
    _scene: tuple[_Made, history.History, view.Seen] | None = None
    _drawing: asyncio.Lock = field(default_factory=asyncio.Lock)
    _pages: dict[Filters, view.Page] = field(default_factory=dict)
    _size: Size | None = None
    _sized_s: float = float("-inf")

    def __post_init__(self) -> None:
        self.reader = Reader(self.store)
        self.hindsight = Hindsight(self.store, self.reader)
        self._follow_plan()
        self.ticks.listeners.append(self._keep)

    def _follow_plan(self) -> None:
        self._recent = history.Recent(history.chart_window_s(self.store.ledger.plan.windows_s))

    def _keep(self, evaluation: Evaluation) -> None:
        if history.chart_window_s(self.store.ledger.plan.windows_s) != self._recent.window_s:
            self._follow_plan()
        self._recent.add(evaluation)

    async def status_body(self, asked: StatusAsked) -> bytes:
        """The status as of the last evaluation, as JSON: the objectives asked for, at most so many."""
        made, filters = await self._current(), asked.filters()
        everything = made.status["objectives"]
        whole = not filters and not asked.offset and len(everything) <= asked.limit
        if whole and made.body is not None:
            return made.body
        mine = [one for one in everything if all(one[name] == value for name, value in filters.items())]
        end = asked.offset + asked.limit
        paged = {"total": len(mine), "next": end if end < len(mine) else None}
        body = orjson.dumps(made.status | {"objectives": mine[asked.offset : end]} | paged)
        if whole:
            made.body = body
        return body

    async def _current(self) -> _Made:
        """The status, made once an evaluation, beside the loop: that of thousands of models takes a second."""
        evaluation, specs = self.ticks.latest, self.store.ledger.plan.specs
        made = self._made
        if made is not None and made.evaluation is evaluation and made.specs is specs:
            return made
        if self._making is None or self._making.done():
            self._making = asyncio.create_task(self._make(evaluation, specs), name="status")
        return await asyncio.shield(self._making)

    async def _make(self, evaluation: Evaluation | None, specs: Sequence[Spec]) -> _Made:
        leads, alerts = self.ticks.tallies.leads, self.ticks.alerts
        found = await asyncio.to_thread(status, specs, evaluation, alerts)
        self._made = _Made(evaluation, specs, alerts, {"evaluator": leads} | found)
        return self._made

    @property
    def _at_s(self) -> int:
        return self.ticks.latest.at_s if self.ticks.latest else 0

    async def past(self) -> history.History:
        """What the page shows of the past, read once a tick; of before, while the database cannot be read."""
        if self._past is None or self._past.until_s != self._at_s:
            if self._reading is None or self._reading.done():
                self._reading = asyncio.create_task(self._read_past(self._at_s), name="past")
            # Whoever goes away must not take the answer with them that others wait for.
            await asyncio.shield(self._reading)
        return self._past or history.empty(self._at_s, window_s=self._recent.window_s)

    async def _read_past(self, until_s: int) -> None:
        wanted = history.promised(self.store.ledger.plan.specs)

        def work(connection: Connection) -> history.History:
            return history.history(connection, until_s=until_s, recent=self._recent, wanted=wanted)

        try:
            self._past = await self.reader.read(work)
        except UnavailableError as error:
            log.warning("the page shows no history: %s", error)

    async def page(self, filters: Filters = EVERYTHING) -> view.Page:
        """The page as values, made once for everybody who asks for the same objectives."""
        async with self._drawing:
            return await self._drawn(await self._seen(), filters)

    async def _drawn(self, seen: view.Seen, filters: Filters) -> view.Page:
        """The page of these filters; `_drawing` is held."""
        page = self._pages.get(filters)
        if page is None:
            while len(self._pages) >= MAX_PAGES:
                self._pages.pop(next(iter(self._pages)))
            # Beside the loop: a thousand rows take a while.
            page = await asyncio.to_thread(view.page, replace(seen, filters=filters))
            self._pages[filters] = page
        return page

    async def drill(self, service: str, objective: str, query: Mapping[str, str]) -> tuple[view.Page, Drill] | None:
        """The page about one objective, and the page that it belongs to; None when there is no such objective. Of
        several environments it is the one that the query names, else the first."""
        # One scene for all of it: specs may change while the past is read.
        async with self._drawing:
            seen = await self._seen()
            page = await self._drawn(seen, EVERYTHING)
        mine = [one for one in page.cards if (one.service, one.name) == (service, objective)]
        where = query.get("environment")
        card = next((one for one in mine if where is None or one.environment == where), None)
        if card is None:
            return None
        asked = await self.hindsight.of(card, query, now_s=self.ticks.clock())
        return page, await asyncio.to_thread(drill, seen, page, card, asked)

    async def _seen(self) -> view.Seen:
        """What pages are made from now; `_drawing` is held, or a page of before would be kept as one of now."""
        past, made = await self.past(), await self._current()
        if self._scene is None or self._scene[0] is not made or self._scene[1] is not past:
            tick_s, deliveries = self.store.ledger.plan.tick_s, self.ticks.notifier.deliveries
            self._scene = made, past, view.Seen(made.specs, made.status, past, made.alerts, tick_s, deliveries)
            self._pages.clear()
        return self._scene[2]

    def trouble(self) -> str | None:
        """Why the collector is not ready, in words; None when it is."""
        return readiness.trouble(
            readiness.Health(
                now_s=self.ticks.clock(),
                tick_s=self.store.ledger.plan.tick_s,
                evaluated_s=self.ticks.latest.at_s if self.ticks.latest else None,
                failing=self.store.failing,
                is_recalling=self.store.is_recalling,
            )
        )

    async def own(self) -> list[Family]:
        """The metrics of the collector's own work."""
        now_s = self.ticks.clock()
        if now_s - self._sized_s >= SIZE_AGE_S:
            self._sized_s = now_s
            try:
                self._size = await self.reader.read(_size)
            except UnavailableError:
                self._size = None
        work = Work(
            now_s=now_s,
            store=self.store.tallies,
            ticks=self.ticks.tallies,
            waiting=self.store.waiting,
            evaluated_s=self.ticks.latest.at_s if self.ticks.latest else None,
            size=self._size,
            deliveries=self.ticks.notifier.deliveries,
            refused=self.refused,
        )
        return list(selfmetrics.families(work))


def _size(connection: Connection) -> Size:
    """What the database takes."""
    if connection.dialect.name == "postgresql":
        return Size(connection.scalar(text("SELECT pg_database_size(current_database())")) or 0)
    pages, page_bytes = (connection.scalar(text(f"PRAGMA {name}")) or 0 for name in ("page_count", "page_size"))
    names = connection.execute(text("PRAGMA database_list"))
    log_file = next(Path(f"{one.file}-wal") for one in names if one.name == "main")
    return Size(pages * page_bytes, log_file.stat().st_size if log_file.exists() else 0)
