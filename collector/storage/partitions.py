"""How PostgreSQL cuts the tables that grow: by time, so that what is old is dropped whole and leaves no holes.

What is kept by step is cut into tiers of steps first: rows of a short step live for hours before they are folded into
a longer one, those of an hour for weeks, and in a piece of their own the dead of one never lie between the living of
the other. Each tier, and each table of figures, is a *branch*, cut into pieces of equal length by its time. Pieces are
made ahead, at the start and by upkeep; rows of odd times (late ones, a wrong clock, the past of an older release) find
a default piece, the *rest* of the branch, which is emptied by deleting. Days of figures that are old enough to be
thinned are written anew.

SQLite has plain tables of the same names and columns: no other room knows the difference. Attaching and dropping wait
for readers of the table and hold up everybody behind them, so each waits for a moment only and is tried again by the
next sweep.
"""

# ruff: noqa: S608  names of our own tables and whole numbers are all that goes into these statements

import logging
import re
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, datetime

from sqlalchemy import Table, text
from sqlalchemy.engine import Connection
from sqlalchemy.exc import DBAPIError

from collector import schema
from slo.quantity import DAY_S, HOUR_S

LOCK_WAIT_MS = 200
BLOCKS_A_PIECE = 2
_REST = "rest"
_THIN = "thin"
_LOCK_NOT_AVAILABLE = "55P03"
_BOUNDS = re.compile(r"FROM \('(-?\d+)'\) TO \('(-?\d+)'\)")

log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class Tier:
    """Steps from `from_s` up to the next tier's, in pieces of `piece_s`, of which `ahead` are made in advance."""

    name: str
    from_s: int
    piece_s: int
    ahead: int


TIERS = (
    Tier("fine", 0, HOUR_S, 3),
    Tier("minute", 60, DAY_S, 1),
    Tier("ten_minutes", 600, 7 * DAY_S, 1),
    Tier("hour", 3600, 7 * DAY_S, 1),
)
LONGEST_PIECE_S = max(tier.piece_s for tier in TIERS)


@dataclass(frozen=True, slots=True)
class Branch:
    """A table of PostgreSQL that is cut by `time` alone."""

    name: str
    time: str
    piece_s: int
    ahead: int

    @property
    def rest(self) -> str:
        """The piece of whatever time no other is for."""
        return f"{self.name}_{_REST}"

    def piece(self, start_s: int) -> str:
        """The name of the piece that starts then."""
        form = "%Y%m%d" if self.piece_s % DAY_S == 0 else "%Y%m%d_%H"
        return f"{self.name}_{datetime.fromtimestamp(start_s, UTC):{form}}"


@dataclass(frozen=True, slots=True)
class Piece:
    """A piece as it stands: rows from `from_s` to before `to_s`."""

    branch: Branch
    name: str
    from_s: int
    to_s: int

    @property
    def is_thin(self) -> bool:
        """Whether it was written anew already."""
        return self.name.endswith(f"_{_THIN}")


def cut(table: Table) -> str | None:
    """The column that cuts `table` first (`schema.STEPPED` or `schema.BY_DAY`); None where it does not grow."""
    found: str | None = table.info.get("cut")
    return found


def branches(table: Table) -> tuple[Branch, ...]:
    """The branches of a table; none of one that does not grow."""
    if cut(table) == schema.STEPPED:
        return tuple(Branch(f"{table.name}_{tier.name}", "start_s", tier.piece_s, tier.ahead) for tier in TIERS)
    return (Branch(table.name, "at_s", DAY_S, 1),) if cut(table) == schema.BY_DAY else ()


def piece_of(step_s: int) -> int:
    """The length of the pieces in which rows of that step are kept and dropped."""
    return next(tier.piece_s for tier in reversed(TIERS) if tier.from_s <= step_s)


def definitions(table: Table) -> Iterator[str]:
    """The statements that make the branches of a table, each with its rest."""
    if cut(table) == schema.STEPPED:
        ends = [*(tier.from_s for tier in TIERS[1:]), None]
        for tier, end_s in zip(TIERS, ends, strict=True):
            start = f"({tier.from_s})" if tier.from_s else "(MINVALUE)"
            end = f"({end_s})" if end_s is not None else "(MAXVALUE)"
            of = f"PARTITION OF {table.name} FOR VALUES FROM {start} TO {end}"
            yield f"CREATE TABLE {table.name}_{tier.name} {of} PARTITION BY RANGE (start_s)"
    for branch in branches(table):
        yield f"CREATE TABLE {branch.rest} PARTITION OF {branch.name} DEFAULT"


def all_branches() -> Iterator[Branch]:
    """The branches of every table."""
    for table in schema.metadata.sorted_tables:
        yield from branches(table)


def pieces(connection: Connection, branch: Branch) -> list[Piece]:
    """The pieces of a branch in order of time, without its rest."""
    question = text(
        "SELECT child.relname, pg_get_expr(child.relpartbound, child.oid) FROM pg_inherits"
        " JOIN pg_class child ON child.oid = inhrelid WHERE inhparent = to_regclass(:name)"
    )
    found = []
    for name, bounds in connection.execute(question, {"name": branch.name}):
        if span := _BOUNDS.search(bounds):
            found.append(Piece(branch, name, int(span[1]), int(span[2])))
    return sorted(found, key=lambda piece: piece.from_s)


def make_ahead(connection: Connection, *, now_s: int) -> bool:
    """Make the pieces of now and of the time ahead that one branch lacks; whether others may lack some too."""
    if connection.dialect.name == "postgresql":
        for branch in all_branches():
            made = {piece.from_s for piece in pieces(connection, branch)}
            first_s = now_s // branch.piece_s * branch.piece_s
            starts_s = range(first_s, first_s + (branch.ahead + 1) * branch.piece_s, branch.piece_s)
            new = [start_s for start_s in starts_s if start_s not in made and _free(connection, branch, start_s)]
            if new:
                return _try(connection, *(one for start_s in new for one in _making(branch, start_s)))
    return False


def drop_past(connection: Connection, *, table: Table, before_s: int, now_s: int) -> bool:
    """Drop the oldest of the pieces that end before `before_s`, or whose rows have all gone on into longer steps;
    whether there may be more of them."""
    if connection.dialect.name == "postgresql":
        for branch in branches(table):
            for piece in pieces(connection, branch):
                over = piece.to_s <= before_s
                if over or (piece.to_s + branch.piece_s <= now_s and _empty(connection, piece)):
                    return _try(connection, f"DROP TABLE {piece.name}")
    return False


def rewrite(connection: Connection, *, table: Table, before_s: int, coarse_s: int) -> bool:
    """Write the oldest day of figures that ends before `before_s` anew, with the last moment of each `coarse_s` alone:
    a few moments of it; whether there is more to do.

    The new piece grows beside the old one and takes its place in the end. How far it has come is told by its rows.
    """
    if connection.dialect.name != "postgresql":
        return False
    (branch,) = branches(table)
    old = next((p for p in pieces(connection, branch) if p.to_s <= before_s and not p.is_thin), None)
    if old is None:
        return False
    new = f"{old.name}_{_THIN}"
    if connection.scalar(text("SELECT to_regclass(:name)"), {"name": new}) is None:
        connection.execute(text(f"CREATE TABLE {new} (LIKE {branch.name} INCLUDING CONSTRAINTS INCLUDING INDEXES)"))
    done_s = connection.scalar(text(f"SELECT max(at_s) FROM {new}"))
    from_s = old.from_s if done_s is None else done_s // coarse_s * coarse_s + coarse_s
    for _ in range(BLOCKS_A_PIECE):
        first_s = connection.scalar(text(f"SELECT min(at_s) FROM {old.name} WHERE at_s >= {from_s}"))
        if first_s is None:
            place = f"FOR VALUES FROM ({old.from_s}) TO ({old.to_s})"
            attach = f"ALTER TABLE {branch.name} ATTACH PARTITION {new} {place}"
            return _try(connection, f"DROP TABLE {old.name}", attach)
        from_s = first_s // coarse_s * coarse_s + coarse_s
        last = f"SELECT max(at_s) FROM {old.name} WHERE at_s < {from_s}"
        connection.execute(text(f"INSERT INTO {new} SELECT * FROM {old.name} WHERE at_s = ({last})"))
    return True


def _free(connection: Connection, branch: Branch, start_s: int) -> bool:
    """Whether the rest holds no row of a piece's time: if it does, they stay there, and so do those to come."""
    mine = f"{branch.time} >= {start_s} AND {branch.time} < {start_s + branch.piece_s}"
    return not connection.scalar(text(f"SELECT EXISTS (SELECT 1 FROM {branch.rest} WHERE {mine})"))


def _making(branch: Branch, start_s: int) -> tuple[str, str]:
    """Attaching a table holds the branch up less than making one as its part does."""
    name, span = branch.piece(start_s), f"FROM ({start_s}) TO ({start_s + branch.piece_s})"
    made = f"CREATE TABLE {name} (LIKE {branch.name} INCLUDING CONSTRAINTS INCLUDING INDEXES)"
    return made, f"ALTER TABLE {branch.name} ATTACH PARTITION {name} FOR VALUES {span}"


def _empty(connection: Connection, piece: Piece) -> bool:
    return not connection.scalar(text(f"SELECT EXISTS (SELECT 1 FROM {piece.name})"))


def _try(connection: Connection, *statements: str) -> bool:
    """All of the statements, or none while somebody holds the table; whether they were done."""
    try:
        with connection.begin_nested():
            for statement in (f"SET LOCAL lock_timeout = {LOCK_WAIT_MS}", *statements):
                connection.execute(text(statement))
            connection.execute(text("SET LOCAL lock_timeout TO DEFAULT"))
    except DBAPIError as error:
        if getattr(error.orig, "sqlstate", None) != _LOCK_NOT_AVAILABLE:
            raise
        log.warning("a reader holds a table, so this is left to the next sweep: %s", statements[-1])
        return False
    return True
