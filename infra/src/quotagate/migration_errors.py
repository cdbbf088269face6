"""What can go wrong with a migration.

MigrationError
├── MigrationBusyError
└── ScriptError
"""


class MigrationError(Exception):
    """The database could not be migrated."""

    def __init__(self, message: str | None = None) -> None:
        super().__init__(message or type(self).__doc__)


class MigrationBusyError(MigrationError):
    """Another migration of this database has been running for a minute."""


class ScriptError(MigrationError):
    """A migration's script was refused; nothing of it stays."""
