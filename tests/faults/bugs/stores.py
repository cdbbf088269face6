"""Bugs of admission, tier-cache, settlement, the control plane, and of the scripts."""

from faults.bugs.bug import Bug, Edit
from faults.rules import Rule
from faults.strikes.fault import Fault, Kind

_ADMISSION = "services/admission/src/admission/handlers/preflight.py"
_CONSUME = "services/settlement/src/settlement/handlers/consume.py"
_SQL = "services/settlement/src/settlement/store/sql"
_STREAMS = "shared/src/kit/bus/streams.py"
_TABLES = "infra/migrations/sql/0001_core/tables.sql"

_STALE_FILL = "if fence and tonumber(fence) > tonumber(ARGV[2]) then\n  return 'stale'\nend\n"
_LATE_FILLS = (Fault(Kind.LATE_FILL, "valkey"),) * 3
_ALLOWED_BLINDLY = (
    "return PreflightReply(decision=Decision.ALLOWED, prices=prices,"
    " policy=self._memory.last_seen(request.team_id))"
)

STORE_BUGS = (
    Bug(
        name="the client of Valkey tries again",
        edits=(
            Edit(
                "lua/redis_scripts/pipelines.py",
                "            return await self._direct.run(commands)\n",
                "            for _ in range(3):\n"
                "                try:\n"
                "                    return await self._direct.run(commands)\n"
                "                except _BROKEN:\n"
                "                    continue\n"
                "            return await self._direct.run(commands)\n",
            ),
        ),
        # Short, because a connection that was made anew must still find the second try waiting.
        faults=(
            Fault(Kind.LOSE_REPLIES, "admission>valkey", 0.2),
            Fault(Kind.LOSE_REPLIES, "admission-2>valkey", 0.2),
        )
        * 10,
        breaks=frozenset({Rule.DEBITED_TOO_OFTEN}),
    ),
    Bug(
        name="admission fails open",
        edits=(
            Edit(
                _ADMISSION,
                "            raise ReplyError(ErrorCode.STORE_UNAVAILABLE) from error\n",
                f"            {_ALLOWED_BLINDLY}\n",
            ),
            Edit(
                _ADMISSION,
                "            raise reply_error(error) from error\n",
                f"            {_ALLOWED_BLINDLY}\n",
            ),
        ),
        faults=(Fault(Kind.FREEZE, "valkey", 3), Fault(Kind.LOSE, "admission*>valkey", 3)),
        breaks=frozenset({Rule.ADMITTED_BLINDLY}),
    ),
    Bug(
        name="SET NX instead of the tier's fence",
        edits=(
            Edit("lua/fill_tier.lua", _STALE_FILL, ""),
            Edit(
                "lua/fill_tier.lua",
                "redis.call('SET', KEYS[1], ARGV[1], 'PX', ARGV[3])",
                "redis.call('SET', KEYS[1], ARGV[1], 'PX', ARGV[3], 'NX')",
            ),
        ),
        faults=_LATE_FILLS,
        breaks=frozenset({Rule.CACHE_DIVERGED}),
    ),
    Bug(
        name="a fill of the balance ignores the fence",
        edits=(Edit("lua/parts/fenced_fill.lua", _STALE_FILL, ""),),
        faults=_LATE_FILLS,
        breaks=frozenset({Rule.VERSION_WENT_BACK, Rule.CACHE_DIVERGED}),
    ),
    Bug(
        name="a refresh ignores the version",
        edits=(
            Edit(
                "lua/parts/fenced_refresh.lua",
                "if known > settled then\n  return 'stale'\nend\n",
                "",
            ),
        ),
        faults=(Fault(Kind.LATE_REFRESH, "valkey"),) * 3,
        breaks=frozenset({Rule.VERSION_WENT_BACK}),
    ),
    Bug(
        name="acknowledged before the commit",
        edits=(
            Edit(
                _CONSUME,
                "            stored = await self._insert([item.arrival for item in taken], stop)\n",
                "            await self._acknowledge([item.message for item in taken])\n"
                "            crash_at('settlement.acknowledged')\n"
                "            stored = await self._insert([item.arrival for item in taken], stop)\n",
            ),
        ),
        faults=(Fault(Kind.CRASH, "settlement.acknowledged"),) * 3,
        breaks=frozenset({Rule.SUCCESS_NOT_RECORDED, Rule.INVISIBLE_REQUEST}),
    ),
    Bug(
        name="a float in the price",
        edits=(
            Edit(
                "shared/src/kit/pricing.py",
                "            tokens_cost_usd(tokens, usd_per_million)\n",
                "            type(usd_per_million)(float(tokens) * float(usd_per_million) / 1e6)\n",
            ),
        ),
        faults=(Fault(Kind.FORGET_SCRIPTS, "valkey"),),
        breaks=frozenset({Rule.WRONG_AMOUNT}),
    ),
    Bug(
        name="no unique index of attempts",
        edits=(
            Edit(_TABLES, "    UNIQUE (inference_id, attempt_no),\n", ""),
            Edit(
                f"{_SQL}/insert_records.sql",
                "ON CONFLICT (inference_id, attempt_no) DO NOTHING\n",
                "",
            ),
            Edit(
                "shared/src/tables/guards.py",
                "missing = set(GUARDS).difference(live)\n",
                "missing = {g for g in set(GUARDS) - set(live) if g.kind != 'unique'}\n",
            ),
        ),
        faults=(Fault(Kind.REPEAT_ANEW, "messages"), Fault(Kind.REORDER, "messages")),
        breaks=frozenset({Rule.CHARGED_TWICE}),
    ),
    Bug(
        name="a full stream discards the old",
        edits=(
            Edit(_STREAMS, "discard=DiscardPolicy.NEW,", "discard=DiscardPolicy.OLD,"),
            Edit(_STREAMS, "(found.discard != DiscardPolicy.NEW,", "(found.discard is None,"),
        ),
        faults=(Fault(Kind.STREAM_FULL, "records", 4),) * 2,
        breaks=frozenset({Rule.SUCCESS_NOT_RECORDED, Rule.INVISIBLE_REQUEST}),
    ),
    Bug(
        name="nobody reconciles",
        edits=(
            Edit(
                "services/settlement/src/settlement/handlers/reconcile.py",
                "        last = (await self._stream.extent()).last\n",
                "        return\n        last = (await self._stream.extent()).last\n",
            ),
        ),
        faults=(Fault(Kind.FORGET_SCRIPTS, "valkey"),),
        breaks=frozenset({Rule.CACHE_DIVERGED}),
    ),
    Bug(
        name="an event counts as published without its ack",
        edits=(
            Edit(
                "services/control-plane/src/control_plane/handlers/relay.py",
                "if result is None\n",
                "if result is not rows\n",
            ),
        ),
        faults=(Fault(Kind.LOSE, "control-plane>nats", 8),) * 2,
        breaks=frozenset({Rule.CHANGE_NEVER_TOLD, Rule.CACHE_DIVERGED}),
    ),
    Bug(
        name="the admin API forgets idempotency keys",
        edits=(
            Edit(
                "services/control-plane/src/control_plane/handlers/writes.py",
                "        if self.idempotency_key is None:\n",
                "        if self.idempotency_key != '':\n",
            ),
        ),
        faults=(Fault(Kind.CRASH, "control_plane.committed"),) * 4,
        breaks=frozenset({Rule.POSTING_NOT_AS_TOLD}),
    ),
)
