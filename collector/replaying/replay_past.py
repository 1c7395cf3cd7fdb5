"""The stored past of a spec's objectives, read for a replay: steps of events out of SQL, and what alerts there were.

Events are those that their senders judged where they judged by the very same rule (`objective_hash`). Where there are
none, for that model or from while the rule was another one, they are read off the stored histograms at the objective's
threshold, with what the bucket that the threshold cuts leaves open. What neither can tell, no figure pretends to know:
such an objective is named with the reason.

Only reads, in one snapshot: a collector may be writing all the while.
"""

from bisect import bisect_left
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import accumulate
from typing import Any

import numpy as np
import orjson
from sqlalchemy import func, inspect, select
from sqlalchemy.engine import Connection

from collector import schema
from collector.errors import UnusableDatabaseError
from collector.replaying.replay import Known, Past, Steps
from collector.storage import rows
from collector.storage.recall import steps as step_lengths
from collector.storage.stacks import on_own_stack
from collector.values.deltas import SeriesKey
from collector.values.histogram import Counts
from collector.values.quantile import split_at
from collector.windowing.events import ACTIVE_S
from slo.objective import Objective, Spec
from slo.signals import ALL_MODELS, LATENCY_METRICS, SIGNALS, SOURCES

IDS_PER_QUESTION = 500
ROWS_AT_ONCE = 2_000
LATENCIES = frozenset(metric.sql for metric in LATENCY_METRICS)
NEEDED = (schema.slo_count, schema.rollup, schema.series, schema.known, schema.instance, schema.alert_event)

_Event = tuple[int, int, int, int, int]  # start_s, step_s, good, bad, unsure
_Of = tuple[str, str]  # environment, service
_Spoken = tuple[Sequence[int], Sequence[int]]


@dataclass(frozen=True, slots=True)
class Fired:
    """A firing that the collector of that time stored."""

    environment: str
    service: str
    model: str
    objective: str
    tier: str
    notify: str
    from_s: int
    to_s: int | None


@dataclass(frozen=True, slots=True)
class Untold:
    """An objective that the stored past cannot answer for, and why."""

    service: str
    objective: str
    why: str


@dataclass(frozen=True, slots=True)
class Read:
    """All that was read: from the first step to the end of the last."""

    from_s: int
    to_s: int
    pasts: Sequence[Past]
    untold: Sequence[Untold]
    fired: Sequence[Fired]


def read(connection: Connection, specs: Sequence[Spec]) -> Read:
    """The past of every objective of the specs. Raises `UnusableDatabaseError` for a database without the tables."""
    _check(connection)
    pasts: list[Past] = []
    untold: list[Untold] = []
    for spec in specs:
        known = {of: _known(connection, spec, of) for of in _environments(connection, spec)}
        for objective in spec.objectives:
            mine = list(_pasts(connection, objective, known))
            pasts += mine
            if not mine:
                untold.append(Untold(spec.service, objective.name, _why(objective)))
    fired = list(_fired(connection, {spec.service for spec in specs}))
    from_s, to_s = on_own_stack(connection, lambda: reach(pasts))
    return Read(from_s, to_s, pasts, untold, fired)


def _check(connection: Connection) -> None:
    look = inspect(connection)
    for table in NEEDED:
        if not look.has_table(table.name):
            raise UnusableDatabaseError(f"it holds no table {table.name}: name the database of a collector")
        lacking = {column.name for column in table.columns} - {one["name"] for one in look.get_columns(table.name)}
        if lacking:
            column = f"{table.name}.{min(lacking)}"
            raise UnusableDatabaseError(f"it holds no column {column}: start this release's collector on it once")


def reach(pasts: Sequence[Past]) -> tuple[int, int]:
    """The first and the last moment that anything is known of; both 0 when nothing is."""
    held = [some for past in pasts for some in (past.steps, past.known) if some.start_s.size]
    starts = (int(some.start_s.min()) for some in held)
    ends = (int((some.start_s + some.step_s).max()) for some in held)
    return min(starts, default=0), max(ends, default=0)


def _environments(connection: Connection, spec: Spec) -> list[_Of]:
    """Where the spec's objectives are judged: in its own environment, or wherever its service is heard from."""
    if spec.environment:
        return [(spec.environment, spec.service)]
    table = schema.known
    heard = connection.scalars(select(table.c.environment).where(table.c.service == spec.service).distinct())
    return [(environment, spec.service) for environment in sorted(heard)]


def _known(connection: Connection, spec: Spec, of: _Of) -> Known:
    table, instance = schema.known, schema.instance
    mine = (table.c.environment == of[0], table.c.service == of[1])
    found = connection.execute(select(table.c.start_s, table.c.step_s).where(*mine)).all()
    theirs = (instance.c.environment == of[0], instance.c.service == of[1], instance.c.periodic == 1)
    periodic = connection.scalar(select(func.count()).select_from(instance).where(*theirs))
    starts, lengths = _columns(found, 2)
    return Known(starts, lengths, assumed=spec.elastic or not periodic)


def _pasts(connection: Connection, objective: Objective, known: dict[_Of, Known]) -> Iterator[Past]:
    """The objective over all its models, then for each, in every environment that has any events of it."""
    for of, heard in known.items():
        exact = _counted(connection, of, objective)
        read_off = _read_off(connection, of, objective, exact)
        found = {model: [*exact.get(model, ()), *read_off.get(model, ())] for model in sorted({*exact, *read_off})}
        if not found:
            continue
        basis = "+".join(name for name, some in (("counts", exact), ("histogram", read_off)) if any(some.values()))
        whole = [event for events in found.values() for event in events]
        for model, events in ((ALL_MODELS, whole), *(found.items() if len(found) > 1 else ())):
            yield Past(*of, model, objective, basis, Steps(*_columns(events, 5)), heard)


def _counted(connection: Connection, of: _Of, objective: Objective) -> dict[str, list[_Event]]:
    """Events judged by the same rule; under another name only when none go by the objective's own."""
    table = schema.slo_count
    mine = (
        table.c.environment == of[0],
        table.c.service == of[1],
        table.c.objective_hash == objective.hash,
    )
    names = sorted(connection.scalars(select(table.c.objective).where(*mine).distinct()))
    name = objective.name if objective.name in names else next(iter(names), None)
    columns = (table.c.model, table.c.start_s, table.c.step_s, table.c.good, table.c.bad)
    found: defaultdict[str, list[_Event]] = defaultdict(list)
    for model, *event in connection.execute(select(*columns).where(*mine, table.c.objective == name)):
        found[model].append((*event, 0))
    return dict(found)


def _read_off(
    connection: Connection, of: _Of, objective: Objective, exact: dict[str, list[_Event]]
) -> dict[str, list[_Event]]:
    """Events read off histograms: of each model by its best source, from while its rule was another one."""
    if not _readable(objective):
        return {}
    series = _series(connection, of, objective)
    spoken = {model: _spoken(events) for model, events in exact.items()}
    found: defaultdict[str, list[_Event]] = defaultdict(list)
    for part in _histograms(connection, series):
        wanted = [row for row in part if _is_open(row, spoken.get(series[row.series_id].latency.model))]
        for model, event in on_own_stack(connection, partial(_events, wanted, series, objective)):
            found[model].append(event)
    return dict(found)


def _spoken(events: Iterable[_Event]) -> _Spoken:
    """When the exact counts begin, ascending, and until when those up to each reach."""
    stretches = sorted((start_s, start_s + step_s) for start_s, step_s, *_ in events)
    return [start_s for start_s, _ in stretches], list(accumulate((end_s for _, end_s in stretches), max))


def _is_open(row: rows.Stored, spoken: _Spoken | None) -> bool:
    """Whether no exact count of the row's model speaks for its time. A rule may have been changed and changed back, so
    there are gaps too; what comes soon after a count may be the late value of a request that was counted."""
    starts_s, ends_s = spoken or ((), ())
    begun = bisect_left(starts_s, row.start_s + row.step_s)
    return begun == 0 or bool(ends_s[begun - 1] + ACTIVE_S <= row.start_s)


def _events(
    stored: Sequence[rows.Stored], series: Mapping[int, SeriesKey], objective: Objective
) -> list[tuple[str, _Event]]:
    """What the rows say, with the model of each."""
    found = []
    for row in stored:
        key = series[row.series_id]
        found.append((key.latency.model, (row.start_s, row.step_s, *_split(key, row, objective))))
    return found


def _readable(objective: Objective) -> bool:
    """Whether a histogram can answer: classes and prompt sizes are not in it, nor is anything but a latency."""
    match = objective.match
    return objective.signal in LATENCIES and match.class_ is None and match.prompt_bytes is None


def _why(objective: Objective) -> str:
    if objective.signal not in LATENCIES:
        return "only events judged by this very rule can tell, and none are stored"
    if not _readable(objective):
        return "no events judged by this very rule are stored, and histograms know no class and no prompt size"
    return "neither events nor a histogram of it are stored"


def _series(connection: Connection, of: _Of, objective: Objective) -> dict[int, SeriesKey]:
    """The series to read: of each model those of its best source. Two sources saw the same requests."""
    table = schema.series
    mine = (table.c.environment == of[0], table.c.service == of[1], table.c.signal == objective.signal)
    every = {row.id: rows.series_key(row) for row in connection.execute(select(table).where(*mine))}
    every = {number: key for number, key in every.items() if objective.match.holds_model(key.latency.model)}
    best: dict[str, str] = {}
    for key in sorted(every.values(), key=lambda key: SOURCES.index(key.latency.source)):
        best.setdefault(key.latency.model, key.latency.source)
    return {number: key for number, key in every.items() if best[key.latency.model] == key.latency.source}


def _histograms(connection: Connection, series: Mapping[int, SeriesKey]) -> Iterator[Sequence[rows.Stored]]:
    table = schema.rollup
    ids = sorted(series)
    for step_s in step_lengths(connection, table):
        for part in (ids[at : at + IDS_PER_QUESTION] for at in range(0, len(ids), IDS_PER_QUESTION)):
            question = select(table).where(table.c.step_s == step_s, table.c.series_id.in_(part))
            yield from connection.execute(question).partitions(ROWS_AT_ONCE)


def _split(key: SeriesKey, row: Any, objective: Objective) -> tuple[int, int, int]:
    """Good, bad and unsure events of one row. Who waited longer than the threshold in vain was bad; who gave up before
    it makes no event."""
    assert objective.threshold is not None, "a latency objective has a threshold"
    split = split_at(rows.rollup_histogram(row, key.layout), float(objective.threshold))
    return (0, split.above, split.unsure) if key.censored else (split.below, split.above, split.unsure)


def _columns(events: Iterable[Sequence[Any]], width: int) -> tuple[Counts, ...]:
    table = np.array([tuple(event) for event in events], dtype=np.int64).reshape(-1, width)
    return tuple(table.T)


def _fired(connection: Connection, services: set[str]) -> Iterator[Fired]:
    """Every stored firing of a burn tier, begun and ended."""
    table = schema.alert_event
    names = [signal.alert for signal in SIGNALS.values()]
    mine = (table.c.name.in_(names), table.c.state != "pending", table.c.service.in_(sorted(services)))
    open_: dict[tuple[str, ...], Fired] = {}
    for row in connection.execute(select(table).where(*mine).order_by(table.c.at_s)):
        key = (row.environment, row.service, row.model, row.objective, row.tier)
        if row.state == "firing":
            open_.setdefault(key, Fired(*key, orjson.loads(row.labels).get("notify", ""), row.at_s, None))
        elif (begun := open_.pop(key, None)) is not None:
            yield Fired(*key, begun.notify, begun.from_s, row.at_s)
    yield from open_.values()
