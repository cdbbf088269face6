"""Every case of the rate-limit specification, against the model and the headers."""

import json
from pathlib import Path
from typing import Any

import pytest

from admission.domain.gcra import Admitted, Limited, limit_state, postflight, preflight
from contracts.admission import Policy
from edge_proxy.domain.ratelimit_headers import rate_limit_headers, retry_headers

VECTORS: list[dict[str, Any]] = json.loads(
    (Path(__file__).parents[3] / "spec" / "rate_limit_vectors.json").read_text(encoding="utf-8")
)


def named(op: str) -> list[Any]:
    return [pytest.param(case, id=case["name"]) for case in VECTORS if case["op"] == op]


def policy_of(case: dict[str, Any]) -> Policy:
    return Policy(tier_id="tier", **case["policy"])


def test_all_cases_are_run() -> None:
    assert len(named("preflight")) + len(named("postflight")) == len(VECTORS) == 75


@pytest.mark.parametrize("case", named("preflight"))
def test_preflight(case: dict[str, Any]) -> None:
    policy, now_us, expect = policy_of(case), case["now_us"], case["expect"]

    decision = preflight(policy, now_us, case["request_tat_us"], case["token_tat_us"])

    if expect["allowed"]:
        assert decision == Admitted(expect["request_tat_us"])
    else:
        assert isinstance(decision, Limited)
        assert decision.limited_by == expect["limited_by"]
        assert retry_headers(decision.retry_after_us)["retry-after"] == str(expect["retry_after_s"])
        assert case["request_tat_us"] == expect["request_tat_us"]
    assert case["token_tat_us"] == expect["token_tat_us"]
    state = limit_state(policy, now_us, expect["request_tat_us"], expect["token_tat_us"])
    assert rate_limit_headers(state) == expect["headers"]


@pytest.mark.parametrize("case", named("postflight"))
def test_postflight(case: dict[str, Any]) -> None:
    policy, now_us, expect = policy_of(case), case["now_us"], case["expect"]

    token_tat_us = postflight(policy, now_us, case["token_tat_us"], case["tokens"])

    assert token_tat_us == expect["token_tat_us"]
    assert case["request_tat_us"] == expect["request_tat_us"]
    state = limit_state(policy, now_us, case["request_tat_us"], token_tat_us)
    assert rate_limit_headers(state) == expect["headers"]
