"""What a planner found, as one row of `capacity_result`: dashboards and alerts read it there.

`refuse_unfit` before a run of a quarter of an hour, `keep` after it, `last_certified` to go on from there. A run of
`certify`, `size` or `batch` gives its whole JSON; what the row's columns hold is taken from there by the names that
they have in it.
"""

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal
from urllib.parse import urlsplit, urlunsplit

import orjson

from capacity.stored.database import asked
from capacity.stored.recorded import Whose

if TYPE_CHECKING:
    from sqlalchemy.engine import URL, Connection

FIGURES = ("certified_rps", "refuted_rps", "headroom")
COUNTS = ("chosen_batch", "feasible_min", "feasible_max", "efficient_batch", "replicas")


@dataclass(frozen=True, slots=True)
class Found:
    """A result and what it is of. `target` is empty where no server was asked."""

    at_s: int
    kind: Literal["certify", "size", "batch"]
    environment: str
    service: str
    model: str
    target: str
    result: Mapping[str, object]


def refuse_unfit(database: "URL") -> None:
    """Raise DatabaseError unless results could be kept there."""
    asked(database, lambda _: None)


def keep(database: "URL", found: Found) -> None:
    """Have the result in the database; one of the same moment is replaced. Raises DatabaseError."""
    row = _row(found)

    def write(connection: "Connection") -> None:
        from collector.schema import capacity_result as table

        connection.execute(table.delete().where(*(column == row[column.name] for column in table.primary_key)))
        connection.execute(table.insert().values(row))

    asked(database, write)


def last_certified(database: "URL", whose: Whose) -> object:
    """The whole result of the last certification of a service that certified a rate; None where there is none. Raises
    DatabaseError."""

    def read(connection: "Connection") -> str | None:
        from sqlalchemy import select

        from collector.schema import capacity_result

        c = capacity_result.c
        mine = [c.environment == whose.environment, c.service == whose.service, c.kind == "certify"]
        of_model = [] if whose.model is None else [c.model == whose.model]
        question = select(c.result).where(*mine, *of_model, c.certified_rps.is_not(None))
        return connection.scalars(question.order_by(c.at_s.desc()).limit(1)).first()

    text = asked(database, read)
    return None if text is None else orjson.loads(text)


def _row(found: Found) -> dict[str, object]:
    result = found.result
    concurrency = result.get("peak_concurrency")
    mean = concurrency.get("mean") if isinstance(concurrency, Mapping) else concurrency
    return {
        "at_s": found.at_s,
        "environment": found.environment,
        "service": found.service,
        "model": found.model,
        "kind": found.kind,
        "target": without_secrets(found.target),
        "verdict": str(result["verdict"]),
        "binding": str(result.get("binding") or ""),
        "peak_concurrency": _number(mean),
        **{name: _number(result.get(name)) for name in FIGURES},
        **{name: _whole(result.get(name)) for name in COUNTS},
        "result": orjson.dumps(dict(result)).decode(),
    }


def without_secrets(url: str) -> str:
    """A URL as others may see it: without credentials, query and fragment."""
    parts = urlsplit(url)
    return urlunsplit((parts.scheme, parts.netloc.rpartition("@")[2], parts.path, "", ""))


def _number(value: object) -> float | None:
    return float(value) if isinstance(value, int | float) and math.isfinite(value) else None


def _whole(value: object) -> int | None:
    return value if isinstance(value, int) else None
