"""What a person decides about a held record is done in one step and kept: released, written off."""

from alembic import op

from quotagate.sql_scripts import run_scripts

revision = "0004_held"
down_revision = "0003_vacuum"
run = "before"


def upgrade() -> None:
    """Add the state, the decisions, and the function that makes one."""
    run_scripts(op.get_bind(), revision, "decisions")
