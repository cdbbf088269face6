"""A key's secret may be replaced, with the old one accepted for a while."""

from alembic import op

from quotagate.sql_scripts import run_scripts

revision = "0007_key_rotation"
down_revision = "0006_key_limits"
run = "before"


def upgrade() -> None:
    """Add the columns, empty for every key there is."""
    run_scripts(op.get_bind(), revision, "columns")
