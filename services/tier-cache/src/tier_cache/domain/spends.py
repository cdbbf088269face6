"""What one record adds to what a team or a key spent in a period."""

import msgspec

from contracts.inference import InferenceRecord
from contracts.usage import Usage
from tier_cache.domain.days import Day


class Owed(msgspec.Struct, frozen=True):
    """A record's usage and the price it pinned, and by what the record is known."""

    inference_id: str
    attempt_no: int
    price_id: str
    usage: Usage


def owed_of(record: InferenceRecord, key_id: str | None, period: Day) -> Owed | None:
    """Return what a record will be charged for in a period; key None: of any key. None: nothing.

    A charge counts when its attempt ended, by the edge's clock. What settlement would rather hold,
    because its usage is absurd, counts until then: its rough debit did, too.
    """
    ended_us = record.started_at_us if record.finished_at_us is None else record.finished_at_us
    is_payer = key_id is None or record.api_key_id == key_id
    if record.usage is None or record.price_id is None or not is_payer or not period.has(ended_us):
        return None
    return Owed(record.inference_id, record.attempt_no, record.price_id, record.usage)
