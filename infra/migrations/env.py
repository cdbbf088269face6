"""Runs the revisions on the connection that `quotagate migrate` hands over; see README.md."""

from alembic import context

from tables import METADATA

context.configure(
    connection=context.config.attributes["connection"],
    target_metadata=METADATA,
    transaction_per_migration=True,
)
with context.begin_transaction():
    context.run_migrations()
