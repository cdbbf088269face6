"""Valkey's own account of what it carried out, from its MONITOR, also inside scripts."""

import asyncio
import re
from urllib.parse import urlsplit

from faults.evidence import Debit, VersionSet
from faults.world import World

from kit import background

_LINE = re.compile(
    rb'^\+(?P<s>\d+)\.(?P<us>\d{6}) \[\d+ [^\]]*\] "(?P<command>[A-Za-z]+)"(?: "(?P<key>[^"]*)"'
    rb'(?: "(?P<value>[^"]*)")?)?'
)
_BALANCE = re.compile(rb"^quota:\{(?P<team>[^}]+)\}:account-balance(?P<version>:version)?$")
_RETRY_S = 0.02
_LINE_BYTES = 1024**2


class StoreWitness:
    """Watches for as long as it runs. While Valkey is away it sees nothing, and nothing happens."""

    def __init__(self, world: World) -> None:
        self._world = world
        self._task: asyncio.Task[None] | None = None
        self._life = 0
        self._watching = asyncio.Event()
        self.debits: list[Debit] = []
        self.versions: list[VersionSet] = []

    async def start(self) -> None:
        """Begin to watch; returns when nothing escapes any more."""
        self._task = asyncio.create_task(self._run())
        await self._watching.wait()

    async def stop(self) -> None:
        """Watch no longer."""
        if self._task is not None:
            await background.cancel([self._task])

    async def _run(self) -> None:
        while True:
            try:
                await self._watch()
            except (OSError, asyncio.IncompleteReadError, asyncio.LimitOverrunError):
                await asyncio.sleep(_RETRY_S)

    async def _watch(self) -> None:
        parts = urlsplit(self._world.stack.servers.redis_url)
        reader, writer = await asyncio.open_connection(
            parts.hostname, parts.port, limit=_LINE_BYTES
        )
        try:
            writer.write(f"AUTH {parts.username} {parts.password}\r\nMONITOR\r\n".encode())
            while (line := await reader.readuntil(b"\r\n")) != b"+OK\r\n":
                if line.startswith(b"-"):
                    raise OSError(line.decode())
            # The second OK is MONITOR's.
            await reader.readuntil(b"\r\n")
            self._life += 1
            self._watching.set()
            while True:
                self.hear(await reader.readuntil(b"\r\n"))
        finally:
            writer.transport.abort()

    def hear(self, line: bytes) -> None:
        """Take in one line of the monitor."""
        match = _LINE.match(line)
        if match is None:
            return
        command = match["command"].upper()
        if command == b"FLUSHALL":
            self._life += 1
            return
        key = _BALANCE.match(match["key"] or b"")
        if key is None or command not in {b"DECRBY", b"SET"}:
            return
        team_id = key["team"].decode()
        at_us = int(match["s"]) * 1_000_000 + int(match["us"])
        if command == b"DECRBY" and not key["version"]:
            self.debits.append(
                Debit(team_id=team_id, amount_nano_usd=int(match["value"]), at_us=at_us)
            )
        elif command == b"SET" and key["version"]:
            self.versions.append(
                VersionSet(
                    team_id=team_id, version=int(match["value"]), at_us=at_us, life=self._life
                )
            )
