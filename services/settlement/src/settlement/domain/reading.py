"""From a message's bytes to a record that the database can hold, or the reason why not."""

import re
from dataclasses import dataclass
from enum import StrEnum

import msgspec

from contracts.contract import decode
from contracts.inference import INFERENCE_RECORDED, InferenceRecord

# Long enough for any id an edge issues, short enough for an index.
_INFERENCE_ID = re.compile(r"[!-~]{1,128}")
_SUBJECT = INFERENCE_RECORDED.wildcard.removesuffix("*")
_MAX_INT32 = 2**31 - 1
# 9999-12-31T23:59:59.999999Z: the last instant that Python can show.
_MAX_TIME_US = 253_402_300_799_999_999
_TIMES = ("started_at_us", "first_byte_at_us", "finished_at_us")
# How a NUL, which Postgres can't hold in a text, is written in JSON.
_JSON_NUL = b"\\u0000"


class RefusalKind(StrEnum):
    """Why a message becomes a dead letter."""

    UNREADABLE = "unreadable"
    """It isn't an inference record."""
    IMPOSSIBLE = "impossible"
    """It is one, but no attempt can look like this."""
    CONFLICTING = "conflicting"
    """Another record is stored under its id already."""
    REFUSED = "refused"
    """The database refused it alone."""
    UNDELIVERED = "undelivered"
    """It was delivered as often as allowed and never acknowledged."""


@dataclass(frozen=True, slots=True)
class Refusal:
    """A message that can't be settled; `detail` is for a person."""

    kind: RefusalKind
    detail: str


def read(payload: bytes, subject: str) -> InferenceRecord | Refusal:
    """Return the record of a message from the stream."""
    try:
        record = decode(payload, InferenceRecord)
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError) as error:
        return Refusal(RefusalKind.UNREADABLE, str(error))
    problem = _problem(record, subject)
    if problem is not None:
        return Refusal(RefusalKind.IMPOSSIBLE, problem)
    return _without_nul(record) if _JSON_NUL in payload else record


def _problem(record: InferenceRecord, subject: str) -> str | None:
    if subject != _SUBJECT + record.team_id:
        return "the subject names another team"
    if _INFERENCE_ID.fullmatch(record.inference_id) is None:
        return "inference_id is not 1 to 128 printable ASCII characters"
    if record.status_code is not None and not 0 <= record.status_code <= _MAX_INT32:
        return "status_code is out of range"
    for name in _TIMES:
        time_us = getattr(record, name)
        if time_us is not None and not 0 <= time_us <= _MAX_TIME_US:
            return f"{name} is out of range"
    return None


def _without_nul(record: InferenceRecord) -> InferenceRecord:
    """Return the record with the sign for "unknown character" in the place of each NUL.

    What a client or a provider wrote into a name must not keep us from charging the attempt.
    """
    changes = {
        name: value.replace("\0", "\ufffd")
        for name in record.__struct_fields__
        if isinstance(value := getattr(record, name), str) and "\0" in value
    }
    return msgspec.structs.replace(record, **changes)
