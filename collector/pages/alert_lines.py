"""Alerts as lines of the page: those of one trouble together, the most urgent first; drifts, and who is not told. Pure.

One trouble burns in several tiers and for several models at once; receivers group it, and so does the page: one line
for each alert name and objective, with the tiers and models it holds for.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

import orjson

from collector.judging import drift_alert
from collector.pages.history import Ended
from collector.pages.standing import Tone
from collector.telling.notify import Deliveries
from collector.values import words
from collector.values.alerting import CAUSE, Alert
from collector.values.verdicts import DriftRow
from slo.signals import ALL_MODELS, DRIFT_OF_MIX, SIGNALS

DOES = {"page": "pages", "ticket": "opens a ticket", "none": "is noted"}
"""What an alert does when it fires, by whom it notifies."""
_URGENCY = {"page": 0, "ticket": 1, "notice": 2, "pending": 3}
_REMEDIES = {"refuses": ": look at its address and credentials", "away": ": it is tried again"}
_TONES: dict[str, Tone] = {"page": "bad", "ticket": "warn"}


@dataclass(frozen=True, slots=True)
class Line:
    """One trouble: looming, firing or ended. `who` names its tiers and models, `cause` what is behind it, where
    that was sought."""

    title: str
    of: str
    who: str
    state: str
    tone: Tone
    when: str
    text: str
    url: str
    cause: str = ""


def active(alerts: Iterable[Alert], *, now_s: int) -> list[Line]:
    """The troubles of now, the most urgent first."""
    found: dict[tuple[str, ...], list[Alert]] = {}
    for alert in alerts:
        key = alert.key
        found.setdefault((key.name, key.environment, key.service, key.objective), []).append(alert)
    troubles = [sorted(group, key=_rank) for group in found.values()]
    return [
        _active(group, now_s) for group in sorted(troubles, key=lambda group: (_rank(group[0])[0], group[0].since_s))
    ]


def unheard(deliveries: Mapping[str, Deliveries]) -> list[Line]:
    """The receivers that cannot be told of any alert, those first that somebody must mend."""
    return [
        Line(
            title=name,
            of="",
            who="",
            state=one.standing,
            tone="bad" if one.standing == "refuses" else "warn",
            when="",
            text=f"cannot be told of alerts: {one.last_error}{_REMEDIES[one.standing]}",
            url="",
        )
        for name, one in sorted(deliveries.items(), key=lambda pair: (pair[1].standing != "refuses", pair[0]))
        if one.standing != "listens"
    ]


def drifts(rows: Iterable[Mapping[str, Any]]) -> list[Line]:
    """The latencies that have shifted, those first that shifted most."""
    found = sorted((DriftRow(**row) for row in rows), key=lambda row: -abs(row.effect))
    return [
        Line(
            title=SIGNALS[row.signal].title,
            of=" ".join(filter(None, (row.service, row.environment))),
            who=row.model,
            state="longer" if row.effect > 0 else "shorter",
            tone="warn" if row.effect > 0 and row.kind != DRIFT_OF_MIX else "none",
            when=f"since {clock(row.since_s)}",
            text=drift_alert.told(row),
            url="",
        )
        for row in found
    ]


def ended(past: Iterable[Ended]) -> list[Line]:
    """The troubles that are over, the latest first; alerts of one trouble that overlapped are one."""
    found: list[list[Ended]] = []
    for one in past:
        for group in found:
            if _same_trouble(one, group[0]) and any(_overlap(one, other) for other in group):
                group.append(one)
                break
        else:
            found.append([one])
    return [_over(group) for group in found]


def clock(at_s: int) -> str:
    """A moment for people, in UTC."""
    return datetime.fromtimestamp(at_s, UTC).strftime("%Y-%m-%d %H:%M:%S UTC")


def _state(alert: Alert) -> str:
    if alert.state != "firing":
        return "pending"
    notify = dict(alert.labels).get("notify", "")
    return notify if notify in _TONES else "notice"


def _rank(alert: Alert) -> tuple[int, bool, str]:
    return _URGENCY[_state(alert)], alert.key.model not in ("", ALL_MODELS), alert.key.model


def _active(group: Sequence[Alert], now_s: int) -> Line:
    first, said = group[0], dict(group[0].annotations)
    state = _state(first)
    return Line(
        title=first.key.name,
        of=_of(first.key.service, first.key.objective),
        who=_who((alert.key.tier, alert.key.model) for alert in group if _state(alert) == state),
        state=state,
        tone=_TONES.get(state, "none"),
        when=f"for {words.duration(max(now_s - min(alert.since_s for alert in group), 0))}",
        text=said.get("description") or said.get("summary", ""),
        url=_link(said.get("runbook_url", "")),
        cause=_cause(dict(alert.annotations) for alert in group),
    )


def _over(group: Sequence[Ended]) -> Line:
    first = min(group, key=lambda one: one.model not in ("", ALL_MODELS))
    said = orjson.loads(first.annotations)
    fired_s, ended_s = min(one.fired_s for one in group), max(one.ended_s for one in group)
    return Line(
        title=first.name,
        of=_of(first.service, first.objective),
        who=_who((one.tier, one.model) for one in group),
        state="ended",
        tone="none",
        when=f"{clock(fired_s)}, lasted {words.duration(ended_s - fired_s)}",
        text=said.get("description") or said.get("summary", ""),
        url=_link(said.get("runbook_url", "")),
        cause=_cause(orjson.loads(one.annotations) for one in (first, *group)),
    )


def _cause(said: Iterable[Mapping[str, str]]) -> str:
    """What the first of them says that knows it."""
    return next((text for one in said if (text := one.get(CAUSE))), "")


def _link(url: str) -> str:
    """A runbook that is named by a path in a repository is no page of this collector."""
    return url if url.startswith(("http://", "https://")) else ""


def _same_trouble(one: Ended, other: Ended) -> bool:
    return (one.name, one.service, one.objective) == (other.name, other.service, other.objective)


def _overlap(one: Ended, other: Ended) -> bool:
    return one.fired_s <= other.ended_s and other.fired_s <= one.ended_s


def _of(service: str, objective: str) -> str:
    return " · ".join(part for part in (service, objective) if part)


def _who(pairs: Iterable[tuple[str, str]]) -> str:
    """Tiers, then models; all models together need no name."""
    found = list(pairs)
    tiers = dict.fromkeys(tier for tier, _ in found if tier)
    models = dict.fromkeys(model for _, model in found if model not in ("", ALL_MODELS))
    return " · ".join(part for part in (", ".join(tiers), ", ".join(models)) if part)
