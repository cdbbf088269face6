"""Proves that no charge is lost, doubled or wrong, from what the stores hold.

The database is looked at in one snapshot, in SQL alone: nothing but findings comes out of it,
whatever the number of records. Every amount is recomputed in numeric.
"""

from quotagate.verify.findings import SENTENCES, Finding, Kind, Report
from quotagate.verify.proof import Options, verify

__all__ = ["SENTENCES", "Finding", "Kind", "Options", "Report", "verify"]
