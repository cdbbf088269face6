"""The tables of Quotagate's database, and the account's credit and debit.

Everything here describes the schema that infra/migrations creates; nothing here creates it.
Amounts are USD as exact decimals, instants are timestamptz of the database's clock unless a
column says otherwise, and a NULL always means "unknown" or "not yet", never zero.
"""

from tables.account import Account
from tables.admin_idempotency import AdminIdempotency
from tables.base import METADATA
from tables.charges import UsageCharge
from tables.decisions import RecordDecision
from tables.keys import ApiKey
from tables.ledger import LedgerEntry
from tables.outbox import OutboxMessage
from tables.prices import Price
from tables.records import InferenceRecord
from tables.spend import Spend, SpendThreshold
from tables.teams import Team
from tables.tiers import Tier
from tables.webhooks import WebhookDelivery

__all__ = [
    "METADATA",
    "Account",
    "AdminIdempotency",
    "ApiKey",
    "InferenceRecord",
    "LedgerEntry",
    "OutboxMessage",
    "Price",
    "RecordDecision",
    "Spend",
    "SpendThreshold",
    "Team",
    "Tier",
    "UsageCharge",
    "WebhookDelivery",
]
