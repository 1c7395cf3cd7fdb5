"""The same traffic through SQLite, PostgreSQL and ClickHouse is the same to the last count, whatever breaks."""

import asyncio
import sqlite3
import threading
import time
from collections.abc import Callable, Iterable, Sequence
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from collector.clickhouse import questions
from collector.clickhouse.engine import Engine, Row, parameters
from collector.clickhouse.mirror import Mirror
from collector.clickhouse.tables import TABLES, EngineTable
from collector.errors import UnavailableError
from collector.judging.evaluate import Evaluation, evaluate
from collector.keeping.upkeep import sweep
from collector.storage.database import database_url
from collector.storage.retention import Limits
from slo.objective import parse
from slo.quantity import DAY_S
from tests.collector.clickhouse import recorded
from tests.collector.stores import Clock, a_plan, batch, store

pytestmark = pytest.mark.clickhouse

UNTIL_S = int(time.time()) // 60 * 60
WINDOWS_S = (300, 3600, 7200, 86400, 259200, 28 * DAY_S)
"""Of each step that windows are held at, and both sides of its edges."""
SPECS = parse(recorded.SPEC)


def counted(database: str, *, folded: bool = True, moments: int = 60) -> Evaluation:
    """Have a database count the traffic; what its collector says of it then."""

    async def story() -> Evaluation:
        clock = Clock()
        async with store(database, clock=clock, spec=recorded.SPEC) as one:
            for number, (at_s, message) in enumerate(recorded.traffic(until_s=UNTIL_S, moments=moments)):
                clock.now_s = at_s
                await one.count(b"%d" % number, batch(message))
            clock.now_s = UNTIL_S
            if folded:
                await sweep(one, Limits(counts_s=35 * DAY_S), now_s=UNTIL_S, whole=True)
            await one.recall(a_plan(recorded.SPEC))
            windows = one.ledger.windows
            windows.advance(UNTIL_S)
            return evaluate(windows, alerts={}, now_s=UNTIL_S)

    return asyncio.run(story())


def mirror(database: str, engine: Any, origin: str = "here") -> Mirror:
    return Mirror(database_url(database), engine, origin=origin, clock=lambda: UNTIL_S)


def rows(found: Iterable[Any]) -> list[Row]:
    return [tuple(getattr(one, name) for name in type(one).__dataclass_fields__) for one in found]


def asked(engine: Engine, view: str, **more: int) -> list[Row]:
    return list(engine.ask(f"SELECT * FROM {view}{parameters(at_s=UNTIL_S, tick_s=10, **more)}"))


def alike(found: list[Row], wanted: list[Row]) -> None:
    """Whole numbers, names and what is unknown are the same; of other numbers the last digits may differ."""
    assert list(map(_read, sorted(found))) == list(map(_read, sorted(wanted)))


def _read(row: Row) -> Row:
    return tuple(f"{one:.11e}" if isinstance(one, float) else one for one in row)


def agrees(engine: Engine, said: Evaluation, windows_s: Sequence[int] = WINDOWS_S) -> None:
    """The engine finds what the collector found."""
    percentiles, burns = rows(said.percentiles), rows(said.burns)
    for window_s in windows_s:
        wanted = [row for row in percentiles if row[6] == window_s]
        alike([row for row in asked(engine, "percentile", window_s=window_s) if wanted], wanted)
        # A window that is another objective's own is kept of that alone.
        kept = {row[4] for row in burns if row[5] == window_s}
        found = [row for row in asked(engine, "burn_rate", window_s=window_s) if row[4] in kept]
        alike(found, [row for row in burns if row[5] == window_s])
    alike(asked(engine, "budget"), rows(said.budgets))


def totals(engine: Engine) -> dict[str, Row]:
    """What would show that anything is lost or there twice."""
    return {
        "rollup": engine.ask("SELECT sum(count), sum(zero_count), sumMap(bins), round(sum(sum), 6) FROM rollup")[0],
        "slo_count": engine.ask("SELECT sum(good), sum(bad) FROM slo_count")[0],
        "counter": engine.ask("SELECT sum(value) FROM counter")[0],
        "known": engine.ask("SELECT uniqExact(environment, service, start_s - start_s % 60) FROM known")[0],
    }


def test_the_same_traffic_is_the_same_to_the_last_count(database: str, clickhouse: Engine) -> None:
    said = counted(database)
    one = mirror(database, clickhouse)
    one.tell(SPECS)
    assert asyncio.run(one.send()).fallen == 0
    agrees(clickhouse, said)
    before = totals(clickhouse)
    for table in TABLES:
        clickhouse.run(f"OPTIMIZE TABLE {table.name} FINAL")
    assert totals(clickhouse) == before
    agrees(clickhouse, said, (3600, 259200))
    assert asyncio.run(one.send()).total == 0
    bases = {(row[4], row[10]) for row in rows(said.burns)}
    assert {("ttft", "counts"), ("tpot", "histogram")} <= bases
    assert any(row[8] for row in rows(said.percentiles))
    assert any(row[3] == "*" for row in rows(said.percentiles))


def test_folding_in_the_collector_changes_nothing(tmp_path: Path, clickhouse: Engine) -> None:
    database = f"sqlite:///{tmp_path}/firsttoken.db"
    counted(database, folded=False)
    one = mirror(database, clickhouse)
    assert asyncio.run(one.send()).total > 0
    before = totals(clickhouse)
    fold(database)
    again = asyncio.run(one.send())
    assert (again.total, again.fallen) == (0, 0)
    assert totals(clickhouse) == before


def fold(database: str) -> None:
    async def story() -> None:
        async with store(database, clock=Clock(UNTIL_S), spec=recorded.SPEC) as one:
            await sweep(one, Limits(counts_s=35 * DAY_S), now_s=UNTIL_S, whole=True)

    asyncio.run(story())


def test_two_collectors_add_up(tmp_path: Path, clickhouse: Engine) -> None:
    databases = [f"sqlite:///{tmp_path}/{name}.db" for name in "ab"]
    for number, database in enumerate(databases):
        counted(database, moments=20)
        asyncio.run(mirror(database, clickhouse, origin=f"o{number}").send())
    both = totals(clickhouse)
    clickhouse.run("ALTER TABLE rollup DELETE WHERE origin = 'o1' SETTINGS mutations_sync = 2")
    alone = totals(clickhouse)
    assert both["rollup"][0] == 2 * alone["rollup"][0]
    assert both["rollup"][2] == {bucket: 2 * count for bucket, count in alone["rollup"][2].items()}


class Broken:
    """An engine whose inserts break: before they are there, after it, or so that they come in much later."""

    def __init__(self, engine: Engine, breaks: Callable[[int, str], str]) -> None:
        self._engine, self._breaks = engine, breaks
        self.late: list[Callable[[], None]] = []
        self._count = 0

    def __getattr__(self, name: str) -> Any:
        return getattr(self._engine, name)

    def insert(self, table: EngineTable, rows: list[Row], *, token: str | None) -> None:
        self._count += 1
        how = self._breaks(self._count, table.name)
        if how == "late":
            self.late.append(lambda: self._engine.insert(table, rows, token=token))
        elif how != "before":
            self._engine.insert(table, rows, token=token)
        if how:
            raise UnavailableError("the connection broke")


def stored(database: str) -> Row:
    """The sums that the database itself holds."""
    with closing(sqlite3.connect(database.removeprefix("sqlite:///"))) as connection:
        one: Row = connection.execute(
            "SELECT (SELECT sum(count) FROM rollup), (SELECT sum(zero_count) FROM rollup), sum(good), sum(bad), "
            "(SELECT sum(value) FROM counter) FROM slo_count"
        ).fetchone()
    return one


def held(engine: Engine) -> Row:
    """The same, of all that was sent."""
    found = totals(engine)
    return (*found["rollup"][:2], *found["slo_count"], *found["counter"])


@pytest.mark.parametrize("how", ["before", "after", "late"])
def test_nothing_is_lost_or_doubled_whatever_breaks(how: str, tmp_path: Path, clickhouse: Engine) -> None:
    """Every third insert breaks, the mirror begins anew each time, and what was on its way comes in after the next."""
    database = f"sqlite:///{tmp_path}/firsttoken.db"
    counted(database, moments=12)
    broken = Broken(clickhouse, lambda count, _: how if count % 3 == 2 else "")
    faults = 0
    while True:
        try:
            if asyncio.run(mirror(database, broken).send()).total == 0:
                break
        except UnavailableError:
            faults += 1
            waiting, broken.late[:] = broken.late[:-1], broken.late[-1:]
            for insert in waiting:
                insert()
        assert faults < 100, "it never comes to an end"
    for insert in broken.late:
        insert()
    assert faults > 2
    assert held(clickhouse) == stored(database)
    assert asyncio.run(mirror(database, clickhouse).send()).total == 0


def test_two_mirrors_of_one_database_do_no_harm(tmp_path: Path, clickhouse: Engine) -> None:
    """One sends all it has whenever the other has looked at both sides and is about to insert."""
    database = f"sqlite:///{tmp_path}/firsttoken.db"
    counted(database, moments=12)

    held_up = []

    def other_first(_: int, table: str) -> str:
        if table in ("rollup", "slo_count") and len(held_up) < 2:
            held_up.append(table)
            other = threading.Thread(target=lambda: asyncio.run(mirror(database, clickhouse).send()))
            other.start()
            other.join()
        return ""

    asyncio.run(mirror(database, Broken(clickhouse, other_first)).send())
    while asyncio.run(mirror(database, clickhouse).send()).total:
        pass
    assert held(clickhouse) == stored(database)


def test_a_database_restored_from_a_backup_is_told_of_and_left_alone(tmp_path: Path, clickhouse: Engine) -> None:
    database = f"sqlite:///{tmp_path}/firsttoken.db"
    counted(database, moments=12)
    asyncio.run(mirror(database, clickhouse).send())
    before = totals(clickhouse)
    with closing(sqlite3.connect(f"{tmp_path}/firsttoken.db")) as connection:
        connection.execute("UPDATE slo_count SET good = 0, bad = bad + good + 5 WHERE good > 0")
        connection.commit()
    sent = asyncio.run(mirror(database, clickhouse).send())
    assert sent.fallen > 0
    assert totals(clickhouse) == before


def test_what_people_deleted_is_sent_again(tmp_path: Path, clickhouse: Engine) -> None:
    """The tables remember the tokens of what is there no more."""
    database = f"sqlite:///{tmp_path}/firsttoken.db"
    counted(database, moments=12)
    asyncio.run(mirror(database, clickhouse).send())
    for name in (*totals(clickhouse), "mirrored"):
        clickhouse.run(f"ALTER TABLE {name} DELETE WHERE origin = 'here' SETTINGS mutations_sync = 2")
    assert held(clickhouse) == (0, 0, 0, 0, 0)
    looks = 0
    while asyncio.run(mirror(database, clickhouse).send()).total:
        looks += 1
        assert looks < 5, "it never comes to an end"
    assert held(clickhouse) == stored(database)


def test_a_mirror_that_is_stopped_ends_between_two_stretches(tmp_path: Path, clickhouse: Engine) -> None:
    database = f"sqlite:///{tmp_path}/firsttoken.db"
    counted(database, moments=12)
    stops = iter((False, True))
    some = asyncio.run(mirror(database, clickhouse).send(stopped=lambda: next(stops)))
    rest = asyncio.run(mirror(database, clickhouse).send())
    assert rest.total > some.total
    assert held(clickhouse) == stored(database)


@pytest.mark.parametrize("later_s", [0, -3600])
def test_the_spec_told_last_counts_whatever_the_clock_says(later_s: int, tmp_path: Path, clickhouse: Engine) -> None:
    database, changed = f"sqlite:///{tmp_path}/firsttoken.db", parse(recorded.SPEC.replace("name: ttft", "name: first"))
    mirror(database, clickhouse).tell(SPECS)
    late = Mirror(database_url(database), clickhouse, origin="here", clock=lambda: UNTIL_S + later_s)
    late.tell(changed)
    late.tell(changed)
    judging = [row[1] for row in clickhouse.ask(questions.objectives())]
    assert sorted(judging) == sorted(one.name for spec in changed for one in spec.objectives)


def test_an_empty_database_sends_nothing(tmp_path: Path, clickhouse: Engine) -> None:
    database = f"sqlite:///{tmp_path}/firsttoken.db"

    async def story() -> None:
        async with store(database):
            pass

    asyncio.run(story())
    assert asyncio.run(mirror(database, clickhouse).send()).total == 0
