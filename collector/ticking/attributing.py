"""The search for what burns, beside the ticks: alerts in, their causes out, and the rows that keep them.

A cause is sought when a burn alert begins to pend and when it begins to fire, and again each minute while it fires. The
tick waits for the search only where an alert changes its state, and for half a tick at most, so that what people are
told first says why; it holds up nothing else. Everything is read from the database: it knows the past of a collector
that was just started, too. While it is away, what was found before stands.

Whoever leads searches; of several collectors the others show what the leader has found, as they do with alerts.
"""

import asyncio
import logging
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import islice

from sqlalchemy.engine import Connection

from collector.errors import UnavailableError
from collector.judging.cause import attribute_apart
from collector.judging.drift_watch import SIGNAL_OF_ALERT
from collector.judging.evaluate import Evaluation
from collector.judging.evidence import Seen, evidence
from collector.judging.quiet import Stretch, quiet
from collector.keeping.reader import Reader
from collector.keeping.store import Store
from collector.storage import causes, evidence_past
from collector.storage.causes import Finding
from collector.storage.evidence_past import Whose
from collector.values import alerting
from collector.values.alerting import Alert, AlertKey
from collector.windowing.windows import Plan
from slo import burn
from slo.objective import Objective
from slo.signals import ALL_MODELS

REFRESH_S = 60
MAX_AT_ONCE = 8
"""Alerts whose causes are sought at once, the most urgent first; the others wait for the next tick."""
MAX_LENGTH_S = 1800
"""The longest stretch of time that is looked at, however long an alert's short window is."""
MAX_LOOK_BACK_S = 6 * 3600
"""How far back a time is sought in which nothing burned."""
WAIT_OF_TICK, WAIT_S = 0.5, 2.0
"""How long a tick waits for what an alert's first words should say."""

log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class Question:
    """Why an alert is what it is, as of a moment: what happened in the `length_s` before. `known` is what was found of
    it before, since it left ok; `turned`: it changed its state right now."""

    alert: Alert
    objective: Objective
    at_s: int
    length_s: int
    look_back_s: int
    known: Finding | None
    turned: bool

    @property
    def whose(self) -> Whose:
        key = self.alert.key
        return Whose(key.environment, key.service, key.model)

    @property
    def during(self) -> Stretch:
        return Stretch(self.at_s - self.length_s, self.at_s)

    @property
    def since_s(self) -> int:
        """When it left ok."""
        return self.alert.since_s if self.known is None else self.known.since_s


@dataclass(frozen=True, slots=True)
class _Sight:
    """What the database holds for one question: of before, and of during the burn."""

    question: Question
    before: Stretch
    was: Seen
    now: Seen


class Attributing:
    """Causes of the alerts that pend or fire."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self._reader = Reader(store)
        self._found: dict[AlertKey, Finding] = {}
        self._unsaved: dict[tuple[AlertKey, int], Finding] = {}
        self._search: asyncio.Task[None] | None = None

    @property
    def unsaved(self) -> tuple[Finding, ...]:
        """Those to be kept; `saved` once they are."""
        return tuple(self._unsaved.values())

    def saved(self, findings: Iterable[Finding]) -> None:
        """These were kept as they are."""
        for one in findings:
            if self._unsaved.get((one.key, one.since_s)) is one:
                del self._unsaved[one.key, one.since_s]

    async def resume(self) -> None:
        """Take up what was found of alerts that last. Raises `UnavailableError`."""
        found = await self._store.read(causes.latest)
        await self.stop()
        self._found, self._unsaved = found, {}

    async def stop(self) -> None:
        """Search no more."""
        if self._search is not None:
            self._search.cancel()
            await asyncio.gather(self._search, return_exceptions=True)
            self._search = None

    async def settled(self) -> None:
        """Wait until the search that goes on has ended."""
        if self._search is not None:
            await asyncio.wait((self._search,))

    async def seek(self, evaluation: Evaluation) -> None:
        """Begin to search where that is due, and where an alert changed its state, wait a little for what is found."""
        # One that has ended just now may pend again in the next tick: its long window still burns of the same trouble.
        lasting = {alert.key for alert in evaluation.alerts}
        self._found = {key: one for key, one in self._found.items() if key in lasting}
        if self._search is not None and not self._search.done():
            return
        changed = {alert.key for alert in evaluation.transitions}
        plan = self._store.ledger.plan
        asked = questions(evaluation, self._found, plan=plan)
        if asked:
            self._search = asyncio.create_task(self._answer(asked), name="causes")
            if any(one.alert.key in changed for one in asked):
                await asyncio.wait((self._search,), timeout=min(WAIT_OF_TICK * plan.tick_s, WAIT_S))

    def told(self, evaluation: Evaluation) -> Evaluation:
        """The evaluation, its alerts with their causes among the annotations."""
        if not self._found:
            return evaluation
        return replace(
            evaluation,
            alerts=tuple(map(self._told, evaluation.alerts)),
            transitions=tuple(map(self._told, evaluation.transitions)),
        )

    def _told(self, alert: Alert) -> Alert:
        found = self._found.get(alert.key)
        return alert if found is None else alerting.with_cause(alert, found.cause.text)

    async def _answer(self, asked: Sequence[Question]) -> None:
        try:
            sights = await self._reader.read(lambda connection: list(_sights(connection, asked)))
        except UnavailableError as error:
            log.warning("the causes of %d alert(s) are not known yet: %s", len(asked), error)
            return
        findings = await asyncio.to_thread(lambda: list(map(finding, sights)))
        for question, one in zip(asked, findings, strict=True):
            if _is_news(one, question):
                self._found[one.key] = self._unsaved[one.key, one.since_s] = one
            elif question.known is not None:
                self._found[one.key] = replace(question.known, at_s=one.at_s)


def questions(evaluation: Evaluation, found: Mapping[AlertKey, Finding], *, plan: Plan) -> list[Question]:
    """What is to be asked now, the most urgent first."""
    changed = {alert.key for alert in evaluation.transitions}
    due = [
        alert
        for alert in evaluation.alerts
        if alert.key.name in SIGNAL_OF_ALERT
        and alert.state != "resolved"
        and _is_due(alert, found.get(alert.key), at_s=evaluation.at_s, turned=alert.key in changed)
    ]
    asked = (
        _question(alert, evaluation.at_s, plan, known=found.get(alert.key), turned=alert.key in changed)
        for alert in sorted(due, key=_urgency)
    )
    return list(islice((one for one in asked if one is not None), MAX_AT_ONCE))


def finding(sight: "_Sight") -> Finding:
    """What the sight shows."""
    asked, was, now = sight.question, sight.was, sight.now
    apart = [{name: evidence(one, (name,)) for name in one.instances()} for one in (was, now)]
    cause = attribute_apart(*apart, together=(evidence(was), evidence(now)))
    return Finding(asked.alert.key, asked.since_s, asked.at_s, cause, asked.length_s, sight.before.until_s)


def _is_due(alert: Alert, found: Finding | None, *, at_s: int, turned: bool) -> bool:
    # A clock that was set back leaves moments in the future.
    return found is None or (alert.state == "firing" and (turned or abs(at_s - found.at_s) >= REFRESH_S))


def _urgency(alert: Alert) -> tuple[bool, bool, bool, AlertKey]:
    pages = dict(alert.labels).get("notify") == "page"
    return alert.state != "firing", not pages, alert.key.model != ALL_MODELS, alert.key


def _question(alert: Alert, at_s: int, plan: Plan, *, known: Finding | None, turned: bool) -> Question | None:
    """None of an alert whose objective or tier is gone."""
    spec = plan.spec(alert.key.service)
    objectives = spec.objectives if spec else ()
    for objective in objectives:
        for tier in burn.tiers(objective):
            if (objective.name, tier.name) == (alert.key.objective, alert.key.tier):
                length_s = min(max(tier.short_s, 2 * plan.tick_s), MAX_LENGTH_S)
                look_back_s = min(tier.long_s + length_s, MAX_LOOK_BACK_S)
                return Question(alert, objective, at_s, length_s, look_back_s, known, turned)
    return None


def _is_news(one: Finding, asked: Question) -> bool:
    """Whether it takes the place of what was found before. An unknown never does of a known cause; another one at the
    turn to firing, which shows more than the first signs did, or where it is as sure: as a trouble ends, its symptoms
    outlive it."""
    if asked.known is None or asked.known.cause.kind == "unknown":
        return True
    if one.cause.kind == "unknown":
        return False
    return asked.turned or one.cause.confidence >= asked.known.cause.confidence


def _sights(connection: Connection, asked: Iterable[Question]) -> Iterator[_Sight]:
    """What the database holds for each question; what several ask for is read once."""
    held: dict[tuple[Whose, Stretch], Seen] = {}

    def seen(whose: Whose, span: Stretch) -> Seen:
        if (whose, span) not in held:
            held[whose, span] = evidence_past.seen(connection, whose, span)
        return held[whose, span]

    for one in asked:
        before = _before(connection, one)
        yield _Sight(one, before, seen(one.whose, before), seen(one.whose, one.during))


def _before(connection: Connection, asked: Question) -> Stretch:
    """The stretch to compare with: that of the first look, as long as the alert lasts."""
    if asked.known is not None:
        return Stretch(asked.known.before_s - asked.length_s, asked.known.before_s)
    first_s = asked.during.first_s
    span = Stretch(first_s - asked.look_back_s, first_s)
    events = evidence_past.events(connection, asked.whose, asked.objective.name, span)
    return quiet(events, asked.objective, length_s=asked.length_s, until_s=first_s)
