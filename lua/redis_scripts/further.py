"""A tier's further limits as the scripts are told them: debts, leases, counts and spend.

Each lives at one place among the team's keys, or, if it counts by the day or month, at one for
either of two, of which the script takes the one that its own clock is in.
"""

from collections.abc import Iterable, Sequence

import msgspec

from redis_scripts.keys import Place
from redis_scripts.numbers import exact, integer, spend_limit
from redis_scripts.windows import WindowTerms

Argument = str | int
Value = int | bytes | None
"""As a reply holds it: money comes as text."""


class DayWindow(msgspec.Struct, frozen=True):
    """Two days next to each other, unix microseconds; now must be in one of them."""

    start_us: int
    boundary_us: int
    """The first ends and the second begins."""
    end_us: int


ANY_DAY = DayWindow(0, 0, 2**53 - 1)
"""For who counts nothing by the day."""


class DebtTerms(msgspec.Struct, frozen=True):
    """A further debt: refuses beyond its burst; an admission adds `advance_us`, which may be 0."""

    place: Place
    advance_us: int
    burst_us: int
    cap_us: int
    shadow: bool = False


class LeaseTerms(msgspec.Struct, frozen=True):
    """Leases: refuses where `most` others live; an admission takes `name` for `life_us`."""

    place: Place
    most: int
    name: str
    life_us: int
    shadow: bool = False


class CountTerms(msgspec.Struct, frozen=True):
    """A count of a day: refuses where it and `asked` are over `most`; an admission adds `added`."""

    places: tuple[Place, Place]
    """Of the window's first and second day."""
    most: int
    added: int
    asked: int
    shadow: bool = False


class SpendTerms(msgspec.Struct, frozen=True):
    """Spend of a period: refuses where `most_nano_usd` or more was spent; nothing is added."""

    places: tuple[Place, Place]
    """Of two periods next to each other."""
    boundary_us: int
    """The first ends and the second begins, unix microseconds."""
    most_nano_usd: int
    shadow: bool = False


class DebtCharge(msgspec.Struct, frozen=True):
    """What a further debt grows by; 0 only reads it."""

    place: Place
    cost_us: int
    cap_us: int


class CountCharge(msgspec.Struct, frozen=True):
    """What is added to a day's count if it is there; 0 only reads it."""

    places: tuple[Place, Place]
    added: int


class SpendCharge(msgspec.Struct, frozen=True):
    """The rough debit is added to what was spent in a period, if that is counted."""

    places: tuple[Place, Place]
    boundary_us: int


class LeaseEnd(msgspec.Struct, frozen=True):
    """The lease that ends; "" only counts those that live."""

    place: Place
    name: str


Further = DebtTerms | LeaseTerms | CountTerms | SpendTerms
FurtherCharge = DebtCharge | CountCharge | SpendCharge | LeaseEnd
Judged = Further | WindowTerms
Placed = Judged | FurtherCharge


class Reading(msgspec.Struct, frozen=True):
    """A further limit's state: a TAT (None: no debt), leases, or a count (None: missing).

    Spend is a count of nano-USD.
    """

    value: int | None
    capped: bool = False


def where(limit: Placed) -> tuple[Place, ...]:
    """Return where a limit lives."""
    if isinstance(limit, CountTerms | CountCharge | SpendTerms | SpendCharge):
        return limit.places
    return (limit.place,)


def judged(
    plain_shadow: tuple[bool, bool], terms: Sequence[Judged], days: DayWindow
) -> Iterable[Argument]:
    """Return preflight's arguments; none without shadow mode, further limits and windows."""
    if terms or any(plain_shadow):
        yield from map(int, plain_shadow)
    if terms:
        yield from _days(days)
    for term in terms:
        match term:
            case DebtTerms(_, advance_us, burst_us, cap_us, shadow):
                yield from ("debt", int(shadow), exact(advance_us), exact(burst_us), exact(cap_us))
            case LeaseTerms(_, most, name, life_us, shadow):
                yield from ("lease", int(shadow), exact(most), name, exact(life_us))
            case CountTerms(_, most, added, asked, shadow):
                yield from ("count", int(shadow), exact(most), exact(added), exact(asked))
            case SpendTerms(_, boundary_us, most, shadow):
                yield from ("spend", int(shadow), spend_limit(most), exact(boundary_us), 0)
            case WindowTerms(name=name):
                yield from ("window", *term.arguments(), name)


def charged(charges: Sequence[FurtherCharge], days: DayWindow) -> Iterable[Argument]:
    """Return postflight's arguments; none without further limits."""
    if charges:
        yield from _days(days)
    for charge in charges:
        match charge:
            case DebtCharge(_, cost_us, cap_us):
                # A cost beyond the cap counts as the cap, as the debt it would make would.
                yield from ("debt", exact(min(cost_us, cap_us)), exact(cap_us))
            case CountCharge(_, added):
                yield from ("count", exact(added), 0)
            case SpendCharge(_, boundary_us):
                yield from ("spend", exact(boundary_us), 0)
            case LeaseEnd(_, name):
                yield from ("lease", name, 0)


def read(terms: Sequence[Further], days: DayWindow) -> Iterable[Argument]:
    """Return the arguments of who only looks; none without further limits."""
    if terms:
        yield exact(days.boundary_us)
    for term in terms:
        match term:
            case DebtTerms():
                yield "debt"
            case LeaseTerms():
                yield "lease"
            case CountTerms():
                yield "count"
            case SpendTerms(_, boundary_us):
                yield from ("spend", exact(boundary_us))


def readings(flat: Sequence[Value] = ()) -> tuple[Reading, ...]:
    """Return a reply's readings: two values each."""
    return tuple(
        Reading(integer(value), bool(capped))
        for value, capped in zip(flat[::2], flat[1::2], strict=True)
    )


def _days(days: DayWindow) -> tuple[int, int, int]:
    return exact(days.start_us), exact(days.boundary_us), exact(days.end_us)
