"""Which rates of a key or a model, and which bursts, are possible."""

from collections.abc import Mapping, Sequence
from typing import Any

import msgspec

from contracts.admission import KeyLimits, LimitReason, Rates
from control_plane.domain.errors import InvalidError
from control_plane.domain.spend import check_spend, reasons_of

_OWN = ("rpm", LimitReason.KEY_REQUESTS), ("tpm", LimitReason.KEY_TOKENS)


def check_burst(field: str, burst: int, limit_field: str, limit: int | None) -> None:
    """See that a burst has its limit and is at most as large: a minute of it.

    Raises:
        InvalidError: names the burst's field.

    """
    if burst and limit is None:
        raise InvalidError(f"{field}: there is no {limit_field} to burst.", field=field)
    if limit is not None and burst > limit:
        raise InvalidError(f"{field}: must be at most {limit_field}, {limit}.", field=field)


def check_rates(name: str, rates: Rates) -> None:
    """See that rates limit something, and that their bursts go with them; `name` is their field.

    Raises:
        InvalidError: names the field.

    """
    if rates.rpm is None and rates.tpm is None:
        raise InvalidError(f"{name}: needs rpm, tpm, or both.", field=name)
    check_burst(f"{name}.request_burst", rates.request_burst, f"{name}.rpm", rates.rpm)
    check_burst(f"{name}.token_burst", rates.token_burst, f"{name}.tpm", rates.tpm)


def check_key_limits(own: KeyLimits) -> None:
    """See that a key's own limits are possible.

    They may be above its team's: the team's hold as well, and may be another tier's tomorrow.

    Raises:
        InvalidError: names the field.

    """
    if own.rpm is None and own.tpm is None and own.spend_limits:
        check_burst("limits.request_burst", own.request_burst, "limits.rpm", own.rpm)
        check_burst("limits.token_burst", own.token_burst, "limits.tpm", own.tpm)
    else:
        check_rates("limits", own)
    check_spend("limits.spend_limits", own.spend_limits, own.shadow)
    has = [reason for field, reason in _OWN if getattr(own, field) is not None]
    has += sorted(reasons_of(own.spend_limits))
    check_shadow("limits.shadow", own.shadow, has, "the key has no such limit of its own")


def key_problem(stored: Mapping[str, Any]) -> str | None:
    """Return why nobody can judge by a key's own limits as they are stored; None: they can."""
    try:
        msgspec.convert(stored, KeyLimits)
    except msgspec.ValidationError as error:
        return f"limits: {error}"
    return None


def check_shadow(
    field: str, shadow: Sequence[LimitReason], has: Sequence[LimitReason], why: str
) -> None:
    """See that only limits which are there are in shadow mode.

    Raises:
        InvalidError: names the field.

    """
    for reason in shadow:
        if reason not in has:
            raise InvalidError(f"{field}: {reason.value!r}: {why}.", field=field)
