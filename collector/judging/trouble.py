"""Alerts on a state rather than a burn: an engine that stalled, telemetry that went absent (DESIGN 4.6).

Both speak of a service of the specs as a whole, whatever its models and objectives. Their names and the numbers that
decide them stand in `slo/trouble.py`, which the Prometheus rules of `alerts` read too.
"""

from collections.abc import Iterator, Mapping
from dataclasses import replace

from collector.judging.trouble_alert import Said, named, spec_of, trouble_alert
from collector.values.alerting import Alert, AlertKey, Wanted
from collector.windowing.fleet import Life, Service
from collector.windowing.windows import Windows
from slo.objective import Spec
from slo.signals import LAST_TOKEN_AGE, OVERDUE
from slo.trouble import (
    ENGINE_STALLED,
    FORGOTTEN_S,
    SILENT_S,
    STALLED_AGE_S,
    STALLED_OVERDUE,
    TELEMETRY_ABSENT,
    TROUBLES,
)

PARTIAL = "partial"
LISTENED_S = 60
"""How long a collector listens before it calls anybody silent: it may be the one that was away."""


def wanted(windows: Windows, *, alerts: Mapping[AlertKey, Alert], now_s: int) -> Iterator[Wanted]:
    """The alerts of this kind that should fire now. `alerts` are those that were pending or firing."""
    for environment, service in windows.services():
        spec = spec_of(windows.plan, (environment, service))
        if spec is None:
            continue
        stalled = _stalled_instances(windows, (environment, service), now_s)
        if stalled:
            yield _stalled(spec, environment, stalled)
        life = windows.fleet.life((environment, service))
        if life is not None and not spec.elastic:
            yield from _absent(windows, spec, AlertKey(TELEMETRY_ABSENT, environment, service), life, alerts=alerts)


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


def _stalled(spec: Spec, environment: str, stalled: Mapping[str, int]) -> Wanted:
    listed = named(f"{instance or 'unnamed'} ({count} overdue)" for instance, count in stalled.items())
    return trouble_alert(
        spec,
        AlertKey(ENGINE_STALLED, environment, spec.service),
        TROUBLES[ENGINE_STALLED],
        Said(
            f"An engine of {spec.service} holds requests and gives no token.",
            f"{spec.service}: {len(stalled)} instance(s) hold requests past their deadline and have given no token for "
            f"{STALLED_AGE_S} s or longer: {listed}.",
        ),
    )


def _absent(
    windows: Windows, spec: Spec, key: AlertKey, life: Life, *, alerts: Mapping[AlertKey, Alert]
) -> Iterator[Wanted]:
    now_s, service = windows.now_s, spec.service
    listened = now_s - windows.began_s >= LISTENED_S
    silence_s = now_s - life.last_s
    if SILENT_S <= silence_s < FORGOTTEN_S and (listened or key in alerts):
        said = Said(
            f"Nothing has been heard of {service} for five minutes.",
            f"{service}: every instance is silent, so nothing is known of its objectives: the service, its sidecars, "
            "or the way from them is down.",
        )
        yield trouble_alert(spec, key, TROUBLES[key.name], said)
    lost = life.lost(now_s=now_s, silent_s=SILENT_S) if silence_s < SILENT_S else 0
    part = replace(key, tier=PARTIAL)
    if lost and (listened or part in alerts):
        said = Said(
            f"Some instances of {service} have not been heard for five minutes.",
            f"{service}: {lost} instance(s) fell silent in the last hour and no new one took over.",
        )
        yield trouble_alert(spec, part, replace(TROUBLES[key.name], notify="ticket"), said)
