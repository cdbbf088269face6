"""How the state of the limits is written into HTTP headers."""

from collections.abc import Sequence
from datetime import UTC, datetime

from contracts.admission import LimitReason, LimitState
from contracts.windows import Window, WindowUse

_MS_PER_S = 1_000
_US_PER_MS = 1_000
_US_PER_S = 1_000_000


def rate_limit_headers(limits: LimitState) -> dict[str, str]:
    """Return the `x-ratelimit-*` headers, on success and on 429 alike.

    Six for every tier, and those of the further limits that a tier has.
    """
    headers = {
        "x-ratelimit-limit-requests": str(limits.limit_requests),
        "x-ratelimit-remaining-requests": str(limits.remaining_requests),
        "x-ratelimit-reset-requests": duration(limits.reset_requests_us),
        "x-ratelimit-limit-tokens": str(limits.limit_tokens),
        "x-ratelimit-remaining-tokens": str(limits.remaining_tokens),
        "x-ratelimit-reset-tokens": duration(limits.reset_tokens_us),
    }
    for name, rate in (
        ("input-tokens", limits.input_tokens),
        ("output-tokens", limits.output_tokens),
    ):
        if rate is not None:
            headers[f"x-ratelimit-limit-{name}"] = str(rate.limit)
            headers[f"x-ratelimit-remaining-{name}"] = str(rate.remaining)
            headers[f"x-ratelimit-reset-{name}"] = duration(rate.reset_us)
    if limits.remaining_day_requests is not None:
        headers["x-ratelimit-remaining-day-requests"] = str(limits.remaining_day_requests)
    if limits.remaining_day_tokens is not None:
        headers["x-ratelimit-remaining-day-tokens"] = str(limits.remaining_day_tokens)
    return headers


def window_headers(windows: Sequence[Window], uses: Sequence[WindowUse]) -> dict[str, str]:
    """Return the headers of an endpoint's windows; without uses they were not judged: none."""
    headers = {}
    for window, use in zip(windows, uses, strict=False):
        name = f"x-ratelimit-{window.group}-{window.label}".lower()
        headers[f"{name}-limit"] = str(window.limit)
        headers[f"{name}-remaining"] = str(max(0, window.limit - use.used))
    return headers


def shadow_header(shadowed: Sequence[LimitReason]) -> dict[str, str]:
    """Return the header that names limits in shadow mode which would have refused the request."""
    return {"x-ratelimit-shadow": ", ".join(shadowed)} if shadowed else {}


def retry_headers(retry_after_us: int) -> dict[str, str]:
    """Return the wait of a 429, rounded up to whole seconds (at least 1) and to milliseconds.

    SDKs read `retry-after-ms` first; `Retry-After` is for everybody else.
    """
    wait_ms = max(1, _ceil_ms(retry_after_us))
    return {
        "retry-after": str(-(-wait_ms // _MS_PER_S)),
        "retry-after-ms": str(wait_ms),
    }


def duration(time_us: int) -> str:
    """Return microseconds as a duration, rounded up to the millisecond.

    Written like Go's durations, which is what OpenAI sends and clients parse: `0s`, `120ms`,
    `1.2s`, `59.999s`, `1m0s`, `1h0m0s`. Never a bare number; hours are not folded into days.
    """
    total_ms = _ceil_ms(time_us)
    if 0 < total_ms < _MS_PER_S:
        return f"{total_ms}ms"
    total_s, rest_ms = divmod(total_ms, _MS_PER_S)
    total_minutes, seconds = divmod(total_s, 60)
    hours, minutes = divmod(total_minutes, 60)
    fraction = f".{rest_ms:03d}".rstrip("0") if rest_ms else ""
    if hours:
        return f"{hours}h{minutes}m{seconds}{fraction}s"
    if minutes:
        return f"{minutes}m{seconds}{fraction}s"
    return f"{seconds}{fraction}s"


def rfc3339(unix_us: int) -> str:
    """Return an instant as RFC 3339 in UTC, rounded up to the second: then it has surely come."""
    unix_s = -(-unix_us // _US_PER_S)
    return datetime.fromtimestamp(unix_s, UTC).strftime("%Y-%m-%dT%H:%M:%SZ")


def _ceil_ms(time_us: int) -> int:
    return -(-time_us // _US_PER_MS)
