"""Finds configuration that would break a promise, and says what, why and how to mend it.

Rules that services check at start stand with those checks (kit.redis, kit.postgres,
kit.bus.streams, tables.guards); here is what only an operator can look at or judge.
"""

from quotagate.doctor.examination import Diagnosis, examine

__all__ = ["Diagnosis", "examine"]
