"""The revision of the tables in a database: made new at the latest, or brought there from an older one.

The revisions themselves are in `migrations`, run by alembic, which keeps its mark in our table `schema_version`. A new
database is made straight from `ddl`, without alembic; a test holds that both ways end at the same tables. All of it is
one transaction: what is interrupted leaves the database as it was.
"""

import logging
import time
from pathlib import Path

from sqlalchemy import inspect, text
from sqlalchemy.engine import Connection

from collector import schema
from collector.errors import UnusableDatabaseError
from collector.storage import commit, ddl

LATEST = schema.REVISION
EARLIER = ("0001", "0002", "0003", "0004")
SCHEMA_LOCK = 4_318_001
SCRIPTS = Path(__file__).parents[1] / "migrations"

log = logging.getLogger(__name__)


def prepare(connection: Connection) -> None:
    """Have the latest tables in the database.

    Raises `UnusableDatabaseError` for tables of a revision that this release does not know, and leaves them alone.
    """
    _take_turn(connection)
    version = schema.schema_version
    if not inspect(connection).has_table(version.name):
        ddl.create(connection)
        connection.execute(version.insert().values(version_num=LATEST))
        return
    found = connection.scalars(version.select()).first()
    if found in EARLIER:
        started = time.perf_counter()
        upgrade(connection)
        log.info("tables of revision %s were brought to %s in %.1f s", found, LATEST, time.perf_counter() - started)
    elif found != LATEST:
        raise UnusableDatabaseError(
            f"the database holds tables of revision {found}, this collector writes {LATEST}: "
            "use the matching release or another database"
        )
    # A write proves that the file is writable now and not at the first batch.
    connection.execute(version.update().values(version_num=LATEST))


def upgrade(connection: Connection, revision: str = "head") -> None:
    """Run the migrations up to `revision` in the connection's transaction."""
    from alembic import command
    from alembic.config import Config

    config = Config(attributes={"connection": connection})
    config.set_main_option("script_location", str(SCRIPTS).replace("%", "%%"))
    command.upgrade(config, revision)


def _take_turn(connection: Connection) -> None:
    """Two collectors may start at once on one database, and one of an older release may still be writing to it."""
    commit.take_turn(connection)
    if connection.dialect.name == "postgresql":
        connection.execute(text(f"SELECT pg_advisory_xact_lock({SCHEMA_LOCK})"))
