"""Results of `firsttoken capacity`, and how people read them."""

from alembic import op

from collector.migrations.script import run

revision = "0005"
down_revision = "0004"


def upgrade() -> None:
    """One table more and its views."""
    run(op.get_bind(), revision)
