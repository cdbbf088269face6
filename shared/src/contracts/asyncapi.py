"""Write the catalogue as an AsyncAPI 3 document: `python -m contracts.asyncapi`."""

import json
import sys
from typing import Any

import msgspec

from contracts.catalogue import BUCKETS, EVENTS, REQUESTS, STREAMS
from contracts.contract import TRACEPARENT, Event, RequestReply
from contracts.errors import SENTENCES

Json = dict[str, Any]

_TRACE_CONTEXT = "TraceContext"


def _channel_name(subject: str) -> str:
    return subject.replace("{", "").replace("}", "").replace(".", "_")


def _reference(kind: str, name: str) -> Json:
    return {"$ref": f"#/{kind}/{name}"}


def _message(message: type[msgspec.Struct], schemas: Json, *, is_traced: bool = False) -> Json:
    (schema,), components = msgspec.json.schema_components(
        [message], ref_template="#/components/schemas/{name}"
    )
    schemas.update(components)
    described = {"name": message.__name__, "contentType": "application/json", "payload": schema}
    return described | _headers(is_traced=is_traced)


def _headers(*, is_traced: bool) -> Json:
    return {"headers": _reference("components/schemas", _TRACE_CONTEXT)} if is_traced else {}


def _trace_context() -> Json:
    return {
        "type": "object",
        "properties": {
            TRACEPARENT: {
                "type": "string",
                "description": "W3C Trace Context: the span that sent the message, where that is"
                " recorded. Without it, or with a wrong one, nothing else changes.",
            }
        },
    }


def _channel(subject: str, messages: Json, summary: str) -> Json:
    channel: Json = {"address": subject, "summary": summary, "messages": messages}
    if "{" in subject:
        name = subject.partition("{")[2].rstrip("}")
        channel["parameters"] = {name: {"description": f"The {name.replace('_', ' ')} concerned."}}
    return channel


def _add_request(document: Json, contract: RequestReply[Any, Any]) -> None:
    name = _channel_name(contract.subject)
    schemas = document["components"]["schemas"]
    document["channels"][name] = _channel(
        contract.subject,
        {
            "request": _message(contract.request, schemas, is_traced=True),
            "reply": _message(contract.reply, schemas),
        },
        contract.summary,
    )
    document["operations"][f"{name}_serve"] = {
        "action": "receive",
        "title": f"Served by {contract.served_by}",
        "summary": contract.summary,
        "channel": _reference("channels", name),
        "messages": [_reference(f"channels/{name}/messages", "request")],
        "reply": {
            "address": {"location": "$message.header#/reply", "description": "The NATS inbox."},
            "channel": _reference("channels", name),
            "messages": [_reference(f"channels/{name}/messages", "reply")],
        },
        "bindings": {"nats": {"queue": contract.served_by}},
        "x-served-by": contract.served_by,
    }


def _add_event(document: Json, contract: Event[Any]) -> None:
    name = _channel_name(contract.subject)
    schemas = document["components"]["schemas"]
    document["channels"][name] = _channel(
        contract.subject,
        {"event": _message(contract.message, schemas, is_traced=contract.is_traced)},
        contract.summary,
    )
    document["operations"][f"{name}_emit"] = {
        "action": "send",
        "title": f"Emitted by {' and '.join(contract.emitted_by)}",
        "summary": contract.summary,
        "channel": _reference("channels", name),
        "messages": [_reference(f"channels/{name}/messages", "event")],
        "x-emitted-by": list(contract.emitted_by),
        "x-stream": contract.stream,
    }


def document() -> Json:
    """Return the AsyncAPI document of the whole catalogue."""
    result: Json = {
        "asyncapi": "3.0.0",
        "info": {
            "title": "Quotagate on NATS",
            "version": "1",
            "description": "Generated from shared/src/contracts; do not edit.",
        },
        "defaultContentType": "application/json",
        "channels": {},
        "operations": {},
        "components": {"schemas": {_TRACE_CONTEXT: _trace_context()}},
        "x-error-codes": {code.value: sentence for code, sentence in SENTENCES.items()},
        "x-streams": [
            {
                "name": stream.name,
                "subjects": list(stream.subjects),
                "owner": stream.owner,
                "summary": stream.summary,
                "duplicate_window_s": stream.duplicate_window_s,
                "max_bytes": stream.max_bytes,
                "max_age_s": stream.max_age_s,
            }
            for stream in STREAMS
        ],
        "x-buckets": [
            {
                "name": bucket.name,
                "user": bucket.user,
                "summary": bucket.summary,
                "value": _reference("components/schemas", bucket.value.__name__),
                "max_age_s": bucket.max_age_s,
                "max_bytes": bucket.max_bytes,
                "max_value_bytes": bucket.max_value_bytes,
            }
            for bucket in BUCKETS
        ],
    }
    for bucket in BUCKETS:
        _message(bucket.value, result["components"]["schemas"])
    for request in REQUESTS:
        _add_request(result, request)
    for event in EVENTS:
        _add_event(result, event)
    return result


if __name__ == "__main__":
    sys.stdout.write(json.dumps(document(), indent=2, sort_keys=True) + "\n")
