"""Tells Alertmanager (API v2), or without one a webhook, which alerts fire and which have ended.

Takes the notices of each tick and delivers them in its own task, so that a slow or absent receiver delays no tick.
Alertmanager is told of a firing alert at once and again every minute, with an end four minutes ahead as Prometheus
does: should this collector die, the alert ends there by itself. An ended alert is told until it was taken once. The
webhook is told of a group when it starts to fire and once when all of it has ended (`webhook`); what it was told is
remembered in the database, so a restart tells nothing twice. Every failure is counted, logged and tried again.
"""

import asyncio
import contextlib
import logging
import time
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Protocol

import httpx

from collector import webhook
from collector.notice import Notice, rfc3339

RESEND_S = 60
FIRES_FOR_S = 4 * RESEND_S
TIMEOUT_S = 5.0
ANSWER_S = 15.0
RETRY_FIRST_S = 1.0
RETRY_LAST_S = 15.0
ENDED_LONG_AGO_S = 900
ALERTS_PATH = "/api/v2/alerts"

log = logging.getLogger(__name__)

Clock = Callable[[], float]
Remember = Callable[[str, str, webhook.Status], Awaitable[None]]


class Receiver(Protocol):
    """Someone who is told; `deliver` raises `httpx.HTTPError` or TimeoutError when not everything due was taken."""

    @property
    def name(self) -> str: ...

    async def deliver(self, notices: Sequence[Notice], now_s: float, /) -> int: ...


@dataclass(slots=True)
class _Told:
    at_s: float
    ends_at_s: int | None


class Alertmanager:
    """One Alertmanager; `url` is its address, with the path prefix it is served under."""

    def __init__(self, client: httpx.AsyncClient, url: str) -> None:
        self.name = name_of(url)
        self._client = client
        self._url = url.rstrip("/") + ALERTS_PATH
        self._told: dict[str, _Told] = {}

    async def deliver(self, notices: Sequence[Notice], now_s: float, /) -> int:
        due = [notice for notice in notices if self._is_due(notice, now_s)]
        if due:
            await _post(self._client, self._url, [_posted(notice, now_s) for notice in due])
        for notice in due:
            self._told[notice.fingerprint] = _Told(now_s, notice.ends_at_s)
        present = {notice.fingerprint for notice in notices}
        self._told = {key: told for key, told in self._told.items() if key in present}
        return len(due)

    def _is_due(self, notice: Notice, now_s: float) -> bool:
        told = self._told.get(notice.fingerprint)
        if notice.ends_at_s is None:
            return told is None or told.ends_at_s is not None or not 0 <= now_s - told.at_s < RESEND_S
        if told is None:
            return now_s - notice.ends_at_s < ENDED_LONG_AGO_S
        return told.ends_at_s != notice.ends_at_s


class Webhook:
    """One webhook; `told` is what it was last told of each group, by key, and `remember` keeps that."""

    def __init__(
        self,
        client: httpx.AsyncClient,
        url: str,
        *,
        external_url: str,
        told: Mapping[str, webhook.Status],
        remember: Remember,
    ) -> None:
        self.name = name_of(url)
        self._client = client
        self._url = url
        self._external_url = external_url
        self._told = dict(told)
        self._remember = remember

    async def deliver(self, notices: Sequence[Notice], _now_s: float, /) -> int:
        sent = 0
        for group in webhook.groups(notices):
            if webhook.due(group, self._told.get(group.key)):
                body = webhook.payload(group, receiver=f"firsttoken-{group.notify}", external_url=self._external_url)
                await _post(self._client, self._url, body)
                self._told[group.key] = group.status
                await self._remember(self.name, group.key, group.status)
                sent += 1
        return sent


@dataclass(slots=True)
class Deliveries:
    """What became of the notices of one receiver, since the start."""

    sent: int = 0
    failures: int = 0
    last_error: str | None = None


@dataclass(slots=True)
class Notifier:
    """Keeps every receiver told. `tell` gives the notices of a tick, `run` delivers until it is cancelled."""

    receivers: Sequence[Receiver]
    clock: Clock = time.time
    deliveries: dict[str, Deliveries] = field(default_factory=dict)
    _notices: tuple[Notice, ...] = ()
    _news: asyncio.Event = field(default_factory=asyncio.Event)

    def __post_init__(self) -> None:
        self.deliveries = {receiver.name: Deliveries() for receiver in self.receivers}

    def tell(self, notices: Sequence[Notice]) -> None:
        self._notices = tuple(notices)
        self._news.set()

    async def run(self) -> None:
        await asyncio.gather(*(self._serve(receiver) for receiver in self.receivers))

    async def _serve(self, receiver: Receiver) -> None:
        """Deliver on news, and again after a pause that grows while the receiver fails."""
        seen: tuple[Notice, ...] | None = None
        pause_s = 0.0
        while True:
            if pause_s:
                await asyncio.sleep(pause_s)
            elif seen is self._notices:
                self._news.clear()
                await self._news.wait()
            seen = self._notices
            delivered = await self._deliver(receiver, seen)
            pause_s = 0.0 if delivered else min(max(2 * pause_s, RETRY_FIRST_S), RETRY_LAST_S)

    async def _deliver(self, receiver: Receiver, notices: Sequence[Notice]) -> bool:
        record = self.deliveries[receiver.name]
        try:
            record.sent += await receiver.deliver(notices, self.clock())
        except Exception as error:  # noqa: BLE001  whatever a receiver does, the others and the ticks go on
            record.failures += 1
            record.last_error = _words(error)
            log.warning("cannot tell %s of %d alerts: %s", receiver.name, len(notices), record.last_error)
            return False
        record.last_error = None
        return True

    async def last_word(self, timeout_s: float) -> None:
        """One more delivery of what was told last, within `timeout_s`; for the end of the process."""
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(timeout_s):
                await asyncio.gather(*(self._deliver(receiver, self._notices) for receiver in self.receivers))


def http_client() -> httpx.AsyncClient:
    """The client receivers are told with: short timeouts, no proxy or netrc of the environment, no redirects."""
    return httpx.AsyncClient(timeout=TIMEOUT_S, trust_env=False, headers={"user-agent": "firsttoken"})


async def _post(client: httpx.AsyncClient, url: str, body: object) -> None:
    """POST, and look at the status alone: a receiver that drips or floods its answer costs no more than `ANSWER_S` and
    no memory. Raises `httpx.HTTPError` or TimeoutError."""
    async with asyncio.timeout(ANSWER_S), client.stream("POST", url, json=body) as answer:
        answer.raise_for_status()


def _posted(notice: Notice, now_s: float) -> dict[str, object]:
    ends_at_s = notice.ends_at_s if notice.ends_at_s is not None else int(now_s) + FIRES_FOR_S
    return {
        "labels": dict(notice.labels),
        "annotations": dict(notice.annotations),
        "startsAt": rfc3339(notice.starts_at_s),
        "endsAt": rfc3339(ends_at_s),
        "generatorURL": notice.url,
    }


def _words(error: Exception) -> str:
    if isinstance(error, httpx.HTTPStatusError):
        return f"it answered {error.response.status_code}"
    return str(error) or type(error).__name__


def name_of(url: str) -> str:
    """What a receiver is called in logs and tables: its address without credentials or query."""
    parts = httpx.URL(url)
    return str(parts.copy_with(username=None, password=None, query=None, fragment=None))
