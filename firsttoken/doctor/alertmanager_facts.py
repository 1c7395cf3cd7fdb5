"""What an Alertmanager answers through its v2 API, as values. Its configuration comes with the secrets masked."""

import yaml

from firsttoken.doctor.ask import Answer
from firsttoken.doctor.facts import AlertmanagerFacts
from firsttoken.json_fields import Object, moment_at, object_at, object_of, objects_of, text_at

NO_ALERTMANAGER = "is no Alertmanager: it has no /api/v2/status"
PATHS = ("/api/v2/status", "/api/v2/alerts?silenced=true&inhibited=true")


def alertmanager_facts(url: str, answers: tuple[Answer, ...], offset_s: float | None) -> AlertmanagerFacts:
    """The facts of the answers to `PATHS`, in that order."""
    status, alerts = answers
    told = object_of(status.json)
    names = (text_at(object_at(one, "labels"), "alertname") for one in objects_of(alerts.json))
    return AlertmanagerFacts(
        url,
        error=status.trouble or ("" if "config" in told else NO_ALERTMANAGER),
        config=_config(status),
        alerts=frozenset(names),
        since_s=moment_at(told, "uptime"),
        offset_s=offset_s,
    )


def _config(status: Answer) -> Object | None:
    text = text_at(object_at(status.json, "config"), "original")
    try:
        found = yaml.safe_load(text)
    except (yaml.YAMLError, ValueError, RecursionError):  # a date that is none, and lists without end
        return None
    return found if isinstance(found, dict) else None
