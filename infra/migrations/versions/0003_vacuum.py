"""The table of inference records is vacuumed and analyzed long before a fifth of it changed."""

from alembic import op

from quotagate.sql_scripts import run_scripts

revision = "0003_vacuum"
down_revision = "0002_days"
run = "before"


def upgrade() -> None:
    """Set the table's own shares; blocks neither readers nor writers."""
    run_scripts(op.get_bind(), revision, "storage")
