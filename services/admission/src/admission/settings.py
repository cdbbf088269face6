"""What admission reads from its environment."""

from pydantic import Field

from kit.settings import NatsSettings, RedisSettings, TracesSettings


class Settings(NatsSettings, RedisSettings, TracesSettings):
    """Admission's settings."""

    port: int = Field(18082, ge=0, le=65535, description="Port to listen on; 0 picks a free one.")
    max_in_flight: int = Field(
        1024, ge=1, description="Requests handled at once; more are refused as overloaded."
    )
    refresh_interval_s: float = Field(
        60.0,
        gt=0,
        description="Seconds between loads of policies and prices when no event announced a"
        " change; an event is followed at once.",
    )
    remembered_teams: int = Field(
        100_000, ge=1, description="Teams whose tier is remembered to save a second Redis call."
    )
    explicable_tokens: int = Field(
        100_000_000,
        ge=1,
        description="Tokens a team could owe at once; a longer token debt is held for a stepped"
        " Redis clock, and cut to this.",
    )
    lease_s: float = Field(
        30.0,
        gt=0,
        le=3600,
        description="Seconds until the lease of a call in flight expires that nobody renews; edges"
        " renew three times as often.",
    )
