"""Runs script calls in pipelines that are no transactions, on one server or on a cluster.

A script that the server doesn't know (it restarted, or another node took over) answers NOSCRIPT,
which means that it did not run; those calls, and only those, are sent once more, with the script's
text. Nothing else is ever repeated.
"""

import asyncio
from collections.abc import Sequence
from functools import partial
from typing import Any

from redis.asyncio import Redis, RedisCluster
from redis.exceptions import (
    BusyLoadingError,
    NoScriptError,
    RedisClusterException,
    RedisError,
    ResponseError,
)

from kit import log
from redis_scripts.direct import Command, Direct
from redis_scripts.errors import NotDoneError, OutcomeUnknownError
from redis_scripts.lane import Argument, Lane, ScriptCall
from redis_scripts.sources import Script
from redis_scripts.topology import Topology

RedisClient = Redis | RedisCluster

# The last is uvloop's, for writing to a connection that the server has reset at that moment.
_BROKEN = (RedisError, RedisClusterException, OSError, RuntimeError)

# More batches on their way than these gained nothing when measured; a full batch takes the server
# about 7 ms, far less than any time-out.
_MAX_BATCHES = 4
_MAX_BATCH_CALLS = 128
_ONE_SERVER = ""

_log = log.get(__name__)


class Pipelines:
    """Sends script calls to a server, or each to the cluster node that holds its keys.

    On a cluster every node has its own lane, so a node that is slow or gone holds up only the
    teams it holds.
    """

    def __init__(self, client: RedisClient) -> None:
        self._client = client
        self._direct = Direct(client, _MAX_BATCHES) if isinstance(client, Redis) else None
        self._topology = Topology(client) if isinstance(client, RedisCluster) else None
        self._lanes: dict[str, Lane] = {}

    async def run(self, script: Script, keys: Sequence[str], arguments: Sequence[Argument]) -> Any:  # noqa: ANN401 - each script has its own reply
        """Run one script and return its raw reply.

        Raises:
            NotDoneError: the server refused or there is none; nothing was written.
            OutcomeUnknownError: no answer came.

        """
        node = _ONE_SERVER if self._topology is None else await self._topology.node_of(keys[0])
        lane = self._lanes.get(node)
        if lane is None:
            send = partial(self._send, node)
            lane = self._lanes[node] = Lane(
                send, max_batches=_MAX_BATCHES, max_batch_calls=_MAX_BATCH_CALLS
            )
        return await lane.run(ScriptCall(script, keys, arguments))

    async def drain(self) -> None:
        """Wait until everything that was sent is answered."""
        await asyncio.gather(*(lane.drain() for lane in self._lanes.values()))
        if self._direct is not None:
            await self._direct.close()
        if self._topology is not None:
            await self._topology.drain()

    async def _send(self, node: str, batch: list[ScriptCall]) -> None:
        not_known = _answer(batch, await self._execute(node, batch, with_text=False))
        if not_known:
            _log.info("redis scripts sent again with their text", calls=len(not_known))
            _answer(not_known, await self._execute(node, not_known, with_text=True))

    async def _execute(
        self, node: str, batch: list[ScriptCall], *, with_text: bool
    ) -> list[object]:
        """Return each call's reply or exception; a script's error doesn't concern the others."""
        commands = [_command(call, with_text=with_text) for call in batch]
        try:
            replies = await self._replies(commands)
        except _BROKEN as error:
            replies = [error] * len(batch)
        if self._topology is not None:
            self._topology.learn(node, replies)
        return replies

    async def _replies(self, commands: Sequence[Command]) -> list[object]:
        if self._direct is not None:
            return await self._direct.run(commands)
        pipeline = self._client.pipeline()
        for command in commands:
            pipeline.execute_command(*command)
        replies: list[object] = await pipeline.execute(raise_on_error=False)
        return replies


def _command(call: ScriptCall, *, with_text: bool) -> Command:
    script = ("EVAL", call.script.text) if with_text else ("EVALSHA", call.script.sha)
    return (*script, len(call.keys), *call.keys, *call.arguments)


def _answer(batch: list[ScriptCall], replies: list[object]) -> list[ScriptCall]:
    """Hand out the replies; return the calls whose script the server doesn't know.

    A caller who has left meanwhile is left out: its script didn't run, and needn't any more.
    """
    not_known = []
    for call, reply in zip(batch, replies, strict=True):
        if isinstance(reply, NoScriptError):
            if not call.reply.done():
                not_known.append(call)
        elif isinstance(reply, Exception):
            call.fail(_outcome(reply))
        else:
            call.answer(reply)
    return not_known


def _outcome(error: Exception) -> NotDoneError | OutcomeUnknownError:
    """Return what an error of the client says about the call.

    An error that the server answered means that nothing was written: every script of ours can
    fail only before or at its first write. Redis's own text may name keys, so it stays a cause.
    """
    refused = isinstance(error, (ResponseError, BusyLoadingError))
    outcome = (NotDoneError if refused else OutcomeUnknownError)(type(error).__name__)
    outcome.__cause__ = error
    return outcome
