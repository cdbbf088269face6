"""Records as the stream holds them."""

import asyncio

import nats.js.errors
from nats.aio.client import Client

from contracts.contract import decode
from contracts.inference import INFERENCE_RECORDED, INFERENCE_RECORDS, InferenceRecord

_PATIENCE_S = 20.0


class Records:
    """Reads the stream of records, with the operator's rights."""

    def __init__(self, client: Client) -> None:
        self._jetstream = client.jetstream()

    async def of(self, team_id: str) -> list[InferenceRecord]:
        """Return what the stream holds of a team, oldest first."""
        found: list[InferenceRecord] = []
        sequence = 1
        subject = INFERENCE_RECORDED.subject_for(team_id)
        while True:
            try:
                message = await self._jetstream.get_msg(
                    INFERENCE_RECORDS.name, seq=sequence, subject=subject, next=True
                )
            except nats.js.errors.NotFoundError:
                return found
            assert message.data is not None
            assert message.seq is not None
            found.append(decode(message.data, InferenceRecord))
            sequence = message.seq + 1

    async def one(self, team_id: str) -> InferenceRecord:
        """Wait for the one record of a team."""
        (found,) = await self.some(team_id, 1)
        return found

    async def some(self, team_id: str, count: int) -> list[InferenceRecord]:
        """Wait until the stream holds so many records of a team, and return them."""
        async with asyncio.timeout(_PATIENCE_S):
            while True:
                found = await self.of(team_id)
                if len(found) >= count:
                    assert len(found) == count, found
                    return found
                await asyncio.sleep(0.02)
