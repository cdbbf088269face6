"""Reads what preflight answers."""

from typing import Any

from redis_scripts.further import readings
from redis_scripts.numbers import integer, text
from redis_scripts.values import PreflightReply, PreflightTerms, Verdict
from redis_scripts.windows import read_use

# Without shadow mode, further limits and windows, or where they were not judged.
_SHORT = 8
_OWN_LIMITS = 2


def preflight_reply(reply: Any, terms: PreflightTerms) -> PreflightReply:  # noqa: ANN401 - as it came
    """Return what the script's reply says to these terms."""
    read = PreflightReply(
        Verdict(reply[0].decode()),
        reply[1],
        reply[2],
        reply[3],
        text(reply[4]),
        integer(reply[5]),
        bool(reply[6]),
        bool(reply[7]),
    )
    if len(reply) == _SHORT:
        return read
    positions, flat = reply[8:]
    count = len(terms.further)
    further, windows = flat[: 2 * count], flat[2 * count :: 2]
    return PreflightReply(
        read.verdict,
        read.now_us,
        read.request_tat_us,
        read.token_tat_us,
        read.tier_id,
        read.balance_nano_usd,
        read.request_capped,
        read.token_capped,
        tuple(position - 1 for position in positions if position <= _OWN_LIMITS + count),
        readings(further),
        tuple(map(read_use, windows)),
    )
