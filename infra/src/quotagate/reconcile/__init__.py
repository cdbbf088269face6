"""Compares our totals with a provider's usage export, by day and model."""

from quotagate.reconcile.comparison import Comparison, Difference, Tolerance, compare
from quotagate.reconcile.measures import Measure, Totals
from quotagate.reconcile.ours import Ours, our_totals
from quotagate.reconcile.usage_file import UsageFile, UsageFileError, read_usage_file

__all__ = [
    "Comparison",
    "Difference",
    "Measure",
    "Ours",
    "Tolerance",
    "Totals",
    "UsageFile",
    "UsageFileError",
    "compare",
    "our_totals",
    "read_usage_file",
]
