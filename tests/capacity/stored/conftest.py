"""Each test that asks for `database` runs on SQLite and on PostgreSQL, as the collector's own do."""

from tests.collector.conftest import database, postgresql_server, shared_database

__all__ = ["database", "postgresql_server", "shared_database"]
