"""All records are seen to be in one of the five states, while others are stored and settled."""

from alembic import op

from quotagate.sql_scripts import run_scripts

revision = "0005_held_checked"
down_revision = "0004_held"
run = "before"


def upgrade() -> None:
    """Read the whole table once; blocks nobody."""
    run_scripts(op.get_bind(), revision, "states")
