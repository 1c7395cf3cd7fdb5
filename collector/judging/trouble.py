"""Alerts on a state rather than a burn: an engine that stalled, telemetry that went absent (DESIGN 4.6).

Both speak of a service of the specs as a whole, whatever its models and objectives. Their names and the numbers that
decide them stand in `slo/trouble.py`, which the Prometheus rules of `alerts` read too.
"""

from collections.abc import Iterator, Mapping

from collector.values import alerting
from collector.values.alerting import Alert, AlertKey, Wanted
from collector.windowing.fleet import Life, Service
from collector.windowing.windows import Windows
from slo.signals import LAST_TOKEN_AGE, OVERDUE
from slo.trouble import ENGINE_STALLED, FORGOTTEN_S, SILENT_S, STALLED_AGE_S, STALLED_OVERDUE, TELEMETRY_ABSENT

PARTIAL = "partial"
LISTENED_S = 60
"""How long a collector listens before it calls anybody silent: it may be the one that was away."""


def wanted(windows: Windows, *, alerts: Mapping[AlertKey, Alert], now_s: int) -> Iterator[Wanted]:
    """The alerts of this kind that should fire now. `alerts` are those that were pending or firing."""
    for environment, service in windows.services():
        spec = windows.plan.spec(service)
        if spec is None or spec.environment not in ("", environment):
            continue
        stalled = _stalled_instances(windows, (environment, service), now_s)
        if stalled:
            yield _stalled(environment, service, stalled)
        life = windows.fleet.life((environment, service))
        if life is not None and not spec.elastic:
            yield from _absent(windows, environment, service, life, alerts=alerts, now_s=now_s)


def _stalled_instances(windows: Windows, service: Service, now_s: int) -> dict[str, int]:
    """Overdue requests of each instance that holds enough of them and has given no token for too long.

    A request can be overdue for its first token and for its end: the larger count of the two decides.
    """
    overdue: dict[tuple[str, str], float] = {}
    for reading in windows.fleet.readings(service, OVERDUE.sql, now_s=now_s):
        at = reading.instance, reading.attribute
        overdue[at] = overdue.get(at, 0.0) + reading.value
    ages = {
        reading.instance: reading.value for reading in windows.fleet.readings(service, LAST_TOKEN_AGE.sql, now_s=now_s)
    }
    most: dict[str, int] = {}
    for (instance, _), count in overdue.items():
        if count >= STALLED_OVERDUE and ages.get(instance, 0.0) >= STALLED_AGE_S:
            most[instance] = max(most.get(instance, 0), round(count))
    return most


def _stalled(environment: str, service: str, stalled: dict[str, int]) -> Wanted:
    key = AlertKey(ENGINE_STALLED, environment, service)
    listed = ", ".join(f"{instance or 'unnamed'} ({count} overdue)" for instance, count in sorted(stalled.items())[:5])
    return _page(
        key,
        summary=f"An engine of {service} holds requests and gives no token.",
        description=(
            f"{service}: {len(stalled)} instance(s) hold requests past their deadline and have given no token for "
            f"{STALLED_AGE_S} s or longer: {listed}."
        ),
    )


def _absent(
    windows: Windows, environment: str, service: str, life: Life, *, alerts: Mapping[AlertKey, Alert], now_s: int
) -> Iterator[Wanted]:
    key = AlertKey(TELEMETRY_ABSENT, environment, service)
    listened = now_s - windows.began_s >= LISTENED_S
    silence_s = now_s - life.last_s
    if SILENT_S <= silence_s < FORGOTTEN_S and (listened or key in alerts):
        yield _page(
            key,
            summary=f"Nothing has been heard of {service} for five minutes.",
            description=(
                f"{service}: every instance is silent, so nothing is known of its objectives: the service, its "
                "sidecars, or the way from them is down."
            ),
        )
    lost = life.lost(now_s=now_s, silent_s=SILENT_S) if silence_s < SILENT_S else 0
    part = AlertKey(TELEMETRY_ABSENT, environment, service, tier=PARTIAL)
    if lost and (listened or part in alerts):
        routed: dict[str, str | None] = {"severity": "warning", "notify": "ticket"}
        yield Wanted(
            part,
            "firing",
            alerting.labels(key, routed),
            alerting.annotations(
                summary=f"Some instances of {service} have not been heard for five minutes.",
                description=f"{service}: {lost} instance(s) fell silent in the last hour and no new one took over.",
                runbook_url=alerting.runbook(part.name),
            ),
        )


def _page(key: AlertKey, *, summary: str, description: str) -> Wanted:
    routed: dict[str, str | None] = {"severity": "critical", "notify": "page"}
    told = alerting.annotations(summary=summary, description=description, runbook_url=alerting.runbook(key.name))
    return Wanted(key, "firing", alerting.labels(key, routed), told)
