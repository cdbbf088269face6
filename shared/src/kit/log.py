"""Structured logs: one JSON object a line on stdout. A short fixed phrase, then key and value.

Never a key, a prompt or a completion.
"""

import logging
import sys
from collections.abc import Callable

import msgspec
import structlog


def _render(_logger: object, _method: str, event: structlog.typing.EventDict) -> str:
    return msgspec.json.encode(event, enc_hook=str).decode()


def configure(
    service: str, level: str, traceparent: Callable[[], str | None] | None = None
) -> None:
    """Send structlog's and the standard library's logs to stdout as JSON lines.

    Where there are traces, `traceparent` names the span under way, which each line then tells.
    """
    shared: list[structlog.typing.Processor] = [
        structlog.contextvars.merge_contextvars,
        structlog.processors.add_log_level,
        structlog.processors.TimeStamper(fmt="iso", utc=True),
        _adder(service),
        *([] if traceparent is None else [_tracing(traceparent)]),
    ]
    structlog.configure(
        processors=[*shared, structlog.processors.format_exc_info, _render],
        wrapper_class=structlog.make_filtering_bound_logger(getattr(logging, level.upper())),
        logger_factory=structlog.WriteLoggerFactory(file=sys.stdout),
        cache_logger_on_first_use=True,
    )
    handler = logging.StreamHandler(sys.stdout)
    handler.setFormatter(
        structlog.stdlib.ProcessorFormatter(
            foreign_pre_chain=shared,
            processors=[
                structlog.stdlib.ProcessorFormatter.remove_processors_meta,
                structlog.processors.format_exc_info,
                _render,
            ],
        )
    )
    root = logging.getLogger()
    root.handlers[:] = [handler]
    root.setLevel(max(getattr(logging, level.upper()), logging.INFO))
    # It logs each request it makes, with its address.
    logging.getLogger("httpx").setLevel(logging.WARNING)


def _adder(service: str) -> structlog.typing.Processor:
    def add_service(
        _logger: object, _method: str, event: structlog.typing.EventDict
    ) -> structlog.typing.EventDict:
        event["service"] = service
        return event

    return add_service


def _tracing(traceparent: Callable[[], str | None]) -> structlog.typing.Processor:
    def add_span(
        _logger: object, _method: str, event: structlog.typing.EventDict
    ) -> structlog.typing.EventDict:
        under_way = traceparent()
        if under_way is not None:
            _, event["trace_id"], event["span_id"], _ = under_way.split("-")
        return event

    return add_span


def get(name: str) -> structlog.typing.FilteringBoundLogger:
    """Return the logger of one module."""
    logger: structlog.typing.FilteringBoundLogger = structlog.get_logger(module=name)
    return logger
