"""What a record adds to spend: its charge, when its attempt ended, to who pays for it."""

from typing import Any

import pytest

from contracts.inference import InferenceRecord, Outcome, UsageSource
from contracts.usage import Usage
from tier_cache.domain.days import Day
from tier_cache.domain.spends import Owed, owed_of

PERIOD = Day(1_000, 2_000)
USAGE = Usage(input=5, output=2)


@pytest.mark.parametrize(
    ("changed", "key_id", "counts"),
    [
        pytest.param({}, None, True, id="the team pays"),
        pytest.param({}, "k", True, id="the key pays"),
        pytest.param({}, "other", False, id="another key pays"),
        pytest.param({"finished_at_us": 1_000}, None, True, id="ended in the first instant"),
        pytest.param({"finished_at_us": 2_000}, None, False, id="ended in the next period"),
        pytest.param({"started_at_us": 1}, None, True, id="began before, ended in it"),
        pytest.param({"finished_at_us": None}, None, True, id="without an end: when it began"),
        pytest.param(
            {"started_at_us": 2_000, "finished_at_us": None}, None, False, id="began after it"
        ),
        pytest.param({"usage": None}, None, False, id="unknown spend"),
        pytest.param({"price_id": None}, None, False, id="no price is pinned"),
        pytest.param({"outcome": Outcome.ABORTED}, None, True, id="whatever the outcome"),
    ],
)
def test_a_charge_counts(changed: dict[str, Any], key_id: str | None, counts: bool) -> None:
    record: dict[str, Any] = {
        "inference_id": "i",
        "attempt_no": 2,
        "team_id": "t",
        "api_key_id": "k",
        "provider": "p",
        "model_asked": "m",
        "outcome": Outcome.SUCCEEDED,
        "usage_source": UsageSource.PROVIDER,
        "started_at_us": 1_500,
        "finished_at_us": 1_999,
        "price_id": "p",
        "usage": USAGE,
    }
    owed = Owed("i", 2, "p", USAGE) if counts else None
    assert owed_of(InferenceRecord(**(record | changed)), key_id, PERIOD) == owed
