"""How a revision is run: on the connection that the caller gives, inside its transaction, by `revisions`."""

from alembic import context
from sqlalchemy import inspect

VERSION_TABLE = "schema_version"

connection = context.config.attributes["connection"]
if not inspect(connection).has_table(VERSION_TABLE):
    # alembic would make its own, with another type of column.
    clustered = " WITHOUT ROWID" if connection.dialect.name == "sqlite" else ""
    made = f"CREATE TABLE {VERSION_TABLE} (\n\tversion_num TEXT NOT NULL, \n\tPRIMARY KEY (version_num)\n)\n{clustered}"
    connection.exec_driver_sql(made)
context.configure(connection=connection, version_table=VERSION_TABLE, transactional_ddl=True)
with context.begin_transaction():
    context.run_migrations()
