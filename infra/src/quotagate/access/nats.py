"""The NATS users: each service may serve, ask, emit and follow what the catalogue gives it.

A missing permission shows as a time-out at the caller; the server logs each violation.
"""

import json
from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any

from contracts import admission, cache, control, dead, inference, windows
from contracts.catalogue import BUCKETS, EVENTS, REQUESTS, STREAMS
from contracts.contract import Event, RequestReply, Stream

OPERATOR = "operator"


@dataclass(frozen=True, slots=True)
class Use:
    """What a service does on the bus beyond what it serves and emits (that is in the catalogue)."""

    asks: tuple[RequestReply[Any, Any], ...] = ()
    hears: tuple[Event[Any], ...] = ()
    """Events that each of its processes subscribes to."""
    consumes: tuple[Stream, ...] = ()
    """Streams that it pulls from, through a consumer that its replicas share."""
    looks: tuple[Stream, ...] = ()
    """Streams that it reads single messages of, and how far their owner is with them."""
    trims: tuple[Stream, ...] = ()
    """Streams it removes messages from."""


USES: Mapping[str, Use] = MappingProxyType(
    {
        "edge-proxy": Use(
            asks=(
                admission.PREFLIGHT,
                admission.POSTFLIGHT,
                admission.LEASE_RENEW,
                admission.LEASE_RELEASE,
                windows.WINDOWS,
                cache.KEY_RESOLVE,
            ),
            hears=(control.KEY_REVOKED, control.KEY_CHANGED),
        ),
        "admission": Use(
            asks=(
                cache.TIER_RESOLVE,
                cache.BALANCE_FILL,
                cache.DAY_FILL,
                cache.SPEND_FILL,
                cache.POLICIES,
                cache.PRICES,
            ),
            hears=(control.POLICY_CHANGED, control.PRICE_CHANGED),
        ),
        "tier-cache": Use(consumes=(control.CONTROL_EVENTS,), looks=(inference.INFERENCE_RECORDS,)),
        "settlement": Use(
            consumes=(inference.INFERENCE_RECORDS, dead.DEAD_LETTERS),
            trims=(inference.INFERENCE_RECORDS,),
        ),
        "control-plane": Use(asks=(admission.LIMITS, windows.ENDPOINT_WINDOWS)),
    }
)


def _publishes(service: str, use: Use) -> list[str]:
    return [
        *(request.subject for request in use.asks),
        *(event.wildcard for event in EVENTS if service in event.emitted_by),
        # Whether those it asks are there.
        "$SRV.PING.>",
        "$JS.API.INFO",
        *(f"$JS.API.STREAM.INFO.{stream.name}" for stream in STREAMS),
        # The owner of a stream makes it where nobody has yet.
        *(
            f"$JS.API.STREAM.{verb}.{stream.name}"
            for stream in STREAMS
            if stream.owner == service
            for verb in ("CREATE", "UPDATE")
        ),
        *(subject for stream in use.consumes for subject in _consumer_subjects(stream.name)),
        *(
            subject
            for stream in use.looks
            for subject in (
                f"$JS.API.CONSUMER.INFO.{stream.name}.{stream.owner}",
                f"$JS.API.STREAM.MSG.GET.{stream.name}",
            )
        ),
        *(
            subject
            for bucket in BUCKETS
            if bucket.user == service
            for subject in (
                bucket.wildcard,
                f"$JS.API.STREAM.INFO.{bucket.stream}",
                f"$JS.API.DIRECT.GET.{bucket.stream}.>",
            )
        ),
        *(
            f"$JS.API.STREAM.{verb}.{stream.name}"
            for stream in use.trims
            for verb in ("PURGE", "MSG.DELETE")
        ),
    ]


def _consumer_subjects(stream: str) -> tuple[str, ...]:
    return (
        f"$JS.API.CONSUMER.CREATE.{stream}.>",
        f"$JS.API.CONSUMER.DURABLE.CREATE.{stream}.>",
        f"$JS.API.CONSUMER.INFO.{stream}.>",
        f"$JS.API.CONSUMER.MSG.NEXT.{stream}.>",
        f"$JS.API.STREAM.MSG.GET.{stream}",
        f"$JS.API.DIRECT.GET.{stream}",
        f"$JS.API.DIRECT.GET.{stream}.>",
        f"$JS.ACK.{stream}.>",
    )


def _subscribes(service: str, use: Use) -> list[str]:
    return [
        # Answers to its own questions only: kit.bus.connection asks for this prefix.
        f"_INBOX.{service}.>",
        *(
            subject
            for verb in ("PING", "INFO", "STATS")
            for subject in (
                f"$SRV.{verb}",
                f"$SRV.{verb}.{service}",
                f"$SRV.{verb}.{service}.*",
            )
        ),
        *(request.subject for request in REQUESTS if request.served_by == service),
        *(event.wildcard for event in use.hears),
        *(
            f"$JS.EVENT.ADVISORY.CONSUMER.{advisory}.{stream.name}.>"
            for stream in use.consumes
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
