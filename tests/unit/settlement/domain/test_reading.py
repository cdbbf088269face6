"""From bytes to a record the database can hold."""

from typing import Any

import msgspec
import pytest

from contracts.contract import decode, encode
from contracts.inference import INFERENCE_RECORDED, InferenceRecord
from settlement.domain.reading import Refusal, RefusalKind, read

SUBJECT = INFERENCE_RECORDED.subject_for("team")
FIELDS: dict[str, Any] = {
    "inference_id": "01890000-0000-7000-8000-000000000000",
    "attempt_no": 1,
    "team_id": "team",
    "api_key_id": "key",
    "provider": "fake",
    "model_asked": "model",
    "outcome": "succeeded",
    "usage_source": "provider",
    "started_at_us": 1_700_000_000_000_000,
}


def _payload(**changes: object) -> bytes:
    return msgspec.json.encode(FIELDS | changes)


def test_a_record_is_read_as_it_was_written() -> None:
    record = decode(_payload(usage={"input": 3}), InferenceRecord)
    assert read(encode(record), SUBJECT) == record


def test_fields_of_tomorrow_are_ignored() -> None:
    assert isinstance(read(_payload(field_of_tomorrow=[1]), SUBJECT), InferenceRecord)


@pytest.mark.parametrize(
    "payload",
    [
        pytest.param(b"", id="nothing"),
        pytest.param(b"\xff\xfe", id="not UTF-8"),
        pytest.param(b"{", id="half a message"),
        pytest.param(b"[]", id="not an object"),
        pytest.param(b"[" * 100_000, id="deeper than any message"),
        pytest.param(_payload(attempt_no="1"), id="a number as text"),
        pytest.param(_payload(usage={"input": -1}), id="negative usage"),
        pytest.param(_payload(usage={"input": 1.5}), id="half a token"),
        pytest.param(_payload(outcome="maybe"), id="an outcome that we don't know"),
        pytest.param(_payload(team_id="a}b"), id="a brace in the team id"),
        pytest.param(_payload(team_id="team\n"), id="a line break in the team id"),
        pytest.param(_payload(attempt_no=0), id="attempt 0"),
        pytest.param(_payload(attempt_no=2**31), id="an attempt beyond 32 bits"),
        pytest.param(_payload(usage={"input": 2**63}), id="usage beyond 64 bits"),
        pytest.param(_payload().replace(b'"model"', b'"\\ud800"'), id="half a surrogate pair"),
    ],
)
def test_unreadable(payload: bytes) -> None:
    refusal = read(payload, SUBJECT)
    assert isinstance(refusal, Refusal)
    assert refusal.kind is RefusalKind.UNREADABLE
    assert refusal.detail


@pytest.mark.parametrize(
    ("changes", "named"),
    [
        pytest.param({"team_id": "other"}, "subject", id="another team's subject"),
        pytest.param({"inference_id": ""}, "inference_id", id="an empty id"),
        pytest.param({"inference_id": "a" * 129}, "inference_id", id="a long id"),
        pytest.param({"inference_id": "a\0b"}, "inference_id", id="a NUL in the id"),
        pytest.param({"inference_id": "a b"}, "inference_id", id="a blank in the id"),
        pytest.param({"status_code": -1}, "status_code", id="a negative status"),
        pytest.param({"status_code": 2**31}, "status_code", id="a status beyond 32 bits"),
        pytest.param({"started_at_us": -1}, "started_at_us", id="before 1970"),
        pytest.param({"finished_at_us": 10**18}, "finished_at_us", id="after the year 9999"),
    ],
)
def test_impossible(changes: dict[str, object], named: str) -> None:
    refusal = read(_payload(**changes), SUBJECT)
    assert isinstance(refusal, Refusal)
    assert refusal.kind is RefusalKind.IMPOSSIBLE
    assert named in refusal.detail


def test_a_nul_in_a_name_does_not_keep_the_record_from_being_charged() -> None:
    record = read(_payload(model_served="a\0b", usage={"input": 7}), SUBJECT)
    assert isinstance(record, InferenceRecord)
    assert record.model_served == "a\ufffdb"
    assert record.usage is not None
    assert record.usage.input == 7


def test_the_text_of_an_escaped_nul_stays_as_it_is() -> None:
    record = read(_payload(usage_reported='{"a":"\\u0000"}'), SUBJECT)
    assert isinstance(record, InferenceRecord)
    assert record.usage_reported == '{"a":"\\u0000"}'
