"""An API key may have limits of its own."""

from alembic import op

from quotagate.sql_scripts import run_scripts

revision = "0006_key_limits"
down_revision = "0005_held_checked"
run = "before"


def upgrade() -> None:
    """Add the column, empty for every key there is."""
    run_scripts(op.get_bind(), revision, "column")
