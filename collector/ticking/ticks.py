"""The tick: evaluate, keep the figures, tell the receivers. One fault costs one tick, never the loop.

A tick happens at each whole multiple of its length. What could not be kept (the database away) is kept with the next
tick that can: figures of a missed tick are lost, transitions of alerts are not.

Of several collectors on one database one leads (`leader`). The others evaluate all the same, from the same counts and
from the states of alerts that the leader keeps, so their pages show the same verdict; they write and tell nothing. One
that begins to lead ticks at once, and takes up alerts and what receivers were told where the database has them.
"""

import asyncio
import logging
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

from sqlalchemy.engine import Connection

from collector.errors import UnavailableError
from collector.judging.evaluate import Evaluation, Given, evaluate
from collector.keeping.store import Store
from collector.storage import causes, commit, drift_past, figures, journal, recall
from collector.storage.leader import Alone, Leader
from collector.telling.notice import notice
from collector.telling.notify import Notifier
from collector.ticking.attributing import Attributing
from collector.ticking.certifying import Certifying
from collector.ticking.drifting import Drifting
from collector.values.alerting import Alert, AlertKey
from slo.quantity import MINUTE_S

KEPT_ENDED_S = 86400
MAX_UNSAVED = 1_000
SETTLE_S = 5.0
LATE_S = 0.01
"""After the moment that a tick speaks of: who wakes a little before it would speak of the one before."""
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
    leads: bool = False


@dataclass(frozen=True, slots=True)
class Heard:
    """What other collectors did is known, and alerts are taken up for the term; None for the term of another."""

    term: int | None


@dataclass(slots=True)
class Ticks:
    """The evaluation loop over a store. `latest` is the last evaluation, given to each of the `listeners` too; `ticked`
    wakes whoever waits for the next."""

    store: Store
    notifier: Notifier
    external_url: str
    clock: Callable[[], float] = time.time
    leader: Leader = field(default_factory=Alone)
    latest: Evaluation | None = None
    tallies: TickTallies = field(default_factory=TickTallies)
    ticked: asyncio.Condition = field(default_factory=asyncio.Condition)
    listeners: list[Callable[[Evaluation], None]] = field(default_factory=list)
    drifting: Drifting = field(init=False)
    attributing: Attributing = field(init=False)
    certifying: Certifying = field(init=False)
    _term: int | None = None
    _active: dict[AlertKey, Alert] = field(default_factory=dict)
    _ended: dict[AlertKey, Alert] = field(default_factory=dict)
    _unsaved: list[Alert] = field(default_factory=list)
    _keeping: asyncio.Task[None] | None = None
    _hearing: asyncio.Task[Heard | None] | None = None
    _figures_s: int | None = None

    def __post_init__(self) -> None:
        self.drifting = Drifting(self.store)
        self.attributing = Attributing(self.store)
        self.certifying = Certifying(self.store)

    @property
    def alerts(self) -> Sequence[Alert]:
        """Those pending or firing now."""
        return tuple(self._active.values())

    @property
    def ended(self) -> Sequence[Alert]:
        """Those that fired and ended within a day, the latest first."""
        return sorted(self._ended.values(), key=lambda alert: alert.since_s, reverse=True)

    async def resume(self) -> None:
        """Take up alerts, their causes and drifts where the last process left them."""
        known = await self.store.read(recall.alerts)
        self._active = {key: alert for key, alert in known.items() if alert.state != "resolved"}
        since_s = int(self.clock()) - KEPT_ENDED_S
        ended = await self.store.read(lambda connection: recall.ended(connection, since_s=since_s))
        self._ended = {key: alert for key, alert in ended.items() if not self._fires(key)}
        await self.drifting.resume()
        await self.attributing.resume()

    async def stop(self) -> None:
        """Let what was begun end, and learn and attribute no more: to be called before the store is closed."""
        await self.settled()
        await self.drifting.stop()
        await self.attributing.stop()

    async def run(self) -> None:
        """Tick until cancelled."""
        while True:
            await self.tick()
            tick_s = self.store.ledger.plan.tick_s
            await self.leader.until_leading(tick_s - self.clock() % tick_s + LATE_S)

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
        await self._hear_others()
        tick_s = self.store.ledger.plan.tick_s
        at_s = int(self.clock()) // tick_s * tick_s
        if self.latest is not None and self.latest.at_s - at_s > STEP_BACK_S:
            await self._start_over(at_s)
        if self.latest is not None:
            # A clock stepped back a little must not make the figures of a later tick disappear.
            at_s = max(at_s, self.latest.at_s)
        await self._reach(at_s)
        windows = self.store.ledger.windows
        windows.advance(at_s)
        self.certifying.observe(at_s)
        given = Given(self.drifting.open, tuple(self._ended.values()), self.certifying.certified_rps)
        evaluation = evaluate(windows, alerts=self._active, now_s=at_s, given=given)
        if self.tallies.leads:
            await self.attributing.seek(evaluation)
        evaluation = self.attributing.told(evaluation)
        self._follow(evaluation)
        self.latest = evaluation
        if self.tallies.leads:
            self._tell()
        for listener in self.listeners:
            listener(evaluation)
        if self.tallies.leads:
            self.drifting.observe(evaluation)
            await self._keep(evaluation)
        else:
            self._unsaved = []

    async def _hear_others(self) -> None:
        """Take in what other collectors have committed, and the states of alerts where another decides them. A
        database that does not answer delays no verdict by more than half a tick: what is known stands."""
        term = self.leader.term
        if self._hearing is None or self._hearing.done():
            self._hearing = asyncio.create_task(self._heard(term), name="hear")
        await asyncio.wait((self._hearing,), timeout=self.store.ledger.plan.tick_s / 2)
        if not self._hearing.done() or self._hearing.result() != Heard(term):
            term = term if term == self._term else None
        if term is None or term != self._term:
            self.notifier.stand_by()
        if term is not None:
            self.notifier.take_over()
        self._term, self.tallies.leads = term, term is not None

    async def _heard(self, term: int | None) -> Heard | None:
        """What was heard of the others for a term of ours; None when the database cannot be read."""
        try:
            await self.store.catch_up()
            if term is None or term != self._term:
                await self.resume()
        except UnavailableError as error:
            log.warning("what other collectors did is not known: %s", error)
            return None
        return Heard(term)

    async def _start_over(self, at_s: int) -> None:
        """Go back to `at_s`: windows only move on, so they are made anew from what is stored, and the figures of the
        time that has not come yet are taken out."""
        log.warning("the clock was set back: everything is read anew as of now")
        if self.tallies.leads:
            await self.store.write(lambda connection: self._forget_figures(connection, after_s=at_s))
        await self.store.recall(self.store.ledger.plan)
        await self.drifting.resume()
        self.latest = None

    async def _reach(self, at_s: int) -> None:
        """Take into the windows what was counted before its time had come, once it has."""
        ahead_s = self.store.ledger.ahead_s
        if ahead_s is None or ahead_s > at_s:
            return
        log.warning("the time has come of what was counted while a clock was ahead: everything is read anew")
        try:
            await self.store.recall(self.store.ledger.plan)
        except UnavailableError as error:
            log.warning("it is not read yet: %s", error)

    def _forget_figures(self, connection: Connection, *, after_s: int) -> None:
        self.leader.fence(connection)
        figures.forget(connection, after_s=after_s)
        drift_past.forget(connection, after_s=after_s)

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
        unsaved, drifts, tick_s = list(self._unsaved), self.drifting.unsaved, self.store.ledger.plan.tick_s
        findings = self.attributing.unsaved
        due = figures.is_due(evaluation, self._figures_s)

        def work(connection: Connection) -> None:
            self.leader.fence(connection)
            if evaluation.at_s % MINUTE_S < tick_s:
                journal.prune(connection, before_s=evaluation.at_s - journal.KEPT_S)
            if due:
                figures.write(connection, evaluation)
            drift_past.write(connection, drifts)
            causes.write(connection, findings)
            latest = {alert.key: alert for alert in (*unsaved, *evaluation.alerts)}
            commit.write_alerts(connection, list(latest.values()), unsaved)

        try:
            await self.store.write(work)
        except Exception as error:  # noqa: BLE001  the figures of one tick are lost; the transitions wait for the next
            self.tallies.unsaved += 1
            log.warning("the figures of a tick were not kept: %s", error)
        else:
            self._unsaved = self._unsaved[len(unsaved) :]
            self.drifting.saved(drifts)
            self.attributing.saved(findings)
            self._figures_s = evaluation.at_s if due else self._figures_s

    async def settled(self) -> None:
        """Wait until what the last tick found is kept, or is known not to be."""
        works = [work for work in (self._keeping, self._hearing) if work is not None]
        if works:
            await asyncio.wait(works, timeout=SETTLE_S)
        await self.attributing.settled()
        await self.certifying.settled()
