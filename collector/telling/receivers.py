"""Those who are told of alerts: Alertmanager (API v2), and a webhook. Each knows what it was told, and what is new.

Alertmanager is told of a firing alert at once and again every minute, with an end four minutes ahead as Prometheus
does: should this collector die, the alert ends there by itself. An ended alert is told until it was taken once. It
groups, silences and remembers by itself, so nothing is kept of it here over a restart: the same labels and the same
start are the same alert to it. With nothing to tell it is sent an empty list once a minute, so that a wrong address or
wrong credentials are known before the first page.

The webhook is told of a group when it starts to fire and once when all of it has ended (`webhook`). What it was told is
remembered in the database (`Memory`), so a restart tells nothing twice, and a page that began and ended while it could
not be reached is told afterwards, once.
"""

import asyncio
from collections.abc import AsyncIterator, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol

import httpx
import orjson

from collector.errors import UntoldError
from collector.telling import webhook
from collector.telling.notice import Notice, rfc3339
from collector.telling.webhook import Group, Told

RESEND_S = 60
FIRES_FOR_S = 4 * RESEND_S
ENDED_LONG_AGO_S = 900
"""An alert that ended longer ago is no news to an Alertmanager that this process has not told of it: it ended there by
itself, and heard of late it would only stir the group it belonged to."""
BATCH = 256
"""Alerts in one request to Alertmanager."""
TIMEOUT_S = 5.0
ANSWER_S = 15.0
ALERTS_PATH = "/api/v2/alerts"
ASK_AGAIN = frozenset({408, 425, 429})
"""Answers of the 4xx that speak of the moment, not of a wrong address or credentials."""
SINCE = ""
"""The key under which a memory keeps since when it has been kept: no group's."""


class Receiver(Protocol):
    """Someone who is told. `deliver` tells what is due and gives how much was taken each time; it raises `UntoldError`
    when something was not. `forget` is for when another collector may have told meanwhile."""

    @property
    def name(self) -> str: ...

    def deliver(self, notices: Sequence[Notice], now_s: float, /) -> AsyncIterator[int]: ...

    def forget(self) -> None: ...


class Memory(Protocol):
    """What a receiver was told of each group, by key, kept beyond this process."""

    async def recall(self) -> Mapping[str, Told]: ...

    async def remember(self, told: Mapping[str, Told], /) -> None: ...


@dataclass(frozen=True, slots=True)
class _Said:
    at_s: float
    ends_at_s: int | None


class Alertmanager:
    """One Alertmanager; `url` is its address, with the path prefix it is served under."""

    def __init__(self, client: httpx.AsyncClient, url: str) -> None:
        self.name = called(url)
        self._client = client
        self._url = url.rstrip("/") + ALERTS_PATH
        self._said: dict[str, _Said] = {}
        self._heard_s: float | None = None

    def forget(self) -> None:
        self._said = {}

    async def deliver(self, notices: Sequence[Notice], now_s: float, /) -> AsyncIterator[int]:
        present = {notice.fingerprint for notice in notices}
        self._said = {key: said for key, said in self._said.items() if key in present}
        due = [notice for notice in notices if self._is_due(notice, now_s)]
        for some in self._posts(due, now_s):
            await _post(self._client, self._url, [_posted(notice, now_s) for notice in some])
            self._heard_s = now_s
            self._said |= {notice.fingerprint: _Said(now_s, notice.ends_at_s) for notice in some}
            yield len(some)

    def _posts(self, due: Sequence[Notice], now_s: float) -> Sequence[Sequence[Notice]]:
        """What is due by request; one that is empty when nothing was asked of it for long."""
        if not due and _is_recent(self._heard_s, now_s):
            return ()
        return [due[first : first + BATCH] for first in range(0, max(len(due), 1), BATCH)]

    def _is_due(self, notice: Notice, now_s: float) -> bool:
        said = self._said.get(notice.fingerprint)
        if notice.ends_at_s is None:
            return said is None or said.ends_at_s is not None or not _is_recent(said.at_s, now_s)
        if said is None:
            return now_s - notice.ends_at_s < ENDED_LONG_AGO_S
        return said.ends_at_s != notice.ends_at_s


def _is_recent(at_s: float | None, now_s: float) -> bool:
    """Within a resend interval; a moment in the future is of a clock that was set back since."""
    return at_s is not None and 0 <= now_s - at_s < RESEND_S


class Webhook:
    """One webhook. Its path is often its secret, so its name has none."""

    def __init__(self, client: httpx.AsyncClient, url: str, *, external_url: str, memory: Memory) -> None:
        self.name = called(url, with_path=False)
        self._client = client
        self._url = url
        self._external_url = external_url
        self._memory = memory
        self._told: dict[str, Told] | None = None
        self._unkept: dict[str, Told] = {}

    def forget(self) -> None:
        self._told = None
        self._unkept = {}

    async def deliver(self, notices: Sequence[Notice], now_s: float, /) -> AsyncIterator[int]:
        told = self._told if self._told is not None else await self._recalled(now_s)
        self._told = told
        refusal: UntoldError | None = None
        for group, before in _due(notices, told):
            body = webhook.payload(
                group, before, receiver=f"firsttoken-{group.notify}", external_url=self._external_url
            )
            try:
                await _post(self._client, self._url, body)
            except UntoldError as error:
                if not error.refused:
                    raise
                refusal = error  # it may take another group
                continue
            told[group.key] = self._unkept[group.key] = webhook.now_told(group, now_s=int(now_s))
            yield 1
            await self._keep()
        await self._keep()
        if refusal is not None:
            raise refusal

    async def _recalled(self, now_s: float) -> dict[str, Told]:
        told = dict(await self._memory.recall())
        if SINCE not in told:
            told[SINCE] = self._unkept[SINCE] = Told("resolved", int(now_s))
        return told

    async def _keep(self) -> None:
        """Have remembered what was told. What the database does not take now is taken along the next time."""
        if self._unkept:
            kept = dict(self._unkept)
            await self._memory.remember(kept)
            self._unkept = {key: told for key, told in self._unkept.items() if kept.get(key) != told}


def _due(notices: Sequence[Notice], told: Mapping[str, Told]) -> Iterator[tuple[Group, Told]]:
    """The groups to tell now, each with what was told of it last: of a new one, that all was well since the start."""
    for group in webhook.groups(notices):
        before = told.get(group.key, told[SINCE])
        if webhook.due(group, before):
            yield group, before


def http_client() -> httpx.AsyncClient:
    """The client receivers are told with: short timeouts, no proxy or netrc of the environment, no redirects."""
    return httpx.AsyncClient(timeout=TIMEOUT_S, trust_env=False, headers={"user-agent": "firsttoken"})


def called(url: str, *, with_path: bool = True) -> str:
    """What a receiver is called in logs, metrics and tables: its address without credentials or query."""
    parts = httpx.URL(url).copy_with(username=None, password=None, query=None, fragment=None)
    return str(parts if with_path else parts.copy_with(path="/")).rstrip("/")


async def _post(client: httpx.AsyncClient, url: str, body: object) -> None:
    """POST, and look at the status alone: a receiver that drips or floods its answer costs no more than `ANSWER_S` and
    no memory. Raises `UntoldError`, whose words hold nothing of the URL."""
    asked = client.stream("POST", url, content=orjson.dumps(body), headers={"content-type": "application/json"})
    try:
        async with asyncio.timeout(ANSWER_S), asked as answer:
            status = answer.status_code
    except (TimeoutError, httpx.TimeoutException):
        raise UntoldError("it does not answer") from None
    except (httpx.HTTPError, OSError) as error:
        raise UntoldError(str(error).replace(url, "its address") or type(error).__name__) from None
    if status >= 300:
        raise UntoldError(f"it answered {status}", refused=status < 500 and status not in ASK_AGAIN)


def _posted(notice: Notice, now_s: float) -> dict[str, object]:
    ends_at_s = notice.ends_at_s if notice.ends_at_s is not None else int(now_s) + FIRES_FOR_S
    return {
        "labels": dict(notice.labels),
        "annotations": dict(notice.annotations),
        "startsAt": rfc3339(notice.starts_at_s),
        "endsAt": rfc3339(ends_at_s),
        "generatorURL": notice.url,
    }
