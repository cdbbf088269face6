"""Runs Quotagate: the local stack, migrations, and the operator's command."""
