"""What a sown bug is."""

from collections.abc import Sequence
from dataclasses import dataclass

from faults.rules import Rule
from faults.strikes.fault import Fault


@dataclass(frozen=True, slots=True)
class Edit:
    """A text that stands once in a file, and what stands there with the bug.

    The text is short, so that it survives changes around it; a test sees that it is still there.
    """

    path: str
    """From the root of the repository."""
    right: str
    wrong: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Bug:
    """A mistake that somebody might make."""

    name: str
    edits: Sequence[Edit]
    faults: Sequence[Fault]
    """What brings it to light."""
    calm_s: float = 3.0
    """Load without faults before and after them."""
    breaks: frozenset[Rule]
    """Each of these would be a catch; a wrong rule would not."""
