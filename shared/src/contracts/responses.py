"""What the edges remember of the responses that a provider stores."""

from contracts.contract import Bucket, Message
from contracts.ids import TeamId


class StoredResponse(Message, frozen=True, kw_only=True):
    """Where a team's response can be fetched again."""

    team_id: TeamId
    """Whose it is. All teams share the provider's account, so nobody else may fetch it."""
    provider: str
    model: str
    """The model asked for: a key that may not use it may not read its answers."""


STORED_RESPONSES = Bucket(
    name="STORED_RESPONSES",
    value=StoredResponse,
    user="edge-proxy",
    summary="Responses that a provider stores, and whose they are.",
    # As long as OpenAI keeps them.
    max_age_s=30 * 24 * 3600,
    max_bytes=512 * 1024**2,
    max_value_bytes=4096,
)
