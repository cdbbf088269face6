"""Held records: those that settlement won't charge before a person has looked at them."""

from quotagate.held.deciding import Decided, release, write_off
from quotagate.held.listing import Held, Holding, holding

__all__ = ["Decided", "Held", "Holding", "holding", "release", "write_off"]
