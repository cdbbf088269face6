"""What each service's role may do: all that it needs, and nothing more.

The migrations grant it; this says it again, so that a grant by hand or a forgotten one is seen.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from types import MappingProxyType

from kit.flaws import Flaw
from tables.prices import TOKEN_CLASSES

TIER_CACHE, SETTLEMENT, CONTROL_PLANE = (
    "quotagate_tier_cache",
    "quotagate_settlement",
    "quotagate_control_plane",
)

ALL = frozenset({"*"})
"""Every column."""
_READ: Mapping[str, frozenset[str]] = MappingProxyType({"SELECT": ALL})
_READ_ADD: Mapping[str, frozenset[str]] = MappingProxyType({"SELECT": ALL, "INSERT": ALL})
# A table that pays, or that says what is paid: nobody may write it but as it says below.
_MONEY = frozenset({"account", "ledger_entry", "usage_charge", "price", "inference_record"})

_TEAM = frozenset({"name", "tier_id", "deleted_at"})
_TIER = frozenset({"rpm", "tpm", "request_burst", "token_burst", "limits"})
_DELIVERY = frozenset(
    {
        "attempts", "next_attempt_at", "last_status", "last_error", "delivered_at", "given_up_at",
    }
)  # fmt: skip

RIGHTS: Mapping[str, Mapping[str, Mapping[str, frozenset[str]]]] = MappingProxyType(
    {
        TIER_CACHE: {
            **dict.fromkeys(
                ("account", "alembic_version", "api_key", "price", "team", "tier"), _READ
            ),
            # What a team used on a day.
            "inference_record": {
                "SELECT": frozenset(
                    {"team_id", "inference_id", "attempt_no", "started_at", "finished_at"}
                    | {f"{name}_tokens" for name in TOKEN_CLASSES}
                )
            },
        },
        SETTLEMENT: {
            **dict.fromkeys(
                ("account", "alembic_version", "ledger_entry", "price", "team", "tier"), _READ
            ),
            "api_key": {"SELECT": frozenset({"key_id", "team_id", "limits"})},
            "inference_record": {
                **_READ_ADD,
                "UPDATE": frozenset({"state", "settled_at", "held_reason"}),
            },
            "usage_charge": _READ_ADD,
            "spend": {
                **_READ_ADD, "UPDATE": frozenset({"amount_usd", "account_version"}), "DELETE": ALL,
            },
            "spend_threshold": _READ_ADD,
            "outbox": {"INSERT": frozenset({"subject", "message_id", "payload"})},
            "webhook_delivery": {"INSERT": frozenset({"message_id", "kind", "payload"})},
        },
        CONTROL_PLANE: {
            **dict.fromkeys(("account", "alembic_version", "ledger_entry"), _READ),
            **dict.fromkeys(
                ("inference_record", "usage_charge", "spend", "spend_threshold"), _READ
            ),
            "webhook_delivery": {**_READ, "UPDATE": _DELIVERY},
            "price": _READ_ADD,
            "team": {**_READ, "INSERT": _TEAM | {"team_id"}, "UPDATE": _TEAM},
            "tier": {**_READ, "INSERT": _TIER | {"tier_id"}, "UPDATE": _TIER},
            "api_key": {
                **_READ_ADD,
                "UPDATE": frozenset(
                    {"name", "allowed_models", "limits", "expires_at", "revoked_at"}
                    | {"secret_hash", "old_secret_hash", "old_secret_until"}
                ),
            },
            "outbox": {**_READ_ADD, "UPDATE": frozenset({"published_at"}), "DELETE": ALL},
            "admin_idempotency": {
                **_READ_ADD, "UPDATE": frozenset({"status", "response"}), "DELETE": ALL,
            },
        },
    }
)  # fmt: skip
"""Role → table → right → columns; DELETE and the like have no columns, and stand as all."""

FUNCTIONS: Mapping[str, frozenset[str]] = MappingProxyType(
    {
        TIER_CACHE: frozenset({"spend_of"}),
        SETTLEMENT: frozenset({"account_lock", "account_debit_usage", "spend_settled"}),
        CONTROL_PLANE: frozenset({"account_credit", "account_debit_adjustment"}),
    }
)


@dataclass(frozen=True, slots=True)
class Right:
    """What a role may do with one column, or with a table or function (column `*`)."""

    role: str
    right: str
    thing: str
    column: str


def rights_flaws(
    live: Iterable[Right], columns: Mapping[str, frozenset[str]], roles: Iterable[str]
) -> list[Flaw]:
    """Compare what these roles may do with what they should; `columns` are each table's.

    Tables and functions that no role here needs are looked at too: nobody may touch them.
    """
    found = set(live)
    due = {right for role in roles for right in _due(role, columns)}
    return [
        *_flaws(due - found, columns, missing=True),
        *_flaws(found - due, columns, missing=False),
    ]


def _due(role: str, columns: Mapping[str, frozenset[str]]) -> Iterable[Right]:
    for table, rights in RIGHTS[role].items():
        for right, names in rights.items():
            by_column = right in {"SELECT", "INSERT", "UPDATE"}
            wanted = columns.get(table, ALL) if by_column and names == ALL else names
            yield from (Right(role, right, table, name) for name in wanted)
    yield from (Right(role, "EXECUTE", function, "*") for function in FUNCTIONS[role])


def _flaws(
    rights: set[Right], columns: Mapping[str, frozenset[str]], *, missing: bool
) -> Iterable[Flaw]:
    grouped: dict[tuple[str, str, str], set[str]] = {}
    for each in rights:
        grouped.setdefault((each.role, each.right, each.thing), set()).add(each.column)
    for (role, right, thing), names in sorted(grouped.items()):
        named = "" if names in ({"*"}, columns.get(thing)) else f" ({', '.join(sorted(names))})"
        yield (_lacks if missing else _has_too_much)(role, f"{right}{named}", thing)


def _lacks(role: str, right: str, thing: str) -> Flaw:
    kind = "FUNCTION " if right == "EXECUTE" else ""
    return Flaw(
        what=f"postgres: {role} may not {right} {thing}",
        why="Its service fails where it needs that.",
        mend=f"quotagate migrate, if the database isn't at this version; else GRANT {right} ON"
        f" {kind}{thing} TO {role};",
    )


def _has_too_much(role: str, right: str, thing: str) -> Flaw:
    kind = "FUNCTION " if right == "EXECUTE" else ""
    return Flaw(
        what=f"postgres: {role} may {right} {thing}",
        why="Only the account's own functions change a balance, and what was observed or charged"
        " stays as it is: the database vouches for it only while no service has this right."
        if thing in _MONEY or kind
        else "A service that was taken over could do more than its work.",
        mend=f"REVOKE {right} ON {kind}{thing} FROM {role}; and from PUBLIC.",
        dangerous=not right.startswith("SELECT"),
    )
