"""What the fake provider reads from the environment."""

from pathlib import Path
from typing import Annotated

from pydantic import Field, SecretStr

from kit.settings import ServiceSettings


class FakeProviderSettings(ServiceSettings):
    """Settings of the fake provider."""

    port: Annotated[int, Field(ge=0, le=65535, description="Port to listen on; 0 picks one.")] = (
        18085
    )
    grace_s: float = Field(
        2.0, gt=0, description="Seconds to finish what is in flight when told to stop."
    )
    fake_api_keys: SecretStr = Field(
        SecretStr("fake"), description="API keys it accepts, comma separated."
    )
    fake_models: str = Field(
        "gpt-4o-mini,gpt-4o,text-embedding-3-small",
        description="Models that /v1/models lists, comma separated; it serves any other too.",
    )
    fake_journal: Path | None = Field(
        None, description="File to which the journal of requests is appended; unset: memory only."
    )
    fake_journal_entries: int = Field(
        1_000_000, ge=1, description="Most requests that the journal keeps in memory."
    )

    def api_keys(self) -> frozenset[bytes]:
        """Return the accepted keys."""
        listed = self.fake_api_keys.get_secret_value().split(",")
        return frozenset(key.strip().encode() for key in listed if key.strip())

    def models(self) -> tuple[str, ...]:
        """Return the listed models."""
        return tuple(model.strip() for model in self.fake_models.split(",") if model.strip())
