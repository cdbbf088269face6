"""What differs between the two sides, both ways."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import date
from decimal import Decimal
from fractions import Fraction

from kit.money import exact_sum, negated
from quotagate.reconcile.measures import Key, Measure, Totals

_NOTHING: Totals = {}
_PERCENT = 100


@dataclass(frozen=True, slots=True)
class Tolerance:
    """How much may differ: a part of the larger value, and of costs an amount as well."""

    percent: Decimal = Decimal(0)
    usd: Decimal = Decimal(0)

    def allows(self, measure: Measure, ours: Decimal, theirs: Decimal) -> bool:
        """Return whether two values count as equal. Fractions, so that nothing is rounded."""
        apart = abs(Fraction(theirs) - Fraction(ours))
        larger = max(abs(Fraction(theirs)), abs(Fraction(ours)))
        if measure is Measure.COST_USD and apart <= Fraction(self.usd):
            return True
        return apart * _PERCENT <= larger * Fraction(self.percent)


@dataclass(frozen=True, slots=True)
class Difference:
    """One value that differs. A side that has nothing of this day and model counts as 0."""

    day: date
    model: str
    measure: Measure
    ours: Decimal
    theirs: Decimal
    only: str | None
    """`ours` or `theirs` where the other side has nothing of this day and model."""

    @property
    def apart(self) -> Decimal:
        """Theirs − ours: positive is what they have and we don't."""
        return exact_sum(self.theirs, negated(self.ours))


@dataclass(frozen=True, slots=True)
class Comparison:
    """What differs, and both sides' sums over everything that was compared."""

    differences: Sequence[Difference]
    sums: Mapping[Measure, tuple[Decimal, Decimal]]
    """Ours and theirs."""
    compared: int
    """Days and models that at least one side has."""


def compare(
    ours: Mapping[Key, Totals],
    theirs: Mapping[Key, Totals],
    measures: Sequence[Measure],
    tolerance: Tolerance,
) -> Comparison:
    """Compare by each measure that the provider tells, for every day and model of either side."""
    keys = sorted({*ours, *theirs})
    differences = []
    sums = {measure: (Decimal(0), Decimal(0)) for measure in measures}
    for key in keys:
        for measure in measures:
            mine = ours.get(key, _NOTHING).get(measure, Decimal(0))
            other = theirs.get(key, _NOTHING).get(measure, Decimal(0))
            mine_so_far, other_so_far = sums[measure]
            sums[measure] = (exact_sum(mine_so_far, mine), exact_sum(other_so_far, other))
            if not tolerance.allows(measure, mine, other):
                only = "theirs" if key not in ours else "ours" if key not in theirs else None
                differences.append(Difference(*key, measure, mine, other, only))
    return Comparison(differences, sums, len(keys))
