"""The rows of `alert_cause`: why each alert pended or fired, one for each time that it did."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import orjson
from sqlalchemy import Row, func, select, tuple_
from sqlalchemy.engine import Connection

from collector import schema
from collector.judging.cause import Cause
from collector.storage import upsert
from collector.storage.upsert import Upsert
from collector.values.alerting import CAUSE, AlertKey

KEYS_PER_QUESTION = 100
KEY = ("environment", "service", "name", "model", "objective", "tier")
_TABLE = schema.alert_cause
_WRITE = Upsert(
    _TABLE,
    dict.fromkeys(("at_s", "kind", "confidence", "instance", "evidence", "length_s", "before_s"), upsert.replace),
)


@dataclass(frozen=True, slots=True)
class Finding:
    """The cause of one alert since it left ok at `since_s`: what the `length_s` before `at_s` show against as long a
    stretch that ended at `before_s`."""

    key: AlertKey
    since_s: int
    at_s: int
    cause: Cause
    length_s: int
    before_s: int


def write(connection: Connection, findings: Iterable[Finding]) -> None:
    """Keep them as they are now."""
    _WRITE.write(connection, sorted(map(_row, findings)))


def latest(connection: Connection) -> dict[AlertKey, Finding]:
    """What was found of each alert that pends or fires, and says so."""
    present, c = schema.alert, _TABLE.c
    active = select(*(present.c[name] for name in KEY), present.c.annotations).where(present.c.state != "resolved")
    said = {AlertKey(**dict(zip(KEY, row[:-1], strict=True))): row.annotations for row in connection.execute(active)}
    known = [key for key, text in said.items() if CAUSE in orjson.loads(text)]
    key = [c[name] for name in KEY]
    found: dict[AlertKey, Finding] = {}
    for start in range(0, len(known), KEYS_PER_QUESTION):
        mine = [tuple(getattr(one, name) for name in KEY) for one in known[start : start + KEYS_PER_QUESTION]]
        last = select(*key, func.max(c.since_s)).where(tuple_(*key).in_(mine)).group_by(*key)
        rows = connection.execute(select(_TABLE).where(tuple_(*key, c.since_s).in_(last)))
        found |= {one.key: one for one in map(_finding, rows)}
    return found


def told(rows: Sequence[Mapping[str, Any]], found: Mapping[AlertKey, Finding]) -> list[dict[str, Any]]:
    """Rows of `alert` as the API tells them, each with its cause, None where none was sought."""
    return [{**row, "cause": _plain(found.get(AlertKey(**{name: row[name] for name in KEY})))} for row in rows]


def _plain(found: Finding | None) -> dict[str, Any] | None:
    if found is None:
        return None
    cause = found.cause
    figures = {"kind": cause.kind, "confidence": cause.confidence, "instance": cause.instance}
    return {**figures, "evidence": list(cause.evidence), "at_s": found.at_s, "before_s": found.before_s}


def _row(one: Finding) -> tuple[Any, ...]:
    key, cause = one.key, one.cause
    names = key.environment, key.service, key.name, key.model, key.objective, key.tier
    said = orjson.dumps(cause.evidence).decode()
    figures = one.at_s, cause.kind, cause.confidence, cause.instance, said, one.length_s, one.before_s
    return (one.since_s, *names, *figures)


def _finding(row: Row[Any]) -> Finding:
    key = AlertKey(row.name, row.environment, row.service, row.model, row.objective, row.tier)
    cause = Cause(row.kind, row.confidence, tuple(orjson.loads(row.evidence)), row.instance)
    return Finding(key, row.since_s, row.at_s, cause, row.length_s, row.before_s)
