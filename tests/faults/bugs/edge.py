"""Bugs of the edge."""

from faults.bugs.bug import Bug, Edit
from faults.rules import Rule
from faults.strikes.fault import Fault, Kind

_EDGE = "services/edge-proxy/src/edge_proxy"
_DISPATCH = f"{_EDGE}/handlers/dispatch.py"
_ACCOUNTING = f"{_EDGE}/handlers/accounting.py"
_STREAMING = f"{_EDGE}/handlers/streaming.py"
_HAND_OFF = f"{_EDGE}/clients/hand_off.py"

# Longer than the edges try to hand over, so that records go to the spool.
_NATS_AWAY = Fault(Kind.STOP, "nats", 6)
_NATS_FROZEN = Fault(Kind.FREEZE, "nats", 2)

EDGE_BUGS = (
    Bug(
        name="the answer before the ack",
        edits=(
            Edit(
                _DISPATCH,
                "        accounted = await self._end(attempt, Outcome.SUCCEEDED)\n",
                "        await self._client.answer(exchange.status, {**headers.to_client("
                "exchange.headers.items()), **self._plan.headers(attempt.attempt_no)}, body)\n"
                "        accounted = await self._end(attempt, Outcome.SUCCEEDED)\n"
                "        return Relayed(Outcome.SUCCEEDED)\n",
            ),
        ),
        faults=(_NATS_FROZEN,),
        breaks=frozenset({Rule.TOLD_TOO_EARLY}),
    ),
    Bug(
        name="[DONE] before the ack",
        edits=(
            Edit(
                _STREAMING,
                "        accounted = await self._edge.accounting.end(",
                "        await self._client.write(tail + self._scanner.held, last=True)\n"
                "        self._client._gone = True\n"
                "        accounted = await self._edge.accounting.end(",
            ),
        ),
        faults=(_NATS_FROZEN,),
        breaks=frozenset({Rule.TOLD_TOO_EARLY}),
    ),
    Bug(
        name="success although the hand-off failed",
        edits=(Edit(_DISPATCH, "        if not accounted.durable:\n", "        if False:\n"),),
        faults=(_NATS_AWAY, _NATS_AWAY),
        breaks=frozenset({Rule.TOLD_TOO_EARLY, Rule.SUCCESS_NOT_RECORDED}),
    ),
    Bug(
        name="published before the debit",
        edits=(
            Edit(
                _ACCOUNTING,
                "        limits = None if may_be_followed else await self._charge(attempt)\n",
                "        await self._hand_off.deliver(attempt.record(outcome, finished_at_us))\n"
                "        limits = None if may_be_followed else await self._charge(attempt)\n",
            ),
        ),
        faults=(Fault(Kind.DELAY, "admission*>valkey", 2),),
        breaks=frozenset({Rule.RECORD_BEFORE_DEBIT}),
    ),
    Bug(
        name="postflight tried again",
        edits=(
            Edit(
                _ACCOUNTING,
                "await self._admission.postflight(attempt, usage)",
                "(await self._admission.postflight(attempt, usage)"
                " or await self._admission.postflight(attempt, usage))",
            ),
        ),
        # Each time one command of each open connection meets it; the second try must find the
        # other admission, or it isn't heard.
        faults=(Fault(Kind.LOSE_REPLIES, "admission>valkey", 0.3),) * 25,
        breaks=frozenset({Rule.DEBITED_TOO_OFTEN}),
    ),
    Bug(
        name="the spool lets go before the ack",
        edits=(
            Edit(
                _HAND_OFF,
                "            name, record = oldest\n",
                "            name, record = oldest\n            self._spool.remove(name)\n",
            ),
        ),
        faults=(_NATS_AWAY, _NATS_AWAY),
        breaks=frozenset({Rule.INVISIBLE_REQUEST}),
    ),
    Bug(
        name="the journal closes what is only in memory",
        edits=(
            Edit(
                _HAND_OFF,
                "            self._unkept.append(record)\n            return False\n",
                "            self._unkept.append(record)\n            return True\n",
            ),
        ),
        # The edges die while the disk is full and they have given up handing over: after four
        # seconds, for which the control plane is only a clock here.
        faults=(
            Fault(Kind.DISK_FULL, "spool", 16),
            *(Fault(Kind.FREEZE, "control-plane", 1.7),) * 3,
            Fault(Kind.KILL, "edge-proxy"),
            Fault(Kind.KILL, "edge-proxy-2"),
        )
        * 2,
        breaks=frozenset({Rule.INVISIBLE_REQUEST}),
    ),
    Bug(
        name="nobody reads the journal of the dead",
        edits=(
            Edit(
                f"{_EDGE}/store/inheritance.py",
                "for unknown in left_open(orphan.journal)}",
                "for unknown in left_open(orphan.journal)[:0]}",
            ),
        ),
        faults=(Fault(Kind.KILL, "edge-proxy"), Fault(Kind.KILL, "edge-proxy-2")),
        breaks=frozenset({Rule.INVISIBLE_REQUEST}),
    ),
    Bug(
        name="revocations heard by nobody",
        edits=(Edit(f"{_EDGE}/app.py", "    await keys.follow_changes(client)\n", ""),),
        faults=(),
        calm_s=10,
        breaks=frozenset({Rule.REVOKED_KEY_ACCEPTED}),
    ),
)
