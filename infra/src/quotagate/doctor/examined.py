"""What examining one store gives, and the comparison of versions that all of them need."""

from collections.abc import Sequence
from dataclasses import dataclass

from kit.flaws import Flaw
from quotagate.doctor.clocks import Reading


@dataclass(frozen=True, slots=True)
class Examined:
    """One store: what it is, what its clock says, and what is wrong with it."""

    server: str
    clock: Reading
    flaws: Sequence[Flaw]


def version_flaws(server: str, found: str, least: tuple[int, ...], why: str) -> list[Flaw]:
    """Return a flaw if a version such as `2.12.8` is below the least that will do."""
    numbers = []
    for part in found.split("."):
        digits = part[: len(part) - len(part.lstrip("0123456789"))]
        if not digits:
            break
        numbers.append(int(digits))
    if tuple(numbers) >= least:
        return []
    wanted = ".".join(map(str, least))
    return [
        Flaw(
            what=f"{server}: version {found or 'unknown'} is below {wanted}",
            why=why,
            mend=f"Run {server} {wanted} or newer.",
        )
    ]
