"""What becomes of a record."""

import msgspec
import pytest

from contracts.inference import InferenceRecord, Outcome, UsageSource
from contracts.usage import Usage
from settlement.domain.classification import (
    Class,
    Held,
    HeldReason,
    Pending,
    Unbillable,
    classify,
)

MAX_TOKENS = 10**9
RECORD = InferenceRecord(
    inference_id="01890000-0000-7000-8000-000000000000",
    attempt_no=1,
    team_id="team",
    api_key_id="key",
    provider="fake",
    model_asked="model",
    outcome=Outcome.SUCCEEDED,
    usage_source=UsageSource.PROVIDER,
    started_at_us=1,
    price_id="price",
    usage=Usage(input=1),
)


@pytest.mark.parametrize(
    ("changes", "expected"),
    [
        pytest.param({}, Pending(), id="usage and price"),
        pytest.param({"outcome": Outcome.ABORTED}, Pending(), id="aborted, but with usage"),
        pytest.param({"usage": Usage()}, Pending(), id="a usage of nothing is a usage"),
        pytest.param({"usage": Usage(output=MAX_TOKENS)}, Pending(), id="just not absurd"),
        pytest.param(
            {"usage": Usage(output=MAX_TOKENS + 1)}, Held(HeldReason.ABSURD_USAGE), id="absurd"
        ),
        pytest.param(
            {"usage": Usage(reasoning=2**63 - 1)},
            Held(HeldReason.ABSURD_USAGE),
            id="most absurd",
        ),
        pytest.param({"price_id": None}, Held(HeldReason.MISSING_PRICE), id="no price pinned"),
        pytest.param(
            {"usage": None, "usage_source": UsageSource.MISSING}, Unbillable(), id="no usage"
        ),
        pytest.param(
            {"usage": None, "price_id": None, "outcome": Outcome.UNKNOWN},
            Unbillable(),
            id="rebuilt from the journal",
        ),
    ],
)
def test_class_of_a_record(changes: dict[str, object], expected: Class) -> None:
    assert classify(msgspec.structs.replace(RECORD, **changes), MAX_TOKENS) == expected
