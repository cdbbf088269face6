"""Which tiers are possible.

The bounds keep every time the limits calculate with far below 2⁵³ microseconds, where Redis' own
arithmetic is exact, and keep a typing mistake from becoming a limit that limits nothing.
"""

from dataclasses import dataclass

from control_plane.domain.errors import InvalidError

# One request costs 60,000,000 / RPM microseconds, rounded up: beyond this RPM it would be the
# rounding that limits.
MAX_RPM = 60_000_000
MAX_TPM = 10**12
MAX_BURST_MINUTES = 24 * 60


@dataclass(frozen=True, slots=True, kw_only=True)
class TierNumbers:
    """The numbers of a tier; each at least 1, bursts at least 0."""

    rpm: int
    tpm: int
    request_burst: int
    token_burst: int


def check(numbers: TierNumbers) -> None:
    """See that a burst is at most a day of its limit: a debt of more is a mistake, not a policy.

    Raises:
        InvalidError: names the field.

    """
    for burst_field, burst, rate_field, rate in (
        ("request_burst", numbers.request_burst, "rpm", numbers.rpm),
        ("token_burst", numbers.token_burst, "tpm", numbers.tpm),
    ):
        if burst > rate * MAX_BURST_MINUTES:
            raise InvalidError(
                f"{burst_field}: must be at most {MAX_BURST_MINUTES} × {rate_field}"
                f" ({rate * MAX_BURST_MINUTES}), a day of the limit.",
                field=burst_field,
            )
