"""What the control plane remembers, in Postgres.

Every function works in the transaction of the session it is given; database.py opens those.
"""

from control_plane.store import (
    accounts,
    deliveries,
    idempotency,
    keys,
    outbox,
    prices,
    records,
    teams,
    tiers,
)

__all__ = [
    "accounts",
    "deliveries",
    "idempotency",
    "keys",
    "outbox",
    "prices",
    "records",
    "teams",
    "tiers",
]
