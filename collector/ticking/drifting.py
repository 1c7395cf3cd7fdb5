"""The life of the drift watch beside the ticks: it learns from the database, and its rows are handed to who writes.

Whoever leads watches; of several collectors the others show what the leader has written, as they do with alerts. What
is watched anew learns the past first, beside the ticks and page by page, so that a restart forgets nothing and holds
nobody up. Should the database be away meanwhile, it is tried again with the next tick.
"""

import asyncio
import logging
from collections.abc import Iterable, Mapping
from functools import partial

from collector.errors import UnavailableError
from collector.judging.drift import Detector, Minute
from collector.judging.drift_watch import DriftWatch, Key
from collector.judging.evaluate import Evaluation
from collector.keeping.store import Store
from collector.storage import drift_past
from collector.values.verdicts import DriftRow

log = logging.getLogger(__name__)


class Drifting:
    """The watch on what a store holds."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self._watch = DriftWatch()
        self._learning: asyncio.Task[None] | None = None

    @property
    def open(self) -> tuple[DriftRow, ...]:
        """The drifts that last."""
        return self._watch.open

    @property
    def unsaved(self) -> tuple[DriftRow, ...]:
        """Rows to be kept; `saved` once they are."""
        return self._watch.unsaved

    def saved(self, rows: Iterable[DriftRow]) -> None:
        """These were kept."""
        self._watch.saved(rows)

    async def resume(self) -> None:
        """Take up what lasts where the database has it, and learn anew. Raises `UnavailableError`."""
        rows = await self._store.read(drift_past.lasting)
        await self.stop()
        self._watch = DriftWatch(rows)

    async def stop(self) -> None:
        """Learn no more."""
        if self._learning is not None:
            self._learning.cancel()
            await asyncio.gather(self._learning, return_exceptions=True)
            self._learning = None

    def observe(self, evaluation: Evaluation) -> None:
        """Judge what an evaluation says."""
        self._watch.observe(evaluation)
        if self._learning is None or self._learning.done():
            wanted = self._watch.wanted(evaluation)
            if wanted:
                self._learning = asyncio.create_task(self._learn(wanted, evaluation.at_s), name="learn")

    async def settled(self) -> None:
        """Wait until what is wanted is watched."""
        if self._learning is not None:
            await self._learning

    async def _learn(self, detectors: Mapping[Key, Detector], now_s: int) -> None:
        """Have the detectors learn the past, then watch."""
        try:
            unquiet = await self._store.read(partial(drift_past.unquiet, now_s=now_s))
            spans = {key: unquiet.of(key) for key in detectors}
            begin_s = await self._store.read(partial(drift_past.begin_s, now_s=now_s))
            for page in drift_past.pages(begin_s or now_s, now_s):
                found = await self._store.read(partial(drift_past.minutes, keys=detectors, span=page))
                for at_s, key, value_s, count in found:
                    burns = any(first_s <= at_s <= last_s for first_s, last_s in spans[key])
                    detectors[key].learn(Minute(at_s, value_s, count, burns))
        except UnavailableError as error:
            log.warning("the watch for drift could not learn yet: %s", error)
            self._watch.forgo()
        else:
            self._watch.admit(detectors)
