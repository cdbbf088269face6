"""The core: teams, tiers, keys, accounts, ledger, records, charges, prices, outbox."""

from alembic import op

from quotagate.sql_scripts import run_scripts

revision = "0001_core"
down_revision = None
run = "before"


def upgrade() -> None:
    """Create the tables, the account's functions, invariants, versions and the services' rights."""
    run_scripts(op.get_bind(), revision, "tables", "account", "invariants", "versions", "grants")
