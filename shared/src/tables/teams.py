"""Teams: who is limited and who pays."""

from datetime import datetime

from sqlalchemy import BigInteger, FetchedValue, Text, func, text
from sqlmodel import Field

from tables.base import ID, Base, id_check


class Team(Base, table=True):
    """A team. Inserting one opens its account; a deleted team stays for its ledger's sake."""

    __tablename__ = "team"
    __table_args__ = (id_check("team_id"),)

    team_id: str = Field(primary_key=True, sa_type=ID)
    name: str = Field(sa_type=Text)
    tier_id: str = Field(sa_type=ID, foreign_key="tier.tier_id")
    tier_version: int = Field(
        default=None,
        sa_type=BigInteger,
        sa_column_kwargs={"server_default": text("1"), "server_onupdate": FetchedValue()},
    )
    """Raised by one with each change of `tier_id`, by the database: the tier mapping's fence."""
    created_at: datetime = Field(default=None, sa_column_kwargs={"server_default": func.now()})
    deleted_at: datetime | None = None
    """Database clock. NULL: the team exists."""
