"""The fake provider as a process of its own, on a free port."""

import asyncio
import os
import signal
import sys
from pathlib import Path

import httpx

from quotagate.stack.ports import HOST, PortPolicy, choose

API_KEY = "key-of-these-tests"
_START_S = 30


class FakeProcess:
    """Starts, stops and kills it; the port stays the same."""

    def __init__(self, folder: Path, **settings: str) -> None:
        self._port = choose(["fake-provider"], PortPolicy.FREE, {}, {})["fake-provider"]
        self._log = folder / "log.jsonl"
        self._settings = settings
        self._process: asyncio.subprocess.Process | None = None

    @property
    def base_url(self) -> str:
        return f"http://{HOST}:{self._port}"

    async def start(self) -> None:
        environment = {
            **{name: value for name, value in os.environ.items() if "QUOTAGATE" not in name},
            "QUOTAGATE_PORT": str(self._port),
            "QUOTAGATE_FAKE_API_KEYS": f"another-key, {API_KEY}",
            "QUOTAGATE_GRACE_S": "5",
            **self._settings,
        }
        with self._log.open("ab") as log:
            self._process = await asyncio.create_subprocess_exec(
                sys.executable, "-m", "fake_provider", env=environment, stdout=log, stderr=log
            )
        async with asyncio.timeout(_START_S), httpx.AsyncClient() as client:
            while not await self._is_ready(client):
                assert self._process.returncode is None, self.log()
                await asyncio.sleep(0.02)

    async def _is_ready(self, client: httpx.AsyncClient) -> bool:
        try:
            answer = await client.get(f"{self.base_url}/health/ready")
        except httpx.TransportError:
            return False
        return answer.status_code == httpx.codes.OK

    def signal(self, number: signal.Signals) -> None:
        assert self._process is not None
        self._process.send_signal(number)

    async def ended(self) -> int:
        """Wait until it has ended; return its status."""
        assert self._process is not None
        return await self._process.wait()

    async def stop(self) -> None:
        if self._process is not None and self._process.returncode is None:
            self._process.kill()
            await self._process.wait()

    def log(self) -> str:
        return self._log.read_text(encoding="utf-8")
