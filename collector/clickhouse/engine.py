"""A ClickHouse to ask and to insert into: the one room that knows its client.

An insert bears a token: the same token a second time changes nothing, whatever comes with it, for as long as the table
remembers it. An insert is one block, so it is there as a whole or not at all; on replicas it is acknowledged by most of
them, and questions see all that was acknowledged. The URL is the client's own: `clickhouse://user@host:8123/database`,
`https://...`, or `chdb:///folder`, which is the engine within this process.
"""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any
from urllib.parse import urlsplit

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

Row = tuple[Any, ...]
"""Values in the order of the columns asked for, or of a table's."""


class Engine:
    """An open ClickHouse. Whatever it cannot do raises `UnavailableError`."""

    def __init__(self, client: Any, shown: str) -> None:
        self.shown = shown
        self._client = client

    def ask(self, question: str, **given: object) -> Sequence[Row]:
        """The rows that answer; `given` are the values of the question's `{name:Type}`."""
        with _translated(self.shown):
            found: Sequence[Row] = self._client.query(question, parameters=given, settings=_ASKING).result_rows
            return found

    def insert(self, table: EngineTable, rows: Sequence[Row], *, token: str) -> None:
        """Have the rows there, once for each token."""
        assert len(rows) <= MAX_BLOCK_ROWS, "more rows than one block holds"
        settings = _INSERTING | {"insert_deduplication_token": token}
        with _translated(self.shown):
            self._client.insert(table.name, rows, column_names=table.names, settings=settings)

    def run(self, statement: str) -> None:
        """Do what the statement says."""
        with _translated(self.shown):
            self._client.command(statement)

    def lacks(self) -> list[str]:
        """The tables that are not there."""
        found = self.ask("SELECT name FROM system.tables WHERE database = currentDatabase()")
        return sorted({table.name for table in TABLES} - {name for (name,) in found})

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
            raise UnusableDatabaseError(f"ClickHouse {shown} has no table {missing[0]}: {right}")
        yield engine
    finally:
        engine.close()


def checked(url: str) -> str:
    """The URL, if its kind is known. Raises `UsageError`."""
    if urlsplit(url).scheme not in SCHEMES:
        raise UsageError(f"--clickhouse {without_password(url)}: write clickhouse://user@host:8123/database")
    return url


def has_password(url: str) -> bool:
    return urlsplit(url).password is not None


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
    return " ".join(str(error).split())[:300] or type(error).__name__
