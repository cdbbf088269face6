"""Which limits of spend are possible."""

from collections.abc import Sequence
from decimal import Decimal

from contracts.admission import LimitReason
from contracts.spend import SPEND_CEILING_NANO_USD, SpendLimit, SpendMode, SpendPeriod, SpendScope
from control_plane.domain.errors import InvalidError
from kit.money import usd_from_nano

CEILING_USD = usd_from_nano(SPEND_CEILING_NANO_USD)
MAX_DECIMALS = 9
"""Spend is counted in nano-USD."""

REASONS = {
    (SpendScope.TEAM, SpendPeriod.DAY): LimitReason.DAY_SPEND,
    (SpendScope.TEAM, SpendPeriod.MONTH): LimitReason.MONTH_SPEND,
    (SpendScope.KEY, SpendPeriod.DAY): LimitReason.KEY_DAY_SPEND,
    (SpendScope.KEY, SpendPeriod.MONTH): LimitReason.KEY_MONTH_SPEND,
}


def reasons_of(limits: Sequence[SpendLimit]) -> set[LimitReason]:
    """Return by which reasons these limits refuse."""
    return {REASONS[each.scope, each.period] for each in limits if each.limit_usd is not None}


def check_spend(
    field: str, limits: Sequence[SpendLimit], shadow: Sequence[LimitReason] = ()
) -> None:
    """See that no limit stands twice, and that none is above another that holds for it as well.

    One that refuses nobody holds for nothing.

    Raises:
        InvalidError: names the field.

    """
    seen: dict[tuple[SpendScope, SpendPeriod], SpendLimit] = {}
    for number, limit in enumerate(limits):
        this = f"{field}.{number}"
        if (limit.scope, limit.period) in seen:
            raise InvalidError(
                f"{this}: there is a limit of this period and scope already.", field=this
            )
        seen[limit.scope, limit.period] = limit
        if list(limit.thresholds) != sorted(set(limit.thresholds)):
            raise InvalidError(
                f"{this}.thresholds: must rise, and none may stand twice.",
                field=f"{this}.thresholds",
            )
    hard = {
        which: limit.limit_usd
        for which, limit in seen.items()
        if limit.mode is SpendMode.HARD and REASONS[which] not in shadow
    }
    for part, whole in _PARTS:
        _check_part(field, limits, part, (whole, hard.get(whole)))


_PARTS = (
    ((SpendScope.TEAM, SpendPeriod.DAY), (SpendScope.TEAM, SpendPeriod.MONTH)),
    ((SpendScope.KEY, SpendPeriod.DAY), (SpendScope.KEY, SpendPeriod.MONTH)),
    ((SpendScope.KEY, SpendPeriod.DAY), (SpendScope.TEAM, SpendPeriod.DAY)),
    ((SpendScope.KEY, SpendPeriod.MONTH), (SpendScope.TEAM, SpendPeriod.MONTH)),
)
"""What is a part of what."""

_Which = tuple[SpendScope, SpendPeriod]


def _check_part(
    field: str, limits: Sequence[SpendLimit], part: _Which, whole: tuple[_Which, Decimal | None]
) -> None:
    (scope, period), most_usd = whole
    for number, limit in enumerate(limits):
        is_part = (limit.scope, limit.period) == part and limit.limit_usd is not None
        if is_part and most_usd is not None and (limit.limit_usd or 0) > most_usd:
            name = f"{field}.{number}.limit_usd"
            raise InvalidError(
                f"{name}: must be at most the {scope}'s limit of a {period}, {most_usd}.",
                field=name,
            )
