"""What the database knows of drifts: those that last, what is to be kept of them, and the past to learn from.

A detector learns at the start what one that had run all the time would know: the p95 of every kept minute of the last
`PAST_S`, but for those that burned and those of a drift. A drift that lasted until it was the new normal takes all that
was before its end with it, as the detector itself forgets it.

Table `percentile` is read by stretches of time, all latencies together: its key begins with the moment.
"""

from collections import defaultdict
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import astuple, dataclass

from sqlalchemy import func, or_, select, tuple_
from sqlalchemy.engine import Connection

from collector import schema
from collector.judging.drift import ACCEPTED_S
from collector.judging.drift_watch import DAY_S, SIGNAL_OF_ALERT, WINDOW_S, Key, requests_a_minute
from collector.judging.usual import DAYS_KEPT
from collector.storage import upsert
from collector.storage.retention import FINE_FIGURES_S
from collector.values.verdicts import DriftRow
from slo.signals import ALL_MODELS

PAST_S = DAYS_KEPT * DAY_S
FINE_PAGE_S, COARSE_PAGE_S = 600, 7200
"""Read at once: ten minutes of a row a minute, or two hours of one in ten minutes. It is made sense of on the event
loop, which nobody is to miss for long."""

Span = tuple[int, int]
"""The first and the last moment."""
Burnt = tuple[str, str, str, str]
"""Environment, service, model and signal of a burn."""


@dataclass(frozen=True, slots=True)
class Unquiet:
    """When not to learn, of drifts and of burns."""

    drifts: Mapping[Key, Sequence[Span]]
    burns: Mapping[Burnt, Sequence[Span]]

    def of(self, key: Key) -> Sequence[Span]:
        """The spans that concern a latency."""
        environment, service, model, signal, _ = key
        burns = (self.burns.get((environment, service, name, signal), ()) for name in (model, ALL_MODELS))
        return [*self.drifts.get(key, ()), *(span for some in burns for span in some)]


def lasting(connection: Connection) -> list[DriftRow]:
    """The drifts that last."""
    table = schema.drift
    return [DriftRow(*row) for row in connection.execute(select(table).where(table.c.until_s.is_(None)))]


def write(connection: Connection, rows: Iterable[DriftRow]) -> None:
    """Keep the rows as they are now."""
    upsert.DRIFT.write(connection, map(astuple, rows))


def forget(connection: Connection, *, after_s: int) -> None:
    """Take out the drifts that began later than that, for a clock that was wrong."""
    table = schema.drift
    connection.execute(table.delete().where(table.c.since_s > after_s))


def unquiet(connection: Connection, *, now_s: int) -> Unquiet:
    """When not to learn of the past up to now."""
    drifts: defaultdict[Key, list[Span]] = defaultdict(list)
    table = schema.drift
    ends_late = or_(table.c.until_s.is_(None), table.c.until_s >= now_s - PAST_S)
    for found in connection.execute(select(table).where(ends_late)):
        row = DriftRow(*found)
        accepted = row.until_s is not None and row.until_s - row.since_s >= ACCEPTED_S
        drifts[row.latency].append((0 if accepted else row.since_s, row.until_s or now_s))
    return Unquiet(drifts, _burns(connection, now_s=now_s))


def _burns(connection: Connection, *, now_s: int) -> dict[Burnt, list[Span]]:
    """From when to when each burn alert fired."""
    burns: defaultdict[Burnt, list[Span]] = defaultdict(list)
    now, ended = schema.alert, schema.alert_event
    names = tuple(SIGNAL_OF_ALERT)
    fires = select(now).where(now.c.name.in_(names), now.c.state == "firing")
    over = select(ended).where(
        ended.c.at_s >= now_s - PAST_S,
        ended.c.name.in_(names),
        ended.c.state == "resolved",
        ended.c.fired_s.is_not(None),
    )
    for question in (fires, over):
        for row in connection.execute(question):
            whose = row.environment, row.service, row.model, SIGNAL_OF_ALERT[row.name]
            burns[whose].append((row.fired_s, now_s if row.state == "firing" else row.at_s))
    return burns


def begin_s(connection: Connection, *, now_s: int) -> int | None:
    """The first moment of the past that there is anything of."""
    c = schema.percentile.c
    found: int | None = connection.scalar(select(func.min(c.at_s)).where(c.at_s >= now_s - PAST_S))
    return found


def pages(first_s: int, now_s: int) -> Iterator[Span]:
    """The stretches of time that the past is read by, in order."""
    fine_s = now_s - FINE_FIGURES_S - COARSE_PAGE_S
    while first_s <= now_s:
        last_s = first_s + (COARSE_PAGE_S if first_s < fine_s else FINE_PAGE_S) - 1
        yield first_s, min(last_s, now_s)
        first_s = last_s + 1


def minutes(connection: Connection, keys: Collection[Key], span: Span) -> Sequence[tuple[int, Key, float, int]]:
    """Moment, latency, p95 and requests a minute of a stretch of time, in order."""
    c = schema.percentile.c
    latency = (c.environment, c.service, c.model, c.signal, c.source)
    question = select(c.at_s, *latency, c.p95, c["count"]).where(
        c.at_s.between(*span),
        c.window_s == WINDOW_S,
        c.p95.is_not(None),
        tuple_(*latency).in_(sorted(keys)),
    )
    found = connection.execute(question.order_by(c.at_s)).all()
    return [(row[0], tuple(row[1:6]), row[6], requests_a_minute(row[7])) for row in found]
