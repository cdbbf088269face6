"""Every value of the header `x-ratelimit-reason`: a closed set, counted by each.

Limits that admission judges have the reasons of `contracts.admission.LimitReason`; the edge's own
are here. A refusal that no limit made (an unknown key, a body that can't be read) has a code and no
reason.
"""

from enum import StrEnum

from contracts.admission import LimitReason

HEADER = "x-ratelimit-reason"


class EdgeReason(StrEnum):
    """Why the edge refuses by itself, or on behalf of the budget."""

    BALANCE = "balance"
    CONNECTIONS = "connections"
    """As many connections of one address are open as may be."""
    CONNECTION_RATE = "connection_rate"
    """One address opens connections too fast."""
    FAILED_AUTHENTICATIONS = "failed_authentications"
    """Too many calls of one address had no valid key."""
    IN_FLIGHT = "in_flight"
    """As many requests are in flight at this edge as may be."""


REASONS = frozenset((*LimitReason, *EdgeReason))
