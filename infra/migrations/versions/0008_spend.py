"""What was spent in a period, the thresholds that were crossed, and the webhooks that tell them."""

from alembic import op

from quotagate.sql_scripts import run_scripts

revision = "0008_spend"
down_revision = "0007_key_rotation"
run = "before"


def upgrade() -> None:
    """Add the tables, the functions that sum up charges, and the services' rights."""
    run_scripts(op.get_bind(), revision, "tables", "sums", "grants")
