"""Alertmanager's webhook payload (version 4) without an Alertmanager: pure grouping of notices, and one body a group.

The idea of the generated Alertmanager routes holds here too: one incident, one page. Pages are grouped by environment
and service alone, so further objectives, tiers and models join the group that is already told; tickets are grouped by
objective, those of none by the alert; what notifies nobody is left out. A group is told when its first notice fires and
once when none fires any more; one of tickets also when a ticket joins it, for that is work of its own. What the routes
inhibit stays quiet here: a ticket while a page of the same objective fires, whatever its model; one that speaks of the
service as a whole while any page of the service does; one of a burn while telemetry is absent.

A page that began and ended while its receiver could not be told is told afterwards, once, as resolved: nobody is to
learn of an incident from the budget it cost. A ticket that is over asks nothing of anybody and is left out.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Literal

from collector.telling.notice import ALERT_NAME, NOTIFY, Notice, rfc3339
from slo.promql import TIER_LABEL
from slo.signals import ENVIRONMENT_LABEL, LABELS, OBJECTIVE, SERVICE_LABEL
from slo.trouble import TELEMETRY_ABSENT

_OBJECTIVE_LABEL = LABELS[OBJECTIVE]
_SERVICE_KEY = (ENVIRONMENT_LABEL, SERVICE_LABEL)
_TOLD = ("page", "ticket")
_NEVER_ENDS = "0001-01-01T00:00:00Z"

MAX_ALERTS = 100
"""Alerts in one payload; how many more there are stands in `truncatedAlerts`."""
WAS_FIRING = "was_firing"
"""The annotation of an alert that is told only after it has ended."""

Status = Literal["firing", "resolved"]


@dataclass(frozen=True, slots=True)
class Told:
    """What a receiver knows of a group: its last status, and of which moment; an end that came later is news to it."""

    status: Status
    until_s: int


@dataclass(frozen=True, slots=True)
class Group:
    """The notices that are told together; `key` is the same for the same group at any time."""

    key: str
    notify: str
    labels: tuple[tuple[str, str], ...]
    notices: tuple[Notice, ...]

    @property
    def status(self) -> Status:
        return "firing" if any(notice.fires for notice in self.notices) else "resolved"


def groups(notices: Iterable[Notice]) -> tuple[Group, ...]:
    """The notices by group, in a stable order."""
    found: dict[str, list[Notice]] = {}
    for notice in _not_held([notice for notice in notices if notice.label(NOTIFY) in _TOLD]):
        found.setdefault(_key(notice), []).append(notice)
    return tuple(_group(key, found[key]) for key in sorted(found))


def _not_held(notices: Sequence[Notice]) -> Iterator[Notice]:
    """All but the tickets that a page holds back while it fires."""
    pages = [notice for notice in notices if notice.fires and notice.label(NOTIFY) == "page"]
    held = {(_service(page), objective) for page in pages for objective in ("", page.label(_OBJECTIVE_LABEL))}
    silent = {_service(page) for page in pages if page.label(ALERT_NAME) == TELEMETRY_ABSENT}
    for notice in notices:
        is_of_burn = bool(notice.label(TIER_LABEL))
        service, objective = _service(notice), notice.label(_OBJECTIVE_LABEL)
        is_held = (service, objective) in held or (is_of_burn and service in silent)
        if not (is_held and notice.fires and notice.label(NOTIFY) == "ticket"):
            yield notice


def due(group: Group, told: Told) -> bool:
    """Whether a group of which `told` was told last is to be told now."""
    if group.status != told.status:
        return True
    return any(_is_late(notice, group, told) or _joins(notice, group, told) for notice in group.notices)


def now_told(group: Group, *, now_s: int) -> Told:
    """What is known of the group by whom it was just told to."""
    ends_s = [notice.ends_at_s for notice in group.notices if notice.ends_at_s is not None]
    return Told(group.status, now_s if group.status == "firing" else max(ends_s))


def payload(group: Group, told: Told, *, receiver: str, external_url: str) -> dict[str, object]:
    """The body to POST for one group of which `told` was told last."""
    shown = [_worded(notice, is_late=_is_late(notice, group, told)) for notice in group.notices[:MAX_ALERTS]]
    return {
        "version": "4",
        "groupKey": group.key,
        "truncatedAlerts": len(group.notices) - len(shown),
        "status": group.status,
        "receiver": receiver,
        "groupLabels": dict(group.labels),
        "commonLabels": _common([dict(notice.labels) for notice in shown]),
        "commonAnnotations": _common([dict(notice.annotations) for notice in shown]),
        "externalURL": external_url,
        "alerts": [_alert(notice) for notice in shown],
    }


def _is_late(notice: Notice, group: Group, told: Told) -> bool:
    """Whether this page is over and was never told, and nothing of its group fires now."""
    silent = group.status == told.status == "resolved" and group.notify == "page"
    return silent and notice.ends_at_s is not None and notice.ends_at_s > told.until_s


def _joins(notice: Notice, group: Group, told: Told) -> bool:
    """Whether this ticket began to fire after its group was told."""
    return group.notify == "ticket" and notice.fires and told.status == "firing" and notice.starts_at_s > told.until_s


def _worded(notice: Notice, *, is_late: bool) -> Notice:
    if not is_late or notice.ends_at_s is None:
        return notice
    span = f"from {rfc3339(notice.starts_at_s)} to {rfc3339(notice.ends_at_s)}, while this receiver could not be told"
    return replace(notice, annotations=tuple(sorted((*notice.annotations, (WAS_FIRING, span)))))


def _grouped_by(notice: Notice) -> tuple[str, ...]:
    """The labels that notices of its group have alike."""
    if notice.label(NOTIFY) == "page":
        return _SERVICE_KEY
    return (*_SERVICE_KEY, _OBJECTIVE_LABEL) if notice.label(_OBJECTIVE_LABEL) else (ALERT_NAME, *_SERVICE_KEY)


def _key(notice: Notice) -> str:
    of = ",".join(f"{name}={notice.label(name)}" for name in _grouped_by(notice))
    return f"{notice.label(NOTIFY)}:{of}"


def _service(notice: Notice) -> tuple[str, ...]:
    return tuple(notice.label(name) for name in _SERVICE_KEY)


def _group(key: str, notices: list[Notice]) -> Group:
    notify = notices[0].label(NOTIFY)
    labels = tuple((name, notices[0].label(name)) for name in _grouped_by(notices[0]) if notices[0].label(name))
    firing_first = sorted(notices, key=lambda notice: (not notice.fires, notice.starts_at_s, notice.labels))
    return Group(key, notify, labels, tuple(firing_first))


def _common(maps: Sequence[Mapping[str, str]]) -> dict[str, str]:
    first, rest = maps[0], maps[1:]
    return {name: value for name, value in first.items() if all(other.get(name) == value for other in rest)}


def _alert(notice: Notice) -> dict[str, object]:
    return {
        "status": "firing" if notice.fires else "resolved",
        "labels": dict(notice.labels),
        "annotations": dict(notice.annotations),
        "startsAt": rfc3339(notice.starts_at_s),
        "endsAt": _NEVER_ENDS if notice.ends_at_s is None else rfc3339(notice.ends_at_s),
        "generatorURL": notice.url,
        "fingerprint": notice.fingerprint,
    }
