"""One alert as receivers are told of it: stable labels and words (DESIGN 4.6). Pure.

A label never holds a value that moves while the alert fires, or each tick would open a new alert; figures stand in the
description.
"""

import hashlib
from dataclasses import dataclass
from datetime import UTC, datetime
from urllib.parse import quote, urlencode

from collector.values.alerting import Alert, AlertKey, Pairs

ALERT_NAME = "alertname"
NOTIFY = "notify"


@dataclass(frozen=True, slots=True)
class Notice:
    """An alert that fires (`ends_at_s` is None) or has ended; labels sorted by name, none of them empty."""

    labels: Pairs
    annotations: Pairs
    starts_at_s: int
    ends_at_s: int | None
    url: str

    @property
    def fires(self) -> bool:
        return self.ends_at_s is None

    @property
    def fingerprint(self) -> str:
        """Sixteen hex digits over the labels: the same alert in every payload."""
        text = "\0".join(f"{name}\0{value}" for name, value in self.labels)
        return hashlib.sha256(text.encode()).hexdigest()[:16]

    def label(self, name: str) -> str:
        """The label's value; '' when it has none."""
        return dict(self.labels).get(name, "")


def notice(alert: Alert, *, external_url: str) -> Notice | None:
    """What receivers are told of an alert; None of one that never fired, or only looms. `external_url` is where people
    see this collector's pages."""
    if alert.fired_s is None or alert.state == "pending":
        return None
    url = external_url.rstrip("/") + (_page(alert.key) if alert.key.objective else "/")
    annotations = {"dashboard_url": url, **dict(alert.annotations)}
    return Notice(
        labels=tuple(sorted((name, value) for name, value in alert.labels if value)),
        annotations=tuple(sorted((name, value) for name, value in annotations.items() if value)),
        starts_at_s=alert.fired_s,
        ends_at_s=alert.since_s if alert.state == "resolved" else None,
        url=url,
    )


def objective_path(service: str, objective: str, environment: str) -> str:
    """Where this collector has the page about one objective."""
    path = f"/objectives/{quote(service, safe='')}/{quote(objective, safe='')}"
    return f"{path}?{urlencode({'environment': environment})}" if environment else path


def _page(key: AlertKey) -> str:
    return objective_path(key.service, key.objective, key.environment)


def rfc3339(at_s: float) -> str:
    """A moment in UTC, as `2026-01-31T12:00:00Z`."""
    return datetime.fromtimestamp(at_s, UTC).isoformat().replace("+00:00", "Z")
