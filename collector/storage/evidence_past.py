"""What the tables know of one service over a stretch of time, for the search for a burn's cause.

Each table is asked once a stretch (and step that it holds), by its key, and the database adds up: what comes back is a
row an instance and name, however long the stretch. Only how many were in flight at its two ends is read row by row, of
`MAX_ROWS` at most.
"""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import orjson
from sqlalchemy import ColumnElement, Select, Table, func, select
from sqlalchemy.engine import Connection

from collector import schema
from collector.judging.evidence import COUNTERS, ENDS, GAUGES, LATENCIES, Latency, Level, Seen, Total
from collector.judging.quiet import Step, Stretch
from collector.storage.recall import steps
from collector.values.measurement import NS
from slo.signals import ALL_MODELS, CLASS, LABELS, SYNTHETIC_CLASS, UNKNOWN_MODEL

MAX_SERIES = 2_000
"""Latencies of all instances; further ones are not looked at."""
MAX_ROWS = 20_000
"""Of the gauges of `ENDS`, of all instances and steps of a stretch: beyond, how they stood is not known."""


@dataclass(frozen=True, slots=True)
class Whose:
    """A service, and one of its models or `*`."""

    environment: str
    service: str
    model: str

    def holds(self, table: Table) -> list[ColumnElement[bool]]:
        """The condition on its rows. What an engine of several models says of itself names none of them."""
        mine = [table.c.environment == self.environment, table.c.service == self.service]
        if self.model != ALL_MODELS:
            mine.append(table.c.model.in_(("", UNKNOWN_MODEL, self.model)))
        return mine


def events(connection: Connection, whose: Whose, objective: str, span: Stretch) -> list[Step]:
    """Good and bad of an objective, step by step."""
    table = schema.slo_count
    mine = [table.c.environment == whose.environment, table.c.service == whose.service, table.c.objective == objective]
    if whose.model != ALL_MODELS:
        mine.append(table.c.model == whose.model)
    question = select(table.c.start_s, func.sum(table.c.good), func.sum(table.c.bad)).group_by(table.c.start_s)
    return [
        Step(at_s, int(good), int(bad)) for at_s, good, bad in _asked(connection, table, question.where(*mine), span)
    ]


def seen(connection: Connection, whose: Whose, span: Stretch) -> Seen:
    """What is known of a stretch."""
    return Seen(
        span.length_s,
        tuple(_totals(connection, whose, span)),
        tuple(_levels(connection, whose, span)),
        tuple(_latencies(connection, whose, span)),
    )


def _totals(connection: Connection, whose: Whose, span: Stretch) -> Iterator[Total]:
    table = schema.counter
    key = table.c.instance, table.c.name, table.c.attributes
    question = select(*key, func.sum(table.c.value)).where(*whose.holds(table), table.c.name.in_(COUNTERS))
    for instance, name, text, value in _asked(connection, table, question.group_by(*key), span):
        attributes = orjson.loads(text)
        if attributes.get(LABELS[CLASS]) != SYNTHETIC_CLASS:
            yield Total(instance, name, tuple(sorted(attributes.items())), value)


def _levels(connection: Connection, whose: Whose, span: Stretch) -> Iterator[Level]:
    table = schema.gauge
    key = table.c.instance, table.c.model, table.c.name, table.c.attribute
    samples = func.sum(table.c.samples)
    mean = func.sum(table.c.mean * table.c.samples) / samples
    figures = mean, func.max(table.c.max), samples, func.max(table.c.last_ns)
    question = select(*key, *figures).where(*whose.holds(table), table.c.name.in_(GAUGES)).group_by(*key)
    ends = _ends(connection, whose, span)
    for instance, model, name, attribute, mean, most, count, at_ns in _asked(connection, table, question, span):
        first, last = ends.get((instance, model, name), (0.0, 0.0))
        yield Level(instance, model, name, attribute, mean, most, int(count), at_ns / NS, first, last)


def _ends(connection: Connection, whose: Whose, span: Stretch) -> dict[tuple[str, str, str], tuple[float, float]]:
    """How gauges of each instance and model stood in the first step and in the last."""
    table = schema.gauge
    columns = table.c.instance, table.c.model, table.c.name, table.c.start_s, table.c.last
    question = select(*columns).where(*whose.holds(table), table.c.name.in_(ENDS)).limit(MAX_ROWS)
    rows = list(_asked(connection, table, question, span))
    if len(rows) >= MAX_ROWS:
        return {}
    ends: dict[tuple[str, str, str], tuple[float, float]] = {}
    for instance, model, name, _, last in sorted(rows, key=lambda row: row[3]):
        first, _ = ends.get((instance, model, name), (last, last))
        ends[instance, model, name] = first, last
    return ends


def _latencies(connection: Connection, whose: Whose, span: Stretch) -> Iterator[Latency]:
    table, series = schema.rollup, schema.series
    mine = (*whose.holds(series), series.c.signal.in_(LATENCIES), series.c.censored == 0)
    names = select(series.c.id, series.c.instance, series.c.signal, series.c.source).where(*mine)
    of = {row.id: row[1:] for row in connection.execute(names.order_by(series.c.id).limit(MAX_SERIES))}
    sums = func.sum(table.c["count"]), func.sum(table.c["sum"])
    question = select(table.c.series_id, *sums).where(table.c.series_id.in_(of)).group_by(table.c.series_id)
    for number, count, total in _asked(connection, table, question, span) if of else ():
        yield Latency(*of[number], int(count), total)


def _asked(connection: Connection, table: Table, question: Select[Any], span: Stretch) -> Iterable[Sequence[Any]]:
    """The rows of a stretch, of each length of step that the table holds. Its key begins with the step, and the service
    follows: each start by its name is found by the key, and a range of them would read those of every service."""
    for step_s in steps(connection, table):
        starts = range(-(-span.first_s // step_s) * step_s, span.until_s, step_s)
        if starts:
            yield from connection.execute(question.where(table.c.step_s == step_s, table.c.start_s.in_(starts)))
