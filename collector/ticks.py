"""The tick: evaluate, keep the figures, tell the receivers. One fault costs one tick, never the loop.

A tick happens at each whole multiple of its length. What could not be kept (the database away) is kept with the next
tick that can: figures of a missed tick are lost, transitions of alerts are not.
"""

import asyncio
import logging
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

from sqlalchemy.engine import Connection

from collector import commit, recall
from collector.evaluate import Alert, AlertKey, Evaluation, evaluate
from collector.notice import notice
from collector.notify import Notifier
from collector.store import Store

KEPT_ENDED_S = 86400
MAX_UNSAVED = 1_000
SETTLE_S = 5.0
STEP_BACK_S = 60
"""A clock set back by more than this is believed, and everything is read anew; by less, it catches up."""

log = logging.getLogger(__name__)


@dataclass(slots=True)
class TickTallies:
    """What the loop has done since its start."""

    ticks: int = 0
    failures: int = 0
    unsaved: int = 0
    seconds: float = 0.0
    last_s: float = 0.0
    last_error: str | None = None


@dataclass(slots=True)
class Ticks:
    """The evaluation loop over a store. `latest` is the last evaluation, given to each of the `listeners` too; `ticked`
    wakes whoever waits for the next."""

    store: Store
    notifier: Notifier
    external_url: str
    clock: Callable[[], float] = time.time
    latest: Evaluation | None = None
    tallies: TickTallies = field(default_factory=TickTallies)
    ticked: asyncio.Condition = field(default_factory=asyncio.Condition)
    listeners: list[Callable[[Evaluation], None]] = field(default_factory=list)
    _active: dict[AlertKey, Alert] = field(default_factory=dict)
    _ended: dict[AlertKey, Alert] = field(default_factory=dict)
    _unsaved: list[Alert] = field(default_factory=list)
    _keeping: asyncio.Task[None] | None = None

    @property
    def alerts(self) -> Sequence[Alert]:
        """Those pending or firing now."""
        return tuple(self._active.values())

    @property
    def ended(self) -> Sequence[Alert]:
        """Those that fired and ended within a day, the latest first."""
        return sorted(self._ended.values(), key=lambda alert: alert.since_s, reverse=True)

    async def resume(self) -> None:
        """Take up the alerts where the last process left them."""
        known = await self.store.read(recall.alerts)
        self._active = {key: alert for key, alert in known.items() if alert.state != "resolved"}
        since_s = int(self.clock()) - KEPT_ENDED_S
        ended = await self.store.read(lambda connection: recall.ended(connection, since_s=since_s))
        self._ended = {key: alert for key, alert in ended.items() if not self._fires(key)}

    async def run(self) -> None:
        """Tick until cancelled."""
        while True:
            await self.tick()
            tick_s = self.store.ledger.plan.tick_s
            await asyncio.sleep(tick_s - self.clock() % tick_s)

    async def next_tick(self, timeout_s: float) -> bool:
        """Wait for the end of the next tick; whether it came in time."""
        try:
            async with asyncio.timeout(timeout_s), self.ticked:
                await self.ticked.wait()
        except TimeoutError:
            return False
        return True

    async def wake(self) -> None:
        """Let everybody go who waits for a tick."""
        async with self.ticked:
            self.ticked.notify_all()

    async def tick(self) -> None:
        """One tick, now."""
        started = time.perf_counter()
        try:
            await self._tick()
            self.tallies.last_error = None
        except Exception as error:
            self.tallies.failures += 1
            self.tallies.last_error = str(error) or type(error).__name__
            log.exception("a tick failed")
        self.tallies.ticks += 1
        self.tallies.last_s = time.perf_counter() - started
        self.tallies.seconds += self.tallies.last_s
        await self.wake()

    async def _tick(self) -> None:
        tick_s = self.store.ledger.plan.tick_s
        at_s = int(self.clock()) // tick_s * tick_s
        if self.latest is not None and self.latest.at_s - at_s > STEP_BACK_S:
            await self._start_over(at_s)
        if self.latest is not None:
            # A clock stepped back a little must not make the figures of a later tick disappear.
            at_s = max(at_s, self.latest.at_s)
        windows = self.store.ledger.windows
        windows.advance(at_s)
        evaluation = evaluate(windows, alerts=self._active, now_s=at_s)
        self._follow(evaluation)
        self.latest = evaluation
        self._tell()
        for listener in self.listeners:
            listener(evaluation)
        await self._keep(evaluation)

    async def _start_over(self, at_s: int) -> None:
        """Go back to `at_s`: windows only move on, so they are made anew from what is stored, and the figures of the
        time that has not come yet are taken out."""
        log.warning("the clock was set back: everything is read anew as of now")
        await self.store.write(lambda connection: commit.forget_figures(connection, after_s=at_s))
        await self.store.recall(self.store.ledger.plan)
        self.latest = None

    def _follow(self, evaluation: Evaluation) -> None:
        self._active = {alert.key: alert for alert in evaluation.alerts if alert.state != "resolved"}
        for alert in evaluation.transitions:
            if alert.state == "resolved" and alert.fired_s is not None:
                self._ended[alert.key] = alert
        self._ended = {
            key: alert
            for key, alert in self._ended.items()
            if evaluation.at_s - alert.since_s < KEPT_ENDED_S and not self._fires(key)
        }
        self._unsaved = (self._unsaved + list(evaluation.transitions))[-MAX_UNSAVED:]

    def _fires(self, key: AlertKey) -> bool:
        return key in self._active and self._active[key].state == "firing"

    def _tell(self) -> None:
        told = (notice(alert, external_url=self.external_url) for alert in (*self._active.values(), *self.ended))
        self.notifier.tell([one for one in told if one is not None])

    async def _keep(self, evaluation: Evaluation) -> None:
        """Have the figures kept, waiting for at most half a tick: a slow database delays no verdict."""
        if self._keeping is not None and not self._keeping.done():
            self.tallies.unsaved += 1
            return
        self._keeping = asyncio.create_task(self._kept(evaluation), name="keep")
        await asyncio.wait((self._keeping,), timeout=self.store.ledger.plan.tick_s / 2)

    async def _kept(self, evaluation: Evaluation) -> None:
        unsaved = list(self._unsaved)

        def work(connection: Connection) -> None:
            commit.write_evaluation(connection, evaluation)
            latest = {alert.key: alert for alert in (*unsaved, *evaluation.alerts)}
            commit.write_alerts(connection, list(latest.values()), unsaved)

        try:
            await self.store.write(work)
        except Exception as error:  # noqa: BLE001  the figures of one tick are lost; the transitions wait for the next
            self.tallies.unsaved += 1
            log.warning("the figures of a tick were not kept: %s", error)
        else:
            self._unsaved = self._unsaved[len(unsaved) :]

    async def settled(self) -> None:
        """Wait until what the last tick found is kept, or is known not to be."""
        if self._keeping is not None:
            await asyncio.wait((self._keeping,), timeout=SETTLE_S)
