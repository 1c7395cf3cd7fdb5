"""The tables of the first release."""

from alembic import op

from collector.migrations.script import run

revision = "0001"
down_revision = None


def upgrade() -> None:
    """In the words of that release."""
    run(op.get_bind(), revision)
