"""Drifts of latencies, and how people read them."""

from alembic import op

from collector.migrations.script import run

revision = "0003"
down_revision = "0002"


def upgrade() -> None:
    """One table more and its view."""
    run(op.get_bind(), revision)
