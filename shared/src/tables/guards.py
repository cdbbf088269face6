"""What of the schema keeps which promise, and whether it is there and in force.

The database is the last to know better: a record can't be charged twice because an index says so,
and no program. Where such a guard is missing, settlement isn't ready.
"""

from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

from sqlalchemy import text
from sqlalchemy.exc import SQLAlchemyError
from sqlalchemy.ext.asyncio import AsyncConnection, AsyncEngine

from kit.errors import NotReadyError
from kit.flaws import Flaw, refuse
from kit.postgres import CONNECTION_ERRORS
from tables.prices import TOKEN_CLASSES

_LIVE = text((Path(__file__).parent / "sql" / "guards.sql").read_text(encoding="utf-8"))


@dataclass(frozen=True, slots=True, order=True)
class Guard:
    """One thing of the schema. `name` is a constraint's, or the columns of a unique index."""

    kind: str
    table: str
    name: str

    def __str__(self) -> str:
        """Return it in words."""
        place = f" of {self.table}" if self.name and self.table else self.table
        return f"{self.kind} {self.name}{place}"


def _guards(promise: str, kind: str, table: str, *names: str) -> dict[Guard, str]:
    return {Guard(kind, table, name): promise for name in names}


_LEDGER = "A balance is the sum of its ledger entries, whose versions have no gap."
_ONCE = "What was written to the books is never changed or removed."
_CHARGE = "A charge is of a record, a price and a debit that are there, and of the same team."
_NUMBERS = "An amount is a number."
_SPEND = "What was spent in a period is summed up once."
_DECISION = "A decision is about a record and by a price that are there, and says why."

GUARDS: dict[Guard, str] = (
    _guards(
        "An attempt has one record, however often it arrives.",
        "unique", "inference_record", "inference_id, attempt_no",
    )
    | _guards("A record has at most one charge.", "unique", "usage_charge", "inference_record_id")
    | _guards(_LEDGER, "unique", "ledger_entry", "entry_id", "team_id, account_version")
    | _guards("A team has one account.", "unique", "account", "team_id")
    | _guards("A team is one team.", "unique", "team", "team_id")
    | _guards("A record pins one price.", "unique", "price", "price_id")
    | _guards(
        "At any moment one price of a model is in effect.",
        "unique", "price", "provider, model, effective_from",
    )
    | _guards("A key's id names one key.", "unique", "api_key", "key_id")
    | _guards("A change event is owed once.", "unique", "outbox", "message_id")
    | _guards("A webhook is owed once.", "unique", "webhook_delivery", "message_id")
    | _guards(
        _SPEND, "unique", "spend", "team_id, api_key_id, starts_at, ends_at",
    )
    | _guards(
        "A threshold is told once a period.", "unique", "spend_threshold", "message_id",
        "team_id, api_key_id, period, starts_at, ends_at, limit_usd, threshold_percent",
    )
    | _guards(
        "A repeated admin request changes nothing again.",
        "unique", "admin_idempotency", "key, route",
    )
    | _guards(
        _CHARGE, "foreign key", "usage_charge",
        "usage_charge_team_id_inference_record_id_fkey",
        "usage_charge_ledger_entry_id_team_id_fkey",
        "usage_charge_price_id_fkey",
    )
    | _guards(
        "An entry is an account's.", "foreign key", "ledger_entry", "ledger_entry_team_id_fkey"
    )
    | _guards("An account is a team's.", "foreign key", "account", "account_team_id_fkey")
    | _guards(
        _NUMBERS, "check", "account", "account_balance_usd_check", "account_version_check"
    )
    | _guards(
        _NUMBERS, "check", "ledger_entry",
        "ledger_entry_amount_usd_check", "ledger_entry_account_version_check",
    )
    | _guards(
        "An entry's reason fits its direction.", "check", "ledger_entry",
        "ledger_entry_reason_check",
    )
    | _guards(_NUMBERS, "check", "usage_charge", "usage_charge_amount_usd_check")
    | _guards(
        _NUMBERS, "check", "spend", "spend_amount_usd_check", "spend_account_version_check"
    )
    | _guards(
        _NUMBERS, "check", "spend_threshold",
        "spend_threshold_limit_usd_check", "spend_threshold_spent_usd_check",
    )
    | _guards(_SPEND, "check", "spend", "spend_ends_at_check")
    | _guards(
        "A charge above zero was debited.", "check", "usage_charge",
        "usage_charge_ledger_entry_id_check",
    )
    | _guards(
        _NUMBERS, "check", "price",
        *(f"price_{name}_usd_per_million_check" for name in TOKEN_CLASSES),
    )
    | _guards(
        "Tokens are counted from zero.", "check", "inference_record",
        *(f"inference_record_{name}_tokens_check" for name in TOKEN_CLASSES),
    )
    | _guards(
        "How far settlement is with a record is one of five states.",
        "check", "inference_record",
        "inference_record_attempt_no_check", "inference_record_state_check",
        "inference_record_settled_at_check", "inference_record_held_reason_check",
        "inference_record_pending_usage_check",
    )
    | _guards(
        _DECISION, "foreign key", "record_decision",
        "record_decision_record_id_fkey", "record_decision_price_id_fkey",
    )
    | _guards(
        _DECISION, "check", "record_decision",
        "record_decision_decision_check", "record_decision_note_check",
    )
    | _guards(
        "A team's id can't move its keys in Redis, nor its records in the stream.",
        "check", "team", "team_team_id_check",
    )
    | _guards(
        "A key's id is safe in a subject, its secret is hashed.", "check", "api_key",
        "api_key_key_id_check", "api_key_secret_hash_check",
    )
    | _guards(_ONCE, "always trigger", "ledger_entry", "ledger_entry_is_append_only")
    | _guards(_ONCE, "always trigger", "usage_charge", "usage_charge_is_append_only")
    | _guards(_ONCE, "always trigger", "price", "price_is_append_only")
    | _guards(_ONCE, "always trigger", "record_decision", "record_decision_is_append_only")
    | _guards(_ONCE, "always trigger", "spend_threshold", "spend_threshold_is_append_only")
    | _guards(_ONCE, "always trigger", "account", "account_stays")
    | _guards(_LEDGER, "always trigger", "account", "account_matches_ledger")
    | _guards(_LEDGER, "always trigger", "ledger_entry", "ledger_entry_adds_up")
    | _guards(
        "The charges of a debit add up to it, and none is added later.",
        "always trigger", "usage_charge", "usage_charges_fit",
    )
    | _guards(
        "A team has an account from its first moment.", "trigger", "team", "team_open_account"
    )
    | _guards(
        "A tier change raises the version that fences caches.", "trigger", "team",
        "team_raise_tier_version",
    )
    | _guards(
        "A policy change raises the tier's version.", "trigger", "tier", "tier_raise_version"
    )
    | {
        Guard("logged table", table, ""): "What is committed survives a crash."
        for table in (
            "account", "admin_idempotency", "api_key", "inference_record", "ledger_entry", "outbox",
            "price", "record_decision", "spend", "spend_threshold", "team", "tier", "usage_charge",
            "webhook_delivery",
        )
    }
    | _guards(
        "Only the account's own functions change a balance.", "definer function", "",
        "account_credit", "account_debit_adjustment", "account_debit_usage", "account_lock",
        "account_matches_ledger", "ledger_entry_adds_up", "team_open_account", "usage_charges_fit",
    )
    | _guards(
        "Who asks what was spent sees neither charges nor records.", "definer function", "",
        "spend_of", "spend_settled",
    )
)  # fmt: skip
"""Each guard, and the promise it keeps."""


async def guard_flaws(connection: AsyncConnection) -> list[Flaw]:
    """Return a flaw for each guard that is missing, or there but not in force."""
    rows = await connection.execute(_LIVE)
    return missing_flaws(Guard(*row) for row in rows)


def missing_flaws(live: Iterable[Guard]) -> list[Flaw]:
    """Return a flaw for each guard that is not among the live ones."""
    missing = set(GUARDS).difference(live)
    return [
        Flaw(
            what=f"postgres: there is no {guard} in force",
            why=GUARDS[guard],
            mend="quotagate migrate, if the database isn't at this version; else make it again"
            " as infra/migrations does, after quotagate verify has shown that nothing broke.",
        )
        for guard in sorted(missing)
    ]


async def check(engine: AsyncEngine) -> None:
    """See that every guard is in force.

    Raises:
        NotReadyError: the database doesn't answer.
        UnsafeServerError: one is missing; has the database been migrated?

    """
    try:
        async with engine.connect() as connection:
            flaws = await guard_flaws(connection)
    except (SQLAlchemyError, *CONNECTION_ERRORS) as error:
        raise NotReadyError(f"postgres: {type(error).__name__}") from error
    refuse(flaws)
