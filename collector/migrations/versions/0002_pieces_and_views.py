"""Pieces of time for the tables that grow (PostgreSQL), views for people, and what several collectors share."""

from alembic import op

from collector.migrations.script import run

revision = "0002"
down_revision = "0001"


def upgrade() -> None:
    """Everything counted stays: PostgreSQL moves it into the table that is cut, where it lies in the rest at first."""
    run(op.get_bind(), revision)
