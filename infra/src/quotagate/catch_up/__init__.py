"""Brings a database that was restored to an earlier moment back to the present.

What the edges observed since that moment is in the stream, as far as it wasn't trimmed: settlement
reads it again from its first message, and what is known already changes nothing. Then the caches
forget what is newer than the database, because it would refuse what the database says.
"""

from quotagate.catch_up.course import Outcome, catch_up
from quotagate.catch_up.replay import Gap, Patience, Replay

__all__ = ["Gap", "Outcome", "Patience", "Replay", "catch_up"]
