"""The demo's pager: a webhook receiver for notifications in Alertmanager's format (version 4).

The collector's own notifier and a real Alertmanager both post to it. It keeps what it was told and when; whether a page
rang is read from here and from nowhere else, because this is what would have rung in somebody's pocket.
"""

import asyncio
import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Self

from firsttoken.json_fields import Object, object_at, objects_at
from slo.promql import OBJECTIVE_LABEL, TIER_LABEL

MAX_HEAD_BYTES = 64 * 1024
MAX_BODY_BYTES = 4 * 1024 * 1024
MAX_KEPT = 1000
READ_TIMEOUT_S = 10.0


@dataclass(frozen=True, slots=True)
class Notification:
    """One message. `kind` is the alerts' own label (page or ticket), `names` what fires or has ended; messages of the
    same `group` speak of the same incident."""

    at_s: float
    kind: str
    status: str
    names: tuple[str, ...]
    group: str = ""

    @property
    def text(self) -> str:
        return f"{self.kind} {self.status}: {', '.join(self.names) or 'no alert'}"


def notification(body: object, at_s: float) -> Notification | None:
    """The notification that a webhook's JSON is; None when it is none."""
    if not isinstance(body, Mapping) or body.get("status") not in ("firing", "resolved"):
        return None
    status = str(body["status"])
    alerts = [alert for alert in objects_at(body, "alerts") if object_at(alert, "labels")]
    is_page = any(object_at(alert, "labels").get("notify") == "page" for alert in alerts)
    names = dict.fromkeys(_name(alert) for alert in alerts if alert.get("status") == status)
    group = body.get("groupKey")
    kind = "page" if is_page else "ticket"
    return Notification(at_s, kind, status, tuple(names), group if isinstance(group, str) else "")


def _name(alert: Object) -> str:
    """An alert in a few words: its name, objective and tier."""
    labels = object_at(alert, "labels")
    about = "/".join(str(labels[key]) for key in (OBJECTIVE_LABEL, TIER_LABEL) if labels.get(key))
    return f"{labels.get('alertname', 'alert')} {about}".strip()


class Pager:
    """The receiver while it listens; `now_s` gives the epoch seconds that notifications are stamped with."""

    def __init__(self, now_s: Callable[[], float]) -> None:
        self.notifications: list[Notification] = []
        self.url = ""
        self._now_s = now_s
        self._told = asyncio.Condition()

    async def __aenter__(self) -> Self:
        self._server = await asyncio.start_server(self._answer, "127.0.0.1", 0, limit=MAX_HEAD_BYTES)
        self.url = f"http://127.0.0.1:{self._server.sockets[0].getsockname()[1]}/"
        return self

    async def __aexit__(self, *_exc: object) -> None:
        self._server.close()

    def first(self, kind: str, status: str) -> Notification | None:
        """The first notification of a kind and status."""
        return next((told for told in self.notifications if (told.kind, told.status) == (kind, status)), None)

    async def wait(self, kind: str, status: str) -> Notification:
        """Wait for the first notification of a kind and status."""
        async with self._told:
            while (found := self.first(kind, status)) is None:
                await self._told.wait()
            return found

    async def _answer(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            async with asyncio.timeout(READ_TIMEOUT_S):
                status = await self._take(reader)
                writer.write(f"HTTP/1.1 {status}\r\nContent-Length: 0\r\nConnection: close\r\n\r\n".encode())
                await writer.drain()
        except (OSError, TimeoutError, asyncio.IncompleteReadError):
            return
        finally:
            writer.close()

    async def _take(self, reader: asyncio.StreamReader) -> str:
        """Read one request; the status line's end to answer with."""
        try:
            head = (await reader.readuntil(b"\r\n\r\n")).decode("latin-1")
        except asyncio.LimitOverrunError:
            return "431 Request Header Fields Too Large"
        fields = {
            name.strip().lower(): value.strip()
            for name, _, value in (line.partition(":") for line in head.split("\r\n")[1:])
        }
        length = fields.get("content-length", "")
        if not head.startswith("POST ") or not length.isdecimal():
            return "400 Bad Request"
        if int(length) > MAX_BODY_BYTES:
            return "413 Content Too Large"
        try:
            body = json.loads(await reader.readexactly(int(length)))
        except ValueError:
            return "400 Bad Request"
        told = notification(body, self._now_s())
        if told is None:
            return "400 Bad Request"
        async with self._told:
            self.notifications = [*self.notifications, told][-MAX_KEPT:]
            self._told.notify_all()
        return "200 OK"
