"""Collects the evidence: from the database, the stream, Valkey and the provider's journal."""

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import asyncpg
from faults.evidence import Account, Cached, Charge, Entry, Record, Served
from faults.world import World
from nats.js.api import Header

from contracts.contract import decode
from contracts.control import CONTROL_EVENTS
from contracts.dead import DEAD_LETTERED, DEAD_LETTERS, DeadLetter
from contracts.usage import Usage, UsdPerMillion
from quotagate.stores import of_servers
from quotagate.verify import Options, verify

_CLASSES = ("input", "cache_read", "cache_write_5m", "cache_write_1h", "output", "reasoning")
_RECORDS = (
    "SELECT record_id, inference_id, attempt_no, team_id, trace_id, outcome, state, price_id,"
    " provider_request_id, stream_sequence, input_tokens, cache_read_tokens, cache_write_5m_tokens,"
    " cache_write_1h_tokens, output_tokens, reasoning_tokens FROM inference_record"
)
_CHARGES = "SELECT inference_record_id, team_id, amount_usd, ledger_entry_id FROM usage_charge"
_ENTRIES = (
    "SELECT entry_id, team_id, reason, amount_usd * CASE direction WHEN 'CREDIT' THEN 1 ELSE -1 END"
    " AS amount_usd, balance_after_usd, account_version, note FROM ledger_entry"
)
_ACCOUNTS = "SELECT team_id, balance_usd, version, tier_id FROM account JOIN team USING (team_id)"
_PRICES = "SELECT * FROM price"
_PUBLISHED = "SELECT message_id FROM outbox WHERE published_at IS NOT NULL ORDER BY id"


class Books:
    """What the database has of the teams that are asked for, of one moment."""

    def __init__(self, rows: Mapping[str, Sequence[asyncpg.Record]], teams: frozenset[str]) -> None:
        def of_teams(name: str) -> list[asyncpg.Record]:
            return [row for row in rows[name] if row["team_id"] in teams]

        self.records = [_record(row) for row in of_teams("records")]
        self.charges = [
            Charge(
                record_id=row["inference_record_id"],
                team_id=row["team_id"],
                amount_usd=row["amount_usd"],
                entry_id=row["ledger_entry_id"],
            )
            for row in of_teams("charges")
        ]
        self.entries = [
            Entry(
                entry_id=row["entry_id"],
                team_id=row["team_id"],
                reason=row["reason"],
                amount_usd=row["amount_usd"],
                balance_after_usd=row["balance_after_usd"],
                version=row["account_version"],
                note=row["note"] or "",
            )
            for row in of_teams("entries")
        ]
        self.accounts = [Account(**row) for row in of_teams("accounts")]
        self.prices = {
            str(row["price_id"]): UsdPerMillion(
                **{name: row[f"{name}_usd_per_million"] for name in _CLASSES}
            )
            for row in rows["prices"]
        }


def _record(row: asyncpg.Record) -> Record:
    tokens = {name: row[f"{name}_tokens"] for name in _CLASSES}
    return Record(
        record_id=row["record_id"],
        inference_id=row["inference_id"],
        attempt_no=row["attempt_no"],
        team_id=row["team_id"],
        marker=row["trace_id"] or "",
        outcome=row["outcome"],
        state=row["state"],
        price_id=row["price_id"],
        usage=None if None in tokens.values() else Usage(**tokens),
        provider_request_id=row["provider_request_id"],
        stream_sequence=row["stream_sequence"],
    )


async def books(world: World, teams: frozenset[str]) -> Books:
    """Read the database as of one moment."""
    statements = {
        "records": _RECORDS,
        "charges": _CHARGES,
        "entries": _ENTRIES,
        "accounts": _ACCOUNTS,
        "prices": _PRICES,
    }
    async with (
        world.postgres() as connection,
        connection.transaction(isolation="repeatable_read", readonly=True),
    ):
        rows = {name: await connection.fetch(text) for name, text in statements.items()}
    return Books(rows, teams)


async def cached(world: World, teams: frozenset[str]) -> Mapping[str, Cached]:
    """Read what Valkey holds of each team."""
    found = {}
    async with world.valkey() as valkey:
        for team_id in sorted(teams):
            prefix = f"quota:{{{team_id}}}"
            balance, version, tier_id = await valkey.mget(
                f"{prefix}:account-balance", f"{prefix}:account-balance:version", f"{prefix}:tier"
            )
            found[team_id] = Cached(
                balance_nano_usd=None if balance is None else int(balance),
                version=None if version is None else int(version),
                tier_id=tier_id.decode() if isinstance(tier_id, bytes) else tier_id,
            )
    return found


def served(journal: Path) -> Sequence[Served]:
    """Read the provider's journal: of each request the last that was written about it."""
    last: dict[int, dict[str, Any]] = {}
    for line in journal.read_bytes().splitlines():
        try:
            entry = json.loads(line)
        except ValueError:
            continue  # a kill cut it off
        last[entry["seq"]] = entry
    return [
        Served(
            request_id=entry["request_id"],
            marker=entry["marker"],
            received_at_us=entry["received_at_us"],
            outcome="cut" if entry["outcome"] == "in_flight" else entry["outcome"],
            reported=entry["usage"] is not None,
        )
        for entry in last.values()
    ]


async def unproved(world: World) -> Sequence[str]:
    """Return what the operator's own proof found, or couldn't tell."""
    report = await verify(of_servers(world.stack.servers), Options())
    found = [
        f"{each.kind}: {each.subject}: {each.found}, not {each.due}" for each in report.findings
    ]
    return [*found, *(f"can't tell: {reason}" for reason in report.untold)]


async def never_told(world: World) -> Sequence[str]:
    """Return the changes that count as published, and that their stream doesn't have."""
    async with world.postgres() as connection:
        rows = await connection.fetch(_PUBLISHED)
    async with world.nats() as client:
        jetstream = client.jetstream()
        state = (await jetstream.stream_info(CONTROL_EVENTS.name)).state
        stored = set()
        for sequence in range(state.first_seq, state.last_seq + 1):
            message = await jetstream.get_msg(CONTROL_EVENTS.name, sequence, direct=True)
            stored.add((message.headers or {}).get(Header.MSG_ID.value))
    return [row["message_id"] for row in rows if row["message_id"] not in stored]


async def dead_letters(world: World) -> Sequence[str]:
    """Return why each message was given up."""
    reasons = []
    async with world.nats() as client:
        jetstream = client.jetstream()
        subscription = await jetstream.pull_subscribe(
            DEAD_LETTERED.wildcard, stream=DEAD_LETTERS.name
        )
        try:
            for message in await subscription.fetch(100, timeout=0.5):
                letter = decode(message.data, DeadLetter)
                reasons.append(f"{letter.consumer} {letter.stream_sequence}: {letter.reason}")
        except TimeoutError:
            pass  # there are none
    return reasons
