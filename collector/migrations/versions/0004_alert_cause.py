"""Causes of alerts, and how people read them."""

from alembic import op

from collector.migrations.script import run

revision = "0004"
down_revision = "0003"


def upgrade() -> None:
    """One table more and its view."""
    run(op.get_bind(), revision)
