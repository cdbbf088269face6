"""What a run came to."""

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from faults.evidence import Evidence, Told
from faults.rules import Violation
from faults.strikes.fault import Fault, Kind

_SHOWN = 40
_UNKNOWN = frozenset({Told.CUT, Told.FAILED, Told.LEFT})


@dataclass(frozen=True, slots=True, kw_only=True)
class Report:
    """A run and its verdict."""

    scenario: str
    seed: int
    evidence: Evidence
    changes: int
    struck: Mapping[Kind, int]
    fizzled: Sequence[Fault]
    """Faults that found nothing to strike, because another had taken it."""
    violations: Sequence[Violation]

    @property
    def told(self) -> "Counter[Told]":
        """Return how many requests were told what."""
        return Counter(request.told for request in self.evidence.requests)

    @property
    def unreached(self) -> Sequence[str]:
        """Return the crash points at which nobody died."""
        return [fault.target for fault in self.fizzled if fault.kind is Kind.CRASH]

    def last_line(self) -> str:
        """Return the line for machines."""
        unknown = sum(self.told[told] for told in _UNKNOWN)
        return (
            f"faults={sum(self.struck.values())} requests={len(self.evidence.requests)}"
            f" acknowledged={self.told[Told.COMPLETE]} unknown={unknown}"
            f" violations={len(self.violations)}"
        )

    def __str__(self) -> str:
        evidence = self.evidence
        charged = len(evidence.charges)
        unbillable = sum(record.state == "UNBILLABLE" for record in evidence.records)
        lines = [
            f"{self.scenario}, seed {self.seed}",
            "  requests   "
            + ", ".join(f"{count} {told}" for told, count in sorted(self.told.items())),
            f"  provider   {len(evidence.served)} requests seen",
            f"  database   {len(evidence.records)} records: {charged} charged,"
            f" {unbillable} of unknown spend; {len(evidence.entries)} ledger entries",
            f"  operator   {self.changes} changes, {len(evidence.postings)} postings,"
            f" {len(evidence.revocations)} revoked keys",
            f"  store      {len(evidence.debits)} debits, {len(evidence.versions)} versions seen",
            "  faults     "
            + ", ".join(f"{count} {kind}" for kind, count in sorted(self.struck.items())),
        ]
        if self.fizzled:
            lines.append("  fizzled    " + ", ".join(str(fault) for fault in self.fizzled))
        if self.violations:
            lines.append("  VIOLATIONS")
            lines += [f"    {violation}" for violation in self.violations[:_SHOWN]]
            by_rule = Counter(violation.rule for violation in self.violations)
            lines.append("    " + ", ".join(f"{n} {rule}" for rule, n in by_rule.items()))
        return "\n".join([*lines, self.last_line()])
