"""A ClickHouse to ask and to insert into: the one room that knows its client.

An insert that counts bears a token: the same token a second time changes nothing, whatever comes with it, for as long
as the table remembers it. An insert is one block, so it is there as a whole or not at all; on replicas it is
acknowledged by most of them, and questions see all that was acknowledged. The URL is the client's own:
`clickhouse://user@host:8123/database`, `https://...`, or `chdb:///folder`, which is the engine within this process.
"""

import logging
import re
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any
from urllib.parse import parse_qsl, urlsplit
from uuid import uuid4

from collector.clickhouse.tables import TABLES, EngineTable, literal
from collector.errors import UnavailableError, UnusableDatabaseError, UsageError

SCHEMES = ("clickhouse", "http", "https", "chdb")
TIMEOUT_S = 60
CONNECT_S = 10
MAX_BLOCK_ROWS = 1_000_000
_ASKING = {"select_sequential_consistency": 1, "join_use_nulls": 0}
_INSERTING = {
    "insert_deduplicate": 1,
    "async_insert": 0,
    "insert_quorum": "auto",
    "insert_quorum_parallel": 0,
    "distributed_foreground_insert": 1,
    "min_insert_block_size_rows": MAX_BLOCK_ROWS,
}

_SECRET = re.compile("password|token")
_OF_ONE_TRY = re.compile(r" with url: \S+")
"""In the client's words on a fault: the number of the question, which makes each of them another."""

Row = tuple[Any, ...]
"""Values in the order of the columns asked for, or of a table's."""


class Engine:
    """An open ClickHouse. Whatever it cannot do raises `UnavailableError`."""

    def __init__(self, client: Any, shown: str) -> None:
        self.shown = shown
        self._client = client

    def ask(self, question: str, **given: object) -> Sequence[Row]:
        """The rows that answer; `given` are the values of the question's `{name:Type}`."""
        found = self._ask(question, given)
        # An answer that broke off in its head, or that somebody else gave, reads like one without rows; and who takes
        # that for true counts everything twice.
        if not found and list(self._ask(f"SELECT count() FROM ({question})", given)) != [(0,)]:  # noqa: S608
            raise UnavailableError(f"ClickHouse {self.shown}: an answer broke off")
        return found

    def _ask(self, question: str, given: Mapping[str, object]) -> Sequence[Row]:
        with _translated(self.shown):
            found: Sequence[Row] = self._client.query(question, parameters=given, settings=_ASKING).result_rows
            return found

    def insert(self, table: EngineTable, rows: Sequence[Row], *, token: str | None) -> None:
        """Have the rows there, once for each token; without one, each time."""
        assert len(rows) <= MAX_BLOCK_ROWS, "more rows than one block holds"
        settings = _INSERTING | {"insert_deduplication_token": token or uuid4().hex}
        with _translated(self.shown):
            self._client.insert(table.name, rows, column_names=table.names, settings=settings)

    def run(self, statement: str) -> None:
        """Do what the statement says."""
        with _translated(self.shown):
            self._client.command(statement)

    def lacks(self) -> list[str]:
        """The tables, and the columns of others, that are not there as they are to be. What a column of another type
        would do of its own to the counts in it, nobody knows."""
        found = self.ask("SELECT table, name, type FROM system.columns WHERE database = currentDatabase()")
        tables, columns = {table for table, _, _ in found}, set(found)
        return [
            *(f"table {table.name}" for table in TABLES if table.name not in tables),
            *(
                f"column {table.name}.{one.name} of type {one.type}"
                for table in TABLES
                for one in table.every
                if table.name in tables and (table.name, one.name, one.type) not in columns
            ),
        ]

    def now_s(self) -> int:
        """Its clock, by which it folds and drops."""
        ((now_s,),) = self.ask("SELECT toUnixTimestamp(now())")
        return int(now_s)

    def close(self) -> None:
        self._client.close()


@contextmanager
def opened(url: str) -> Iterator[Engine]:
    """The engine that a URL names, with its tables there. Raises `UnusableDatabaseError`."""
    shown = without_password(url)
    try:
        engine = Engine(_client(url), shown)
    except UnusableDatabaseError:
        raise
    except _faults_of_a_url() as error:
        raise UnusableDatabaseError(f"ClickHouse {shown} cannot be used: {_first_line(error)}") from error
    try:
        if missing := engine.lacks():
            right = "make them by what `firsttoken collector schema --dialect clickhouse` prints"
            raise UnusableDatabaseError(f"ClickHouse {shown} has no {missing[0]}: {right}")
        yield engine
    finally:
        engine.close()


def checked(url: str) -> str:
    """The URL, if it can be one. Raises `UsageError`, which does not show it: what is wrong may be the password."""
    try:
        parts = urlsplit(url)
        is_right = parts.scheme in SCHEMES and (parts.scheme == "chdb" or bool(parts.hostname and parts.port != 0))
    except ValueError:
        is_right = False
    if not is_right or "@" in parts.path + parts.query or parts.fragment:
        right = (
            "write clickhouse://user@host:8123/database, and in a password %2F for /, %3F for ?, %23 for #, %40 for @"
        )
        raise UsageError(f"--clickhouse: {right}")
    return url


def has_password(url: str) -> bool:
    """Whether whoever sees the URL can use it."""
    parts = urlsplit(url)
    return parts.password is not None or any(_SECRET.search(name) for name, _ in parse_qsl(parts.query))


def without_password(url: str) -> str:
    """The URL as people may see it, without what may be secret behind the `?`."""
    parts = urlsplit(url)
    host = parts.netloc.rpartition("@")[2]
    who = f"{parts.username}@" if parts.username else ""
    return f"{parts.scheme}://{who}{host}{parts.path}"


def parameters(**values: int | str) -> str:
    """What a view is asked with."""
    written = (f"{name} = {literal(one) if isinstance(one, str) else one}" for name, one in values.items())
    return f"({', '.join(written)})"


def _client(url: str) -> Any:
    try:
        import clickhouse_connect
    except ModuleNotFoundError:
        raise UnusableDatabaseError("ClickHouse needs clickhouse-connect: install firsttoken[clickhouse]") from None
    logging.getLogger(clickhouse_connect.__name__).addHandler(logging.NullHandler())  # what it says, its errors say
    scheme = urlsplit(url).scheme
    try:
        if scheme == "chdb":
            return clickhouse_connect.get_client(dsn=url)
        return clickhouse_connect.get_client(
            dsn=url,
            secure=scheme == "https",
            connect_timeout=CONNECT_S,
            send_receive_timeout=TIMEOUT_S,
            autogenerate_session_id=False,
        )
    except ImportError:
        raise UnusableDatabaseError("chdb:// is the engine within the process: install chdb-core") from None


def _faults() -> tuple[type[Exception], ...]:
    from clickhouse_connect.driver.exceptions import ClickHouseError

    return ClickHouseError, OSError


def _faults_of_a_url() -> tuple[type[Exception], ...]:
    """A word behind the `?` that the client does not know is an argument too many."""
    return (*_faults(), TypeError, ValueError)


@contextmanager
def _translated(shown: str) -> Iterator[None]:
    try:
        yield
    except _faults() as error:
        raise UnavailableError(f"ClickHouse {shown}: {_first_line(error)}") from error


def _first_line(error: Exception) -> str:
    return _OF_ONE_TRY.sub("", " ".join(str(error).split()))[:300] or type(error).__name__
