"""The services' login roles: one for each service that may open the database."""

import base64
import hashlib
import hmac
import secrets
from collections.abc import Mapping

from sqlalchemy import text
from sqlalchemy.ext.asyncio import AsyncConnection

SERVICE_ROLES = ("quotagate_tier_cache", "quotagate_settlement", "quotagate_control_plane")

# A service that stops dead in a transaction gives its locks back after this long.
_SETTINGS = {
    "quotagate_tier_cache": {"default_transaction_read_only": "on"},
    "quotagate_settlement": {"idle_in_transaction_session_timeout": "30s"},
    "quotagate_control_plane": {"idle_in_transaction_session_timeout": "30s"},
}

_SCRAM_ITERATIONS = 4096


async def ensure_roles(connection: AsyncConnection, passwords: Mapping[str, str]) -> None:
    """Create the roles that are missing, and set the passwords that are given.

    A role without a password here keeps the one it has; a new one can't log in by password until
    it is given one. The server sees a verifier and never the password, so its log can't tell it.

    Raises:
        ValueError: a password for a role that isn't ours, or one that isn't printable ASCII.

    """
    unknown = sorted(set(passwords) - set(SERVICE_ROLES))
    if unknown:
        raise ValueError(f"not a role of a service: {', '.join(unknown)}")
    for role in SERVICE_ROLES:
        created = await _create(connection, role)
        if role in passwords:
            verifier = scram_verifier(passwords[role], secrets.token_bytes(16))
            # A verifier is base64 and punctuation: nothing in it ends the literal.
            await connection.execute(
                text(f"ALTER ROLE {role} LOGIN PASSWORD '{_escaped(verifier)}'")
            )
        if created or role in passwords:
            for name, value in _SETTINGS[role].items():
                await connection.execute(text(f"ALTER ROLE {role} SET {name} = '{value}'"))


async def _create(connection: AsyncConnection, role: str) -> bool:
    """Create a role unless it is there; return whether it was created."""
    found = await connection.scalar(
        text("SELECT true FROM pg_roles WHERE rolname = :role"), {"role": role}
    )
    if found:
        return False
    # Roles belong to the server: another database's migration may create it at the same moment.
    await connection.execute(
        text(
            f"DO $$ BEGIN CREATE ROLE {role} LOGIN NOINHERIT;"
            " EXCEPTION WHEN duplicate_object OR unique_violation THEN NULL; END $$"
        )
    )
    return True


def scram_verifier(password: str, salt: bytes) -> str:
    """Return what Postgres stores for a password: SCRAM-SHA-256, RFC 5803.

    Raises:
        ValueError: the password is empty or not printable ASCII, which SASLprep would rewrite.

    """
    if not password or not all(" " <= char <= "~" for char in password):
        raise ValueError("a role's password must be printable ASCII")
    salted = hashlib.pbkdf2_hmac("sha256", password.encode("ascii"), salt, _SCRAM_ITERATIONS)
    client_key = hmac.digest(salted, b"Client Key", "sha256")
    server_key = hmac.digest(salted, b"Server Key", "sha256")
    stored_key = hashlib.sha256(client_key).digest()
    return (
        f"SCRAM-SHA-256${_SCRAM_ITERATIONS}:{_base64(salt)}"
        f"${_base64(stored_key)}:{_base64(server_key)}"
    )


def _base64(value: bytes) -> str:
    return base64.b64encode(value).decode("ascii")


def _escaped(verifier: str) -> str:
    """Escape the colons that SQLAlchemy's text() would read as parameters."""
    return verifier.replace(":", "\\:")
