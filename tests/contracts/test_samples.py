"""What an earlier release wrote, this one still reads: services restart in any order."""

import json
from pathlib import Path

import msgspec
import pytest

from contracts.catalogue import BUCKETS, EVENTS, REQUESTS
from contracts.contract import decode, encode

SAMPLES = Path(__file__).parent / "samples"
MESSAGES: dict[str, type[msgspec.Struct]] = {
    **{f"{contract.subject}.request": contract.request for contract in REQUESTS},
    **{f"{contract.subject}.reply": contract.reply for contract in REQUESTS},
    **{
        f"{event.subject.replace('{', '').replace('}', '')}.event": event.message
        for event in EVENTS
    },
    **{f"{bucket.name}.value": bucket.value for bucket in BUCKETS},
}
FILES = sorted(SAMPLES.glob("*/*.json"))


@pytest.mark.parametrize("path", FILES, ids=lambda path: f"{path.parent.name}/{path.stem}")
def test_a_sample_still_parses_with_every_value_it_had(path: Path) -> None:
    sample = json.loads(path.read_bytes())
    message = decode(path.read_bytes(), MESSAGES[path.stem])
    assert sample.items() <= json.loads(encode(message)).items()


@pytest.mark.parametrize("path", FILES, ids=lambda path: f"{path.parent.name}/{path.stem}")
def test_a_sample_with_a_field_of_tomorrow_still_parses(path: Path) -> None:
    sample = json.loads(path.read_bytes())
    tomorrow = msgspec.json.encode({**sample, "field_of_tomorrow": {"deep": [1]}})
    assert decode(tomorrow, MESSAGES[path.stem]) == decode(path.read_bytes(), MESSAGES[path.stem])


def test_every_message_has_a_sample() -> None:
    assert {path.stem for path in FILES} == set(MESSAGES)


def test_the_generated_document_is_up_to_date() -> None:
    from contracts.asyncapi import document

    written = json.loads((Path(__file__).parents[2] / "docs" / "asyncapi.json").read_text())
    assert written == json.loads(json.dumps(document()))
