"""Keeps every receiver told which alerts fire and which have ended, whatever becomes of the receivers.

Takes the notices of each tick and delivers them beside it, to each receiver in a task of its own: one that is slow or
gone delays neither a tick nor another receiver. Nothing queues up: the notices of the newest tick replace those of the
one before, and each receiver is told what is new to it since it listened last (`receivers`).

What a receiver did not take is told again after a pause that doubles, shortened at random so that collectors which
failed together do not return together. One that refuses (an answer of the 4xx) is told of more rarely: somebody must
mend its address or its credentials first. Each change of that is one line in the log.

Of several collectors one notifies: the others `stand_by`, say nothing and resolve nothing, until they `take_over`.
"""

import asyncio
import contextlib
import logging
import random
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Literal

from collector.errors import UntoldError
from collector.telling.notice import NOTIFY, Notice
from collector.telling.receivers import Receiver

RETRY_FIRST_S = 1.0
RETRY_LAST_S = 15.0
REFUSED_PAUSE_S = 60.0
STALE_S = 60
"""Notices older than this wait for the next tick: a process that was stopped meanwhile may no longer be the one to
tell them."""
MAX_NOTICES = 10_000

log = logging.getLogger(__name__)

Clock = Callable[[], float]
Standing = Literal["listens", "away", "refuses"]


@dataclass(slots=True)
class Deliveries:
    """What became of the notices of one receiver, since the start; `last_error` is None while it listens."""

    sent: int = 0
    failures: int = 0
    last_error: str | None = None
    standing: Standing = "listens"


@dataclass(slots=True)
class Notifier:
    """Keeps every receiver told. `tell` gives the notices of a tick, `run` delivers until it is cancelled. `chance`
    gives a share of 0 to 1; `may_tell` says at each delivery whether this is still the collector to tell."""

    receivers: Sequence[Receiver]
    clock: Clock = time.time
    chance: Callable[[], float] = random.random
    may_tell: Callable[[], bool] = lambda: True
    deliveries: dict[str, Deliveries] = field(default_factory=dict)
    left_out: int = 0
    _notices: tuple[Notice, ...] = ()
    _turn: int = 0
    _told_s: float = 0.0
    _stands_by: bool = False
    _news: asyncio.Event = field(default_factory=asyncio.Event)

    def __post_init__(self) -> None:
        self.deliveries = {receiver.name: Deliveries() for receiver in self.receivers}

    def tell(self, notices: Sequence[Notice]) -> None:
        """These are all the alerts that fire or have ended lately. Nothing while standing by."""
        if self._stands_by:
            return
        self._notices = self._bounded(notices)
        self._turn += 1
        self._told_s = self.clock()
        self._news.set()

    def stand_by(self) -> None:
        """Another collector notifies from now on."""
        self._stands_by = True
        self._notices = ()

    def take_over(self) -> None:
        """This collector notifies from now on: receivers may have been told by another until now."""
        if self._stands_by:
            self._stands_by = False
            for receiver in self.receivers:
                receiver.forget()

    async def run(self) -> None:
        """Deliver until cancelled, to each receiver in its own time."""
        await asyncio.gather(*(self._serve(receiver) for receiver in self.receivers))

    async def last_word(self, timeout_s: float) -> None:
        """One more delivery of what was told last, within `timeout_s`; for the end of the process."""
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(timeout_s):
                await asyncio.gather(*(self._deliver(receiver, self._notices) for receiver in self.receivers))

    async def _serve(self, receiver: Receiver) -> None:
        """Deliver on news, and again after a pause that grows while the receiver fails."""
        turn, pause_s = -1, 0.0
        while True:
            await asyncio.sleep(pause_s * (1 + self.chance()) / 2)
            while self._stands_by or (turn == self._turn and (not pause_s or self._is_stale())):
                self._news.clear()
                await self._news.wait()
            turn = self._turn
            is_told = await self._deliver(receiver, self._notices)
            pause_s = 0.0 if is_told else next_pause_s(self.deliveries[receiver.name].standing, pause_s)

    def _is_stale(self) -> bool:
        return self.clock() - self._told_s > STALE_S

    async def _deliver(self, receiver: Receiver, notices: Sequence[Notice]) -> bool:
        """Whether everything due was taken, if anything was. Nothing is while another collector may be telling."""
        if not self.may_tell():
            return False
        record = self.deliveries[receiver.name]
        try:
            async for taken in receiver.deliver(notices, self.clock()):
                record.sent += taken
                _stands(receiver.name, record, "listens", None)
        except Exception as error:  # noqa: BLE001  whatever a receiver does, the others and the ticks go on
            record.failures += 1
            refused = isinstance(error, UntoldError) and error.refused
            _stands(receiver.name, record, "refuses" if refused else "away", str(error) or type(error).__name__)
            return False
        return True

    def _bounded(self, notices: Sequence[Notice]) -> tuple[Notice, ...]:
        """As many as anybody can be told of, the most urgent."""
        left_out = max(len(notices) - MAX_NOTICES, 0)
        if left_out and not self.left_out:
            log.warning("receivers are told of the %d most urgent alerts alone: there are more", MAX_NOTICES)
        self.left_out = left_out
        return tuple(sorted(notices, key=_urgency)[:MAX_NOTICES] if left_out else notices)


def _urgency(notice: Notice) -> tuple[bool, bool]:
    return not notice.fires, notice.label(NOTIFY) != "page"


def next_pause_s(standing: Standing, before_s: float) -> float:
    """How long to wait after a failure, and after a pause of `before_s`."""
    return REFUSED_PAUSE_S if standing == "refuses" else min(max(2 * before_s, RETRY_FIRST_S), RETRY_LAST_S)


def _stands(name: str, record: Deliveries, standing: Standing, error: str | None) -> None:
    """Note how the receiver stands to us, and log it when that has changed."""
    before, record.standing, record.last_error = record.standing, standing, error
    if standing == before:
        return
    if standing == "refuses":
        log.error("%s refuses to be told of alerts: %s: look at its address and credentials", name, error)
    elif standing == "away":
        log.warning("%s cannot be told of alerts: %s: it is tried again", name, error)
    else:
        log.info("%s is told of alerts again", name)
