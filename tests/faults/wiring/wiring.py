"""All wires of a stack, on a thread of their own so that a busy test delays nobody."""

import asyncio
import threading
from collections.abc import Coroutine, Mapping
from typing import Any, TypeVar
from urllib.parse import urlsplit

import uvloop
from faults.wiring.link import Link, Trouble

ResultT = TypeVar("ResultT")

# The variables that lead a program to a server, and the server's name.
_SERVERS = {
    "QUOTAGATE_NATS_URL": "nats",
    "QUOTAGATE_REDIS_URL": "valkey",
    "QUOTAGATE_DATABASE_URL": "postgres",
    "QUOTAGATE_FAKE_PROVIDER_URL": "fake-provider",
}


class Wiring:
    """Every wire by its name: `admission-2>valkey`, or `clients>edge-proxy`."""

    def __init__(self) -> None:
        self.links: dict[str, Link] = {}
        self._loop = uvloop.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever, name="wiring", daemon=True)
        self._thread.start()

    def close(self) -> None:
        """Cut and forget every wire."""
        for link in self.links.values():
            self._do(link.close())
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join()
        self._loop.close()

    def rewire(self, program: str, environment: Mapping[str, str]) -> Mapping[str, str]:
        """Return a program's environment with each server behind a wire of the program's own."""
        led = dict(environment)
        for variable, server in _SERVERS.items():
            if variable in environment:
                parts = urlsplit(environment[variable])
                assert parts.hostname is not None
                assert parts.port is not None
                port = self.link(f"{program}>{server}", (parts.hostname, parts.port)).port
                led[variable] = environment[variable].replace(f":{parts.port}", f":{port}", 1)
        return led

    def link(self, name: str, target: tuple[str, int]) -> Link:
        """Return the wire of this name, made anew unless it leads there."""
        link = self.links.get(name)
        if link is None or link.target != target:
            link = self._do(self._made(name, target))
            self.links[name] = link
        return link

    async def begin(self, name: str, trouble: Trouble) -> None:
        """Make trouble on a wire until :meth:`end`."""
        await self._away(self.links[name].begin(trouble))

    async def end(self, name: str) -> None:
        """Make no more trouble on a wire."""
        await self._away(self.links[name].end())

    async def cut(self, name: str) -> None:
        """Reset a wire's connections; new ones may be made at once."""
        await self._away(self.links[name].cut())

    async def end_all(self) -> None:
        """Make no trouble anywhere."""
        for name in self.links:
            await self.end(name)

    @staticmethod
    async def _made(name: str, target: tuple[str, int]) -> Link:
        link = Link(name, target)
        await link.open()
        return link

    def _do(self, work: Coroutine[Any, Any, ResultT]) -> ResultT:
        return asyncio.run_coroutine_threadsafe(work, self._loop).result()

    async def _away(self, work: Coroutine[Any, Any, ResultT]) -> ResultT:
        return await asyncio.wrap_future(asyncio.run_coroutine_threadsafe(work, self._loop))
