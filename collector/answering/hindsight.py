"""What is read of the past for one objective alone, when somebody looks: its own alerts, its worst requests, and what
another promise would have cost.

A replay reads all that is stored of an objective, and a page that is open asks at every tick. So an answer is kept for
a while, and given to whoever asks the same again; those who ask the same at once wait for one replay. A single one runs
at a time, and only so many wait behind it: whoever comes beyond is told to come again.
"""

import asyncio
from collections.abc import Mapping
from dataclasses import dataclass, field, replace

from collector.answering.asked import WhatIfAsked
from collector.errors import CollectorError, RefusedError, UnavailableError
from collector.keeping.reader import Reader
from collector.keeping.store import Store
from collector.pages import drill, history
from collector.pages.drill import Asked
from collector.pages.view import Card
from collector.replaying import replay_past, whatif
from collector.replaying.whatif import WhatIf
from collector.values.measurement import Request
from slo.objective import Objective, Spec

KEPT_S = 60
MAX_KEPT = 64
"""Answers that are given again to whoever asks the same."""

MAX_TEXT = 40
"""Characters of a percentile or threshold in a URL."""

MAX_ASKED = 8
"""Questions that are replayed or wait for it at once."""

_Key = tuple[str | None, ...]


@dataclass(slots=True)
class Hindsight:
    """The way to the past of one objective. Answers are as of `store`'s database, at most `KEPT_S` old."""

    store: Store
    reader: Reader
    _kept: dict[_Key, tuple[float, WhatIf]] = field(default_factory=dict)
    _running: dict[_Key, asyncio.Task[WhatIf]] = field(default_factory=dict)
    _turn: asyncio.Semaphore = field(default_factory=lambda: asyncio.Semaphore(1))

    async def whatif(self, asked: WhatIfAsked, *, now_s: float) -> WhatIf:
        """What another promise would have cost. Raises `RefusedError` for what cannot be asked, and
        `UnavailableError`."""
        spec, objective = self._named(asked)
        key = (spec.hash, asked.environment, spec.service, objective.name, asked.percentile, asked.threshold)
        known = self._kept.get(key)
        if known is not None and now_s - known[0] < KEPT_S:
            return known[1]
        figures = {"percentile": asked.percentile, "threshold": asked.threshold}
        question = whatif.question(spec, objective, environment=asked.environment or "", **figures)
        if key not in self._running:
            if len(self._running) >= MAX_ASKED:
                raise UnavailableError("more is replayed at once than can be answered: ask again later")
            task = asyncio.create_task(self._replayed(key, question, asked, now_s), name="what-if")
            self._running[key] = task
            task.add_done_callback(lambda _: self._running.pop(key))
        # Whoever goes away must not take the answer with them that others wait for.
        return await asyncio.shield(self._running[key])

    async def _replayed(self, key: _Key, question: Spec, asked: WhatIfAsked, now_s: float) -> WhatIf:
        async with self._turn:
            past = await self.reader.read(lambda connection: replay_past.read(connection, [question]))
            # Beside the loop: weeks of steps are replayed three times.
            found = await asyncio.to_thread(whatif.answered, question, past, environment=asked.environment)
        self._kept.pop(key, None)
        while len(self._kept) >= MAX_KEPT:
            self._kept.pop(next(iter(self._kept)))
        self._kept[key] = now_s, found
        return found

    async def of(self, card: Card, query: Mapping[str, str], *, now_s: float) -> Asked:
        """What the page about an objective asks for; a what-if only when its URL has one. What goes wrong is told
        there."""
        percentile, threshold = (query.get(name, "")[:MAX_TEXT] for name in ("percentile", "threshold"))
        whose = {"environment": card.environment, "service": card.service, "objective": card.name}
        asked = WhatIfAsked(**whose, percentile=percentile, threshold=threshold)
        found = Asked(percentile=percentile, threshold=threshold, worst_since_s=self.store.worst.since_s)
        try:
            found = replace(found, worst=self._worst(card, asked), ended=await self._ended(card))
            if percentile or threshold:
                found = replace(found, whatif=await self.whatif(asked, now_s=now_s))
        except CollectorError as error:
            return replace(found, trouble=str(error))
        return found

    def _worst(self, card: Card, asked: WhatIfAsked) -> list[Request]:
        _, objective = self._named(asked)
        kept = self.store.worst
        return [one for rank in drill.ranks(objective) for one in kept.of(card.environment, card.service, rank)]

    async def _ended(self, card: Card) -> list[history.Ended]:
        of = {"environment": card.environment, "service": card.service, "objective": card.name}
        return await self.reader.read(lambda connection: history.ended_of(connection, **of))

    def _named(self, asked: WhatIfAsked) -> tuple[Spec, Objective]:
        for spec in self.store.ledger.plan.specs:
            for objective in spec.objectives:
                if (spec.service, objective.name) == (asked.service, asked.objective):
                    return spec, objective
        raise RefusedError(400, f"objective: {asked.service} has none named {asked.objective}: see /api/v1/status")
