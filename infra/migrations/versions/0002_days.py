"""What a team used on a day is counted from its records: an index, and tier-cache's right to it."""

from alembic import op

from quotagate.sql_scripts import run_scripts

revision = "0002_days"
down_revision = "0001_core"
run = "before"


def upgrade() -> None:
    """Build the index while records are written, and let tier-cache read what it counts."""
    run_scripts(op.get_bind(), revision, "grants")
    with op.get_context().autocommit_block():
        op.execute(
            "CREATE INDEX CONCURRENTLY IF NOT EXISTS inference_record_team_id_started_at_idx"
            " ON inference_record (team_id, started_at)"
        )
