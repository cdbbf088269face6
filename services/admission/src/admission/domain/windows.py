"""Sliding windows of endpoints: the model of `lua/parts/window.lua`, and which refusal is told.

A log holds when each request was let in, in microseconds of the Redis clock. A request counts for
exactly its window's length: at `entered + length` it has left.
"""

from collections.abc import Sequence

from contracts.limits import LimitExplanation, LimitReason, LimitScope, Refusal
from contracts.windows import Window, WindowUse

Log = tuple[int, ...]


def counting(window: Window, log: Log, now_us: int) -> Log:
    """Return the requests that count, oldest first.

    One further ahead than the window is long is of before the server's clock was stepped back.
    """
    first_us, last_us = now_us - window.length_us + 1, now_us + window.length_us
    return tuple(at_us for at_us in sorted(log) if first_us <= at_us <= last_us)


def use_of(window: Window, log: Log, now_us: int) -> WindowUse:
    """Return a window's use before a decision."""
    count = counting(window, log, now_us)
    if len(count) < window.limit:
        return WindowUse(used=len(count))
    return WindowUse(
        used=len(count),
        admits_at_us=count[-window.limit] + window.length_us,
        empty_at_us=count[-1] + window.length_us,
    )


def entered(windows: Sequence[Window], logs: Sequence[Log], now_us: int) -> tuple[Log, ...] | None:
    """Return the logs, oldest first, with one more request; None: it is refused, none changes."""
    uses = [use_of(window, log, now_us) for window, log in zip(windows, logs, strict=True)]
    if decider(windows, uses) is not None:
        return None
    return tuple(
        log if use.admits_at_us else tuple(sorted((*counting(window, log, now_us), now_us)))
        for window, log, use in zip(windows, logs, uses, strict=True)
    )


def decider(windows: Sequence[Window], uses: Sequence[WindowUse]) -> int | None:
    """Return the position of the window that refuses for longest, of equal ones the first."""
    refusing = [
        position
        for position, (window, use) in enumerate(zip(windows, uses, strict=True))
        if use.admits_at_us and not window.shadow
    ]
    return max(refusing, key=lambda position: uses[position].admits_at_us, default=None)


def told(
    windows: Sequence[Window], uses: Sequence[WindowUse], scope: LimitScope, now_us: int
) -> tuple[Refusal, int] | None:
    """Return what is told of the window that decides, and its wait in µs; None: none refuses."""
    position = decider(windows, uses)
    if position is None:
        return None
    window, use = windows[position], uses[position]
    refusal = Refusal(
        reason=LimitReason.ENDPOINT,
        scope=scope,
        limit=window.limit,
        used=use.used,
        resets_at_us=use.empty_at_us,
        window=f"{window.group}-{window.label}",
    )
    return refusal, use.admits_at_us - now_us


def explain(window: Window, use: WindowUse, now_us: int) -> LimitExplanation:
    """Return a window as an API key's next request would meet it."""
    return LimitExplanation(
        reason=LimitReason.ENDPOINT,
        scope=LimitScope.KEY,
        limit=window.limit,
        used=use.used,
        remaining=max(0, window.limit - use.used),
        reset_us=max(0, use.empty_at_us - now_us),
        retry_after_us=max(0, use.admits_at_us - now_us),
        shadow=window.shadow,
        window=f"{window.group}-{window.label}",
    )


def shadowed(windows: Sequence[Window], uses: Sequence[WindowUse]) -> bool:
    """Return whether one in shadow mode would have refused; without uses none was judged."""
    return any(
        use.admits_at_us and window.shadow for window, use in zip(windows, uses, strict=False)
    )
