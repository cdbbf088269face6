"""Batches of commands to one server, over connections that stay in hand between batches.

The client's own pipeline takes a connection out of its pool for each batch, looks whether it has
something to read, and sets a timer for each reply. All of that is a quarter of what a decision
costs, so here a batch has one timer, and connections come from the pool once.
"""

import asyncio
from collections.abc import Sequence

from redis.asyncio import Redis
from redis.asyncio.connection import AbstractConnection
from redis.exceptions import ResponseError

Command = Sequence[str | int]


class Direct:
    """Sends batches, each as a whole; nothing is ever repeated."""

    def __init__(self, client: Redis, most: int) -> None:
        """At most so many connections of the client's pool stay in hand; its last one never."""
        self._pool = client.connection_pool
        self._most = min(most, self._pool.max_connections - 1)
        self._timeout_s: float | None = self._pool.connection_kwargs.get("socket_timeout")
        self._idle: list[AbstractConnection] = []
        self._taken = 0

    async def run(self, commands: Sequence[Command]) -> list[object]:
        """Return each command's reply, or the error that the server answered.

        Raises:
            RedisError, OSError, RuntimeError: no answer, or not to all of them.

        """
        connection = self._idle.pop() if self._idle else await self._take()
        try:
            async with asyncio.timeout(self._timeout_s):
                packed = connection.pack_commands(commands)
                await connection.send_packed_command(packed, check_health=False)
                replies = [await _reply(connection) for _ in commands]
        except BaseException:
            await connection.disconnect(nowait=True)
            await self._give_back([*self._idle, connection])
            raise
        if self._taken > self._most:
            await self._give_back([connection])
        else:
            self._idle.append(connection)
        return replies

    async def close(self) -> None:
        """Give the pool its connections back."""
        await self._give_back(list(self._idle))

    async def _take(self) -> AbstractConnection:
        connection: AbstractConnection = await self._pool.get_connection()  # type: ignore[no-untyped-call]
        # The batch has one time-out for all of its steps.
        connection.socket_timeout = None
        self._taken += 1
        return connection

    async def _give_back(self, connections: Sequence[AbstractConnection]) -> None:
        """Give connections back; one that broke last, for then the pool forgets them all."""
        self._idle = [each for each in self._idle if each not in connections]
        for connection in connections:
            self._taken -= 1
            connection.socket_timeout = self._timeout_s
            await self._pool.release(connection)


async def _reply(connection: AbstractConnection) -> object:
    try:
        return await connection.read_response()
    except ResponseError as error:
        return error
