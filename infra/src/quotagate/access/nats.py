"""The NATS users: each service may serve, ask, emit and follow what the catalogue gives it.

A missing permission shows as a time-out at the caller; the server logs each violation.
"""

import json
from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any

from contracts import admission, cache, control, inference
from contracts.catalogue import EVENTS, REQUESTS, STREAMS
from contracts.contract import Event, RequestReply

OPERATOR = "operator"


@dataclass(frozen=True, slots=True)
class Use:
    """What a service does on the bus beyond what it serves and emits (that is in the catalogue)."""

    asks: tuple[RequestReply[Any, Any], ...] = ()
    follows: tuple[Event[Any], ...] = ()
    """Events it receives, by a subscription or a consumer of their stream."""
    trims: tuple[str, ...] = ()
    """Streams it removes messages from."""


USES: Mapping[str, Use] = MappingProxyType(
    {
        "edge-proxy": Use(
            asks=(admission.PREFLIGHT, admission.POSTFLIGHT, cache.KEY_RESOLVE),
            follows=(control.KEY_REVOKED,),
        ),
        "admission": Use(
            asks=(cache.TIER_RESOLVE, cache.BALANCE_FILL, cache.POLICIES, cache.PRICES),
            follows=(control.POLICY_CHANGED, control.PRICE_CHANGED),
        ),
        "tier-cache": Use(follows=(control.TIER_CHANGED, control.ACCOUNT_ADJUSTED)),
        "settlement": Use(
            follows=(inference.INFERENCE_RECORDED,), trims=(inference.INFERENCE_RECORDS.name,)
        ),
        "control-plane": Use(
            asks=(admission.LIMITS, cache.POLICIES),
        ),
    }
)


def _publishes(service: str, use: Use) -> list[str]:
    followed = sorted({event.stream for event in use.follows})
    return [
        *(request.subject for request in use.asks),
        *(event.wildcard for event in EVENTS if service in event.emitted_by),
        "$JS.API.INFO",
        "$JS.API.STREAM.NAMES",
        *(f"$JS.API.STREAM.INFO.{stream.name}" for stream in STREAMS),
        *(
            subject
            for stream in followed
            for subject in (
                f"$JS.API.CONSUMER.CREATE.{stream}.>",
                f"$JS.API.CONSUMER.DURABLE.CREATE.{stream}.>",
                f"$JS.API.CONSUMER.DELETE.{stream}.>",
                f"$JS.API.CONSUMER.INFO.{stream}.>",
                f"$JS.API.CONSUMER.NAMES.{stream}",
                f"$JS.API.CONSUMER.MSG.NEXT.{stream}.>",
                f"$JS.API.STREAM.MSG.GET.{stream}",
                f"$JS.API.DIRECT.GET.{stream}.>",
                f"$JS.API.DIRECT.GET.{stream}",
                f"$JS.ACK.{stream}.>",
                f"$JS.FC.{stream}.>",
            )
        ),
        *(f"$JS.API.STREAM.PURGE.{stream}" for stream in use.trims),
        *(f"$JS.API.STREAM.MSG.DELETE.{stream}" for stream in use.trims),
    ]


def _subscribes(service: str, use: Use) -> list[str]:
    return [
        "_INBOX.>",
        "$SRV.>",
        *(request.subject for request in REQUESTS if request.served_by == service),
        *(event.wildcard for event in use.follows),
        *(
            f"$JS.EVENT.ADVISORY.CONSUMER.{advisory}.{stream}.>"
            for stream in sorted({event.stream for event in use.follows})
            for advisory in ("MAX_DELIVERIES", "MSG_TERMINATED")
        ),
    ]


def permissions(service: str) -> dict[str, object]:
    """Return a service's permissions in the form of the server's configuration."""
    use = USES[service]
    return {
        "publish": {"allow": _publishes(service, use)},
        "subscribe": {"allow": _subscribes(service, use)},
        # An answer may go to whoever asked; nobody may write to inboxes otherwise.
        "allow_responses": {"max": 1, "expires": "1m"},
    }


def configuration(passwords: Mapping[str, str]) -> str:
    """Return the users' part of the server's configuration; the operator may do everything.

    A password must not look like a number to the configuration's reader.
    """
    users: list[dict[str, object]] = [{"user": OPERATOR, "password": passwords[OPERATOR]}]
    users.extend(
        {
            "user": service,
            "password": passwords[service],
            "permissions": permissions(service),
        }
        for service in USES
    )
    return f"authorization: {json.dumps({'users': users}, indent=2)}\n"
