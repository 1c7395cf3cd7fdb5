"""The statements that make every table and view in a dialect: what is printed is what a new database is made by.

Comments go with them where a dialect keeps them (PostgreSQL); in SQLite they stand above the statement.
"""

from collections.abc import Iterator
from dataclasses import dataclass

from sqlalchemy import Table
from sqlalchemy.dialects import postgresql, sqlite
from sqlalchemy.engine import Connection, Dialect
from sqlalchemy.schema import CreateIndex, CreateTable, SetColumnComment, SetTableComment

from collector import schema
from collector.schema import View
from collector.storage import partitions, sql_views

DIALECTS = {"sqlite": sqlite.dialect, "postgresql": postgresql.dialect}


@dataclass(frozen=True, slots=True)
class Made:
    """A table or a view, and the statements that make it."""

    comment: str
    statements: tuple[str, ...]


def ddl(name: str) -> str:
    """All that makes the tables and views in the named dialect (`sqlite` or `postgresql`), as a script."""
    made = everything(DIALECTS[name](paramstyle="named"))
    return "\n".join("\n".join((f"-- {one.comment}", *(f"{text};" for text in one.statements), "")) for one in made)


def create(connection: Connection) -> None:
    """Make every table and view in an empty database."""
    for one in everything(DIALECTS[connection.dialect.name](paramstyle="named")):
        for statement in one.statements:
            connection.exec_driver_sql(statement)


def everything(dialect: Dialect) -> Iterator[Made]:
    """Tables first, then views, each after what it needs."""
    for table in schema.metadata.sorted_tables:
        yield Made(str(table.comment), tuple(_table(table, dialect)))
    for view in sql_views.VIEWS:
        yield Made(str(view.table.comment), tuple(create_view(view, dialect)))


def create_view(view: View, dialect: Dialect) -> Iterator[str]:
    """The statements that make one view."""
    question = view.question.compile(dialect=dialect, compile_kwargs={"literal_binds": True})
    yield f"CREATE VIEW {view.table.name} AS\n{question}"
    if dialect.supports_comments:
        preparer = dialect.identifier_preparer
        yield f"COMMENT ON VIEW {view.table.name} IS {_literal(view.table.comment)}"
        for column in view.table.columns:
            yield f"COMMENT ON COLUMN {preparer.format_column(column, use_table=True)} IS {_literal(column.comment)}"


def _table(table: Table, dialect: Dialect) -> Iterator[str]:
    yield str(CreateTable(table).compile(dialect=dialect)).strip()
    for index in sorted(table.indexes, key=lambda index: str(index.name)):
        yield str(CreateIndex(index).compile(dialect=dialect))
    if dialect.name == "postgresql":
        yield from partitions.definitions(table)
    if dialect.supports_comments:
        yield str(SetTableComment(table).compile(dialect=dialect))
        for column in table.columns:
            yield str(SetColumnComment(column).compile(dialect=dialect))


def _literal(comment: str | None) -> str:
    return "'" + str(comment).replace("'", "''") + "'"
