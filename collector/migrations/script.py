"""The scripts beside it, one for each revision and dialect; a semicolon at the end of a line ends a statement."""

from pathlib import Path

from sqlalchemy.engine import Connection


def run(connection: Connection, revision: str) -> None:
    """Run the script of the revision in the connection's transaction."""
    script = Path(__file__).with_name(f"{revision}.{connection.dialect.name}.sql")
    for part in script.read_text().split(";\n"):
        statement = "\n".join(line for line in part.splitlines() if not line.startswith("--")).strip()
        if statement:
            connection.exec_driver_sql(statement)
