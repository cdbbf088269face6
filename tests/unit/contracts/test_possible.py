"""Limits that nobody could calculate with are no limits."""

from typing import Any

import msgspec
import pytest

from contracts.limits import KeyLimits, Policy

_TIER = {"tier_id": "t", "rpm": 60, "tpm": 1_000}


@pytest.mark.parametrize(
    ("changed", "named"),
    [
        pytest.param({"rpm": 60_000_001}, "rpm", id="more rpm than microseconds"),
        pytest.param({"tpm": 10**12 + 1}, "tpm", id="absurd tpm"),
        pytest.param({"input_tpm": 0}, "input_tpm", id="nothing a minute"),
        pytest.param({"output_tpm": "many"}, "output_tpm", id="no number"),
        pytest.param({"token_burst": 10**15 + 1}, "token_burst", id="absurd burst"),
        pytest.param({"daily_tokens": -1}, "daily_tokens", id="less than none a day"),
        pytest.param({"key_rates": {"rpm": 1.5}}, "key_rates.rpm", id="half a request"),
        pytest.param({"tpm_weights": {"input": "NaN"}}, "tpm_weights", id="no weight"),
        pytest.param({"tpm_weights": {"input": "-0.1"}}, "tpm_weights", id="a negative weight"),
        pytest.param({"tpm_weights": {"input": "Infinity"}}, "tpm_weights", id="endless weight"),
        pytest.param({"tpm_weights": {"input": "1000.1"}}, "tpm_weights", id="absurd weight"),
        *(
            pytest.param(
                {"spend_limits": [{"period": "day", "limit_usd": amount}]}, "spend_limits", id=id_
            )
            for amount, id_ in (
                ("NaN", "no amount"),
                ("-1", "a negative amount"),
                ("1000000000", "an amount that is never reached"),
                ("Infinity", "an endless amount"),
            )
        ),
        pytest.param({"shadow": ["nothing"]}, "shadow", id="no limit in shadow mode"),
    ],
)
def test_an_impossible_limit_is_named(changed: dict[str, Any], named: str) -> None:
    with pytest.raises(msgspec.ValidationError, match=rf"`\$\.{named}"):
        msgspec.convert(_TIER | changed, Policy)


@pytest.mark.parametrize(
    "changed",
    [
        pytest.param({}, id="the least"),
        pytest.param({"rpm": 60_000_000, "tpm": 10**12}, id="the most a minute"),
        pytest.param({"tpm_weights": {"input": "0", "output": "1000"}}, id="weights' bounds"),
        pytest.param({"max_concurrency": 0, "daily_requests": 10**15}, id="counts' bounds"),
        pytest.param({"spend_limits": [{"period": "day", "limit_usd": "0"}]}, id="blocked"),
        pytest.param(
            {"spend_limits": [{"period": "day", "limit_usd": "999999999.999999999"}]},
            id="the most money",
        ),
    ],
)
def test_a_limit_at_its_bounds_is_one(changed: dict[str, Any]) -> None:
    policy = msgspec.convert(_TIER | changed, Policy)
    assert msgspec.json.decode(msgspec.json.encode(policy), type=Policy) == policy


def test_a_keys_own_limits_have_the_same_bounds() -> None:
    with pytest.raises(msgspec.ValidationError, match="spend_limits"):
        msgspec.convert({"spend_limits": [{"period": "day", "limit_usd": "NaN"}]}, KeyLimits)
