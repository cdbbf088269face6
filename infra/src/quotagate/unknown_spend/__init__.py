"""Unknown spend: attempts that may have cost something, and of which no usage ever arrived."""

from quotagate.unknown_spend.report import Spend, unknown_spend

__all__ = ["Spend", "unknown_spend"]
