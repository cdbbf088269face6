"""What was spent in periods long over need not be kept: it can be summed up again."""

from alembic import op

from quotagate.sql_scripts import run_scripts

revision = "0011_spend_kept"
down_revision = "0010_possible"
run = "before"


def upgrade() -> None:
    """Let settlement remove rows of `spend`, and find the old ones."""
    run_scripts(op.get_bind(), revision, "forgetting")
