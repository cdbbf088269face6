"""API keys: a public id for the lookup, and the hash of a secret nobody stores."""

from datetime import datetime
from typing import Any

from sqlalchemy import CheckConstraint, Index, Text, func, text
from sqlalchemy.dialects.postgresql import ARRAY, JSONB
from sqlmodel import Field

from tables.base import ID, Base, id_check, limits_check


class ApiKey(Base, table=True):
    """A team's key. Its secret was shown once and is kept only as an HMAC under the pepper."""

    __tablename__ = "api_key"
    __table_args__ = (
        id_check("key_id"),
        CheckConstraint("octet_length(secret_hash) = 32", name="secret_hash"),
        CheckConstraint(
            "(old_secret_hash IS NULL) = (old_secret_until IS NULL)"
            " AND octet_length(old_secret_hash) = 32",
            name="old_secret",
        ),
        limits_check("limits"),
        Index(None, "team_id"),
        Index(
            "api_key_spend_limits_idx",
            "team_id",
            postgresql_where=text("limits -> 'spend_limits' IS NOT NULL"),
        ),
    )

    key_id: str = Field(primary_key=True, sa_type=ID)
    team_id: str = Field(sa_type=ID, foreign_key="team.team_id")
    name: str = Field(sa_type=Text)
    secret_hash: bytes
    """HMAC-SHA256 of the secret under a pepper that is kept outside the database, 32 bytes."""
    old_secret_hash: bytes | None = None
    """The same of the secret before this one; accepted until `old_secret_until`."""
    old_secret_until: datetime | None = None
    """Database clock."""
    allowed_models: list[str] | None = Field(default=None, sa_type=ARRAY(Text))
    """NULL: every model of the configuration."""
    limits: dict[str, Any] = Field(
        default_factory=dict, sa_type=JSONB, sa_column_kwargs={"server_default": text("'{}'")}
    )
    """Limits of its own by the names of contracts.admission.KeyLimits; a missing name is none."""
    created_at: datetime = Field(default=None, sa_column_kwargs={"server_default": func.now()})
    expires_at: datetime | None = None
    """Database clock. NULL: never."""
    revoked_at: datetime | None = None
    """Database clock. NULL: not revoked."""
