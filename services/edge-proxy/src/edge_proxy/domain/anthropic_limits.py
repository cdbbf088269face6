"""The state of the limits in the headers that Anthropic's clients know, beside ours."""

from datetime import UTC, datetime

from contracts.limits import LimitState, RateState

_US_PER_S = 1_000_000
_LAST_S = int(datetime(9999, 12, 31, 23, 59, 59, tzinfo=UTC).timestamp())


def anthropic_limit_headers(limits: LimitState, now_us: int) -> dict[str, str]:
    """Return the `anthropic-ratelimit-*` headers; `now_us` is unix time by the edge's clock.

    A reset is the instant at which the debt is paid off: RFC 3339, rounded up to the second.
    """
    requests = RateState(
        limit=limits.limit_requests,
        remaining=limits.remaining_requests,
        reset_us=limits.reset_requests_us,
    )
    tokens = RateState(
        limit=limits.limit_tokens,
        remaining=limits.remaining_tokens,
        reset_us=limits.reset_tokens_us,
    )
    return {
        **_rate("requests", requests, now_us),
        **_rate("tokens", tokens, now_us),
        **_rate("input-tokens", limits.input_tokens, now_us),
        **_rate("output-tokens", limits.output_tokens, now_us),
    }


def _rate(name: str, rate: RateState | None, now_us: int) -> dict[str, str]:
    if rate is None:
        return {}
    return {
        f"anthropic-ratelimit-{name}-limit": str(rate.limit),
        f"anthropic-ratelimit-{name}-remaining": str(rate.remaining),
        f"anthropic-ratelimit-{name}-reset": _instant(now_us + rate.reset_us),
    }


def _instant(time_us: int) -> str:
    # Nobody waits beyond the last year that can be written.
    time_s = min(-(-time_us // _US_PER_S), _LAST_S)
    return datetime.fromtimestamp(time_s, UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
