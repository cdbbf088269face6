"""Records that wait in the stream count for the day, each of them once."""

from alembic import op

from quotagate.sql_scripts import run_scripts

revision = "0009_day_waiting"
down_revision = "0008_spend"
run = "before"


def upgrade() -> None:
    """Let tier-cache see which records are stored."""
    run_scripts(op.get_bind(), revision, "grants")
