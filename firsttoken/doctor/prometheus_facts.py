"""What a Prometheus answers through its HTTP API, as values."""

import re
from collections.abc import Iterable, Iterator, Mapping
from urllib.parse import urlencode

from firsttoken.doctor.address import plain_text
from firsttoken.doctor.ask import Answer
from firsttoken.doctor.facts import LoadedGroup, LoadedRule, PrometheusFacts, ScrapeTarget
from firsttoken.json_fields import Object, moment_at, number_at, number_of, object_at, objects_at, text_at
from slo.promql import HASH_LABEL, INSTANCE_LABEL, JOB_LABEL, OBJECTIVE_LABEL, SERVICE_KEY, by
from slo.quantity import UNIT_S
from slo.signals import HEARTBEAT, IN_FLIGHT, SLO_EVENTS, TICKS

SERIES_KEY = (*SERVICE_KEY, OBJECTIVE_LABEL, HASH_LABEL, JOB_LABEL, INSTANCE_LABEL)
SEEN_S = 600
"""How far back a metric counts as one that there is."""
_DURATION = re.compile(r"([0-9]{1,12})(ms|y|w|d|h|m|s)")
_SECONDS = {unit: float(seconds) for unit, seconds in UNIT_S.items()} | {"y": 365 * 86400.0}


def _query(promql: str) -> str:
    return f"/api/v1/query?{urlencode({'query': promql})}"


def _heard(metric: str) -> str:
    return _query(f"group {by((JOB_LABEL, INSTANCE_LABEL))} (last_over_time({metric}[1d]))")


def paths(now_s: float) -> Mapping[str, str]:
    """What to ask, by what it is for."""
    return {
        "version": "/api/v1/status/buildinfo",
        "runtime": "/api/v1/status/runtimeinfo",
        "targets": "/api/v1/targets?state=active",
        "rules": "/api/v1/rules",
        "alertmanagers": "/api/v1/alertmanagers",
        "names": f"/api/v1/label/__name__/values?{urlencode({'start': int(now_s) - SEEN_S})}",
        "events": _query(f"count {by(SERIES_KEY)} ({SLO_EVENTS.prometheus})"),
        "in_flight": _query(f"count {by((*SERVICE_KEY, JOB_LABEL, INSTANCE_LABEL))} ({IN_FLIGHT.prometheus})"),
        "sidecars": _heard(HEARTBEAT.prometheus),
        "collectors": _heard(TICKS.prometheus),
        "time": _query("time()"),
    }


def prometheus_facts(url: str, answers: Mapping[str, Answer]) -> PrometheusFacts:
    """The facts of the answers to `paths`."""
    runtime, build = (object_at(answers[what].json, "data") for what in ("runtime", "version"))
    alertmanagers = object_at(answers["alertmanagers"].json, "data")
    return PrometheusFacts(
        url,
        error=_error(answers["version"]),
        version=text_at(build, "version"),
        is_itself=_is_itself(build),
        retention_s=_retention_s(text_at(runtime, "storageRetention")),
        loaded_s=moment_at(runtime, "lastConfigTime"),
        is_reloaded=runtime.get("reloadConfigSuccess") is not False,
        targets=tuple(_targets(answers["targets"].json)),
        groups=tuple(_groups(answers["rules"].json)),
        alertmanagers=tuple(_urls(alertmanagers, "activeAlertmanagers")),
        dropped_alertmanagers=tuple(_urls(alertmanagers, "droppedAlertmanagers")),
        names=frozenset(_texts(answers["names"].json)),
        events=tuple(_labels(answers["events"].json)),
        in_flight=tuple(_labels(answers["in_flight"].json)),
        sidecars=_instances(answers["sidecars"].json),
        collectors=_instances(answers["collectors"].json),
        offset_s=_offset_s(answers["time"]),
    )


def _error(version: Answer) -> str:
    if version.trouble:
        return version.trouble
    is_one = bool(object_at(version.json, "data").get("version"))
    return "" if is_one else "is no Prometheus: it has no /api/v1/status/buildinfo"


def _is_itself(build: Object) -> bool:
    """Mimir names itself, VictoriaMetrics tells no Go, and Thanos has not come to a release 1."""
    return "application" not in build and "goVersion" in build and not text_at(build, "version").startswith("0.")


def seconds(text: str) -> float | None:
    """Seconds of a duration as Prometheus writes it: `15d`, `1m30s`; None for what is none."""
    parts = _DURATION.findall(text)
    if not parts or "".join(number + unit for number, unit in parts) != text:
        return None
    return sum(int(number) * _SECONDS[unit] for number, unit in parts)


def _retention_s(text: str) -> float | None:
    """Of `15d`, or `15d or 512MiB`."""
    return next((found for part in text.split(" or ") if (found := seconds(part)) is not None), None)


def _targets(answer: object) -> Iterator[ScrapeTarget]:
    for one in objects_at(object_at(answer, "data"), "activeTargets"):
        labels = object_at(one, "labels")
        yield ScrapeTarget(
            text_at(labels, JOB_LABEL),
            text_at(labels, INSTANCE_LABEL),
            text_at(one, "scrapeUrl"),
            text_at(one, "health"),
            plain_text(text_at(one, "lastError")),
            seconds(text_at(one, "scrapeInterval")),
        )


def _groups(answer: object) -> Iterator[LoadedGroup]:
    for one in objects_at(object_at(answer, "data"), "groups"):
        name = text_at(one, "name")
        rules = tuple(_rule(name, rule) for rule in objects_at(one, "rules"))
        yield LoadedGroup(name, number_at(one, "interval") or 0.0, number_at(one, "evaluationTime") or 0.0, rules)


def _rule(group: str, rule: Object) -> LoadedRule:
    return LoadedRule(
        group,
        text_at(rule, "name"),
        rule.get("type") == "alerting",
        text_at(rule, "query"),
        _texts_of(object_at(rule, "labels")),
        text_at(rule, "health"),
        plain_text(text_at(rule, "lastError")),
        min(filter(None, (moment_at(one, "activeAt") for one in objects_at(rule, "alerts"))), default=None),
    )


def _texts_of(item: Object) -> Mapping[str, str]:
    return {str(key): value for key, value in item.items() if isinstance(value, str)}


def _urls(item: Object, key: str) -> Iterator[str]:
    return (text_at(one, "url") for one in objects_at(item, key))


def _texts(answer: object) -> Iterator[str]:
    listed = answer.get("data") if isinstance(answer, dict) else None
    return (one for one in listed if isinstance(one, str)) if isinstance(listed, list) else iter(())


def _labels(answer: object) -> Iterable[Mapping[str, str]]:
    return (_texts_of(object_at(one, "metric")) for one in objects_at(object_at(answer, "data"), "result"))


def _instances(answer: object) -> frozenset[tuple[str, str]]:
    return frozenset((one.get(JOB_LABEL, ""), one.get(INSTANCE_LABEL, "")) for one in _labels(answer))


def _offset_s(answer: Answer) -> float | None:
    """How far the clock by which it evaluates is ahead of ours."""
    found = object_at(answer.json, "data").get("result")
    at_s = number_of(found[1]) if isinstance(found, list) and len(found) == 2 else None
    return None if at_s is None else at_s - (answer.sent_s + answer.received_s) / 2
