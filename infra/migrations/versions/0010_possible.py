"""Numbers that no limit and no debit can be calculated with are refused by the database too."""

from alembic import op

from quotagate.sql_scripts import run_scripts

revision = "0010_possible"
down_revision = "0009_day_waiting"
run = "before"


def upgrade() -> None:
    """Add the bounds of the admin API to tiers, keys and prices."""
    run_scripts(op.get_bind(), revision, "bounds", "known_rows")
