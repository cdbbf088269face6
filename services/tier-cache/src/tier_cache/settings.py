"""What tier-cache reads from its environment."""

from pydantic import Field

from kit.settings import NatsSettings, PostgresSettings, RedisSettings, TracesSettings


class Settings(NatsSettings, RedisSettings, PostgresSettings, TracesSettings):
    """tier-cache's settings."""

    port: int = Field(18083, ge=0, le=65535, description="Port to listen on; 0 picks a free one.")
    database_timeout_s: float = Field(
        2.0,
        gt=0,
        description="Seconds until a statement or a wait for a connection is given up.",
    )
    max_in_flight: int = Field(
        1024, ge=1, description="Requests handled at once; more are refused as overloaded."
    )
