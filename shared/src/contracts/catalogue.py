"""Every contract, once. Nothing else in the repository spells a subject."""

from typing import Any

from contracts import admission, cache, control, dead, idempotency, inference, responses, windows
from contracts.contract import Bucket, Event, RequestReply, Stream

REQUESTS: tuple[RequestReply[Any, Any], ...] = (
    admission.PREFLIGHT,
    admission.POSTFLIGHT,
    admission.LEASE_RENEW,
    admission.LEASE_RELEASE,
    admission.LIMITS,
    windows.WINDOWS,
    windows.ENDPOINT_WINDOWS,
    cache.KEY_RESOLVE,
    cache.TIER_RESOLVE,
    cache.BALANCE_FILL,
    cache.DAY_FILL,
    cache.SPEND_FILL,
    cache.POLICIES,
    cache.PRICES,
)

EVENTS: tuple[Event[Any], ...] = (
    inference.INFERENCE_RECORDED,
    control.TIER_CHANGED,
    control.POLICY_CHANGED,
    control.KEY_REVOKED,
    control.KEY_CHANGED,
    control.ACCOUNT_ADJUSTED,
    control.PRICE_CHANGED,
    control.SPEND_THRESHOLD,
    dead.DEAD_LETTERED,
)

STREAMS: tuple[Stream, ...] = (
    inference.INFERENCE_RECORDS,
    control.CONTROL_EVENTS,
    dead.DEAD_LETTERS,
)

BUCKETS: tuple[Bucket[Any], ...] = (idempotency.IDEMPOTENCY, responses.STORED_RESPONSES)
