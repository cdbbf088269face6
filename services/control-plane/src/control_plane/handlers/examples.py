"""Examples for OpenAPI: one team's first day, the same ids throughout."""

from typing import Any

from pydantic import ConfigDict

from contracts.control import TIER_CHANGED

Json = dict[str, Any]

_EVENT_ID = "0199c1f0-5b7a-7d39-9a2e-0c9d8a1f4e21"
_PRICE_ID = "5f0e8d5c-7f0a-4b1e-9c2d-3a4b5c6d7e8f"
_INFERENCE_ID = "0199c1f2-88aa-7c01-b3f4-6d5e4c3b2a19"
_MORNING = "2030-01-31T08:00:00.000000Z"
_NOON = "2030-01-31T12:00:00.000000Z"

NEW_TEAM: Json = {"team_id": "demo", "name": "Demo", "tier_id": "tier_1"}
TEAM: Json = NEW_TEAM | {"tier_version": 1, "created_at": _MORNING}
CHANGED_TEAM: Json = TEAM | {"tier_id": "tier_2", "tier_version": 2, "event_id": _EVENT_ID}

KEY_LIMITS: Json = {
    "rpm": 5,
    "tpm": None,
    "request_burst": 2,
    "token_burst": 0,
    "spend_limits": [
        {
            "period": "month",
            "scope": "key",
            "limit_usd": "20",
            "mode": "hard",
            "thresholds": [80, 100],
        }
    ],
    "shadow": [],
}
NEW_KEY: Json = {
    "name": "batch jobs",
    "allowed_models": ["gpt-4o-mini"],
    "limits": KEY_LIMITS,
    "expires_at": _NOON,
}
KEY_CHANGE: Json = {"limits": KEY_LIMITS}
KEY: Json = NEW_KEY | {
    "key_id": "zJ8pQ2wXr4TnB6vK",
    "team_id": "demo",
    "created_at": _MORNING,
    "revoked_at": None,
    "old_secret_until": None,
    "problem": None,
}
ROTATION: Json = {"overlap_s": 3600}
CREATED_KEY: Json = KEY | {"key": "qg_zJ8pQ2wXr4TnB6vK_<the secret and its checksum>"}
ROTATED_KEY: Json = CREATED_KEY | {"old_secret_until": _NOON, "event_id": _EVENT_ID}
CHANGED_KEY: Json = KEY | {"event_id": _EVENT_ID}
REVOKED_KEY: Json = KEY | {"revoked_at": _NOON, "event_id": _EVENT_ID}

TIER_NUMBERS: Json = {
    "rpm": 20,
    "tpm": 100_000,
    "request_burst": 0,
    "token_burst": 0,
    "input_tpm": 80_000,
    "output_tpm": 20_000,
    "input_token_burst": 10_000,
    "output_token_burst": 0,
    "tpm_weights": {
        "input": "1",
        "cache_read": "0.1",
        "cache_write_5m": "1",
        "cache_write_1h": "1",
        "output": "1",
        "reasoning": "1",
    },
    "max_concurrency": 5,
    "daily_requests": 1_000,
    "daily_tokens": 5_000_000,
    "time_zone": "Europe/Berlin",
    "key_rates": {"rpm": 10, "tpm": None, "request_burst": 5, "token_burst": 0},
    "model_rates": {
        "gpt-4o-mini": {"rpm": None, "tpm": 50_000, "request_burst": 0, "token_burst": 0}
    },
    "spend_limits": [
        {
            "period": "day",
            "scope": "team",
            "limit_usd": "25",
            "mode": "hard",
            "thresholds": [50, 80, 95, 100],
        }
    ],
    "shadow": ["model_tokens"],
}
TIER: Json = TIER_NUMBERS | {
    "tier_id": "tier_1",
    "problem": None,
    "version": 1,
    "created_at": _MORNING,
    "updated_at": _MORNING,
}
WRITTEN_TIER: Json = TIER | {"event_id": _EVENT_ID}

NEW_CREDIT: Json = {"amount": "10.00", "reason": "Invoice paid", "reference": "INV-2031"}
NEW_ADJUSTMENT: Json = {"amount": "-2.50", "reason": "Credited twice"}
LEDGER_ENTRY: Json = {
    "entry_id": 1,
    "team_id": "demo",
    "direction": "CREDIT",
    "reason": "CREDIT",
    "amount": "10",
    "balance_after": "10",
    "account_version": 1,
    "reference": "INV-2031",
    "note": "Invoice paid",
    "created_at": _MORNING,
}
POSTED_ENTRY: Json = LEDGER_ENTRY | {"event_id": _EVENT_ID}
ACCOUNT: Json = {
    "team_id": "demo",
    "balance": "9.999901",
    "version": 2,
    "cached": {"balance": "9.999901", "version": 2},
    "cached_note": None,
}

NEW_PRICE: Json = {
    "provider": "openai",
    "model": "gpt-4o-mini",
    "usd_per_million": {"input": "0.15", "cache_read": "0.075", "output": "0.60"},
}
PRICE: Json = NEW_PRICE | {
    "price_id": _PRICE_ID,
    "usd_per_million": {
        "input": "0.15",
        "cache_read": "0.075",
        "cache_write_5m": "0.15",
        "cache_write_1h": "0.15",
        "output": "0.6",
        "reasoning": "0.6",
    },
    "effective_from": _MORNING,
    "created_at": _MORNING,
}
ADDED_PRICE: Json = PRICE | {"event_id": _EVENT_ID}

RATE_STATE: Json = {"limit": 80_000, "remaining": 79_600, "reset_us": 300_000}
EXPLANATION: Json = {
    "reason": "requests",
    "scope": "team",
    "limit": 20,
    "known": True,
    "used": 1,
    "remaining": 0,
    "reset_us": 2_000_000,
    "retry_after_us": 2_000_000,
    "shadow": False,
    "window": None,
    "usd": None,
}
LIMITS: Json = {
    "team_id": "demo",
    "now_us": 1_896_091_200_000_000,
    "tier_id": "tier_1",
    "balance_negative": False,
    "request_tat_us": 1_896_091_202_000_000,
    "token_tat_us": 1_896_091_200_324_000,
    "limits": {
        "limit_requests": 20,
        "remaining_requests": 0,
        "reset_requests_us": 2_000_000,
        "limit_tokens": 100_000,
        "remaining_tokens": 99_460,
        "reset_tokens_us": 324_000,
        "input_tokens": RATE_STATE,
        "output_tokens": None,
        "remaining_day_requests": 999,
        "remaining_day_tokens": None,
    },
    "decides": "requests",
    "problem": None,
    "explained": [EXPLANATION],
}

RECORD: Json = {
    "record_id": 1,
    "inference_id": _INFERENCE_ID,
    "attempt_no": 1,
    "team_id": "demo",
    "api_key_id": "zJ8pQ2wXr4TnB6vK",
    "endpoint": "/v1/chat/completions",
    "provider": "openai",
    "model_asked": "gpt-4o-mini",
    "model_sent": "gpt-4o-mini",
    "model_served": "gpt-4o-mini-2024-07-18",
    "price_id": _PRICE_ID,
    "tier_id": "tier_1",
    "state": "SETTLED",
    "held_reason": None,
    "outcome": "succeeded",
    "usage_source": "provider",
    "usage": {
        "input": 500,
        "cache_read": 0,
        "cache_write_5m": 0,
        "cache_write_1h": 0,
        "output": 40,
        "reasoning": 0,
    },
    "usage_reported": '{"prompt_tokens":500,"completion_tokens":40,"total_tokens":540}',
    "charge": {
        "amount": "0.000099",
        "price_id": _PRICE_ID,
        "ledger_entry_id": 2,
        "created_at": _NOON,
    },
    "provider_request_id": "req_7",
    "streaming": False,
    "client_gone": False,
    "status_code": 200,
    "trace_id": "4bf92f3577b34da6a3ce929d0e0e4736",
    "started_at": _NOON,
    "first_byte_at": _NOON,
    "finished_at": _NOON,
    "received_at": _NOON,
    "settled_at": _NOON,
}
INFERENCE: Json = {
    "inference_id": _INFERENCE_ID,
    "team_id": "demo",
    "charged": "0.000099",
    "attempts": [RECORD],
}

EVENT: Json = {
    "event_id": _EVENT_ID,
    "subject": TIER_CHANGED.subject_for("demo"),
    "message": {
        "team_id": "demo",
        "tier_id": "tier_2",
        "version": 2,
        "changed_at_us": 1_896_091_200_000_000,
    },
    "created_at": _NOON,
    "published_at": _NOON,
}

DELIVERY: Json = {
    "message_id": "spend-0f3b1c2d4e5f60718293a4b5c6d7e8f90a1b2c3d",
    "type": "spend.threshold",
    "data": {
        "team_id": "demo",
        "period": "day",
        "starts_at_us": 1_896_048_000_000_000,
        "ends_at_us": 1_896_134_400_000_000,
        "limit_usd": "25",
        "mode": "hard",
        "threshold_percent": 80,
        "spent_usd": "20.000099",
        "crossed_at_us": 1_896_091_200_000_000,
    },
    "created_at": _NOON,
    "attempts": 1,
    "next_attempt_at": None,
    "last_status": 204,
    "last_error": None,
    "delivered_at": _NOON,
    "given_up_at": None,
}


def shown(example: Json) -> ConfigDict:
    """Return the configuration of a model that OpenAPI shows with this example."""
    return ConfigDict(json_schema_extra={"examples": [example]})
