"""A NATS server on a disk of its own, and what it acknowledged."""

import asyncio
import contextlib
import os
import signal
import subprocess
from collections.abc import AsyncIterator, Iterator
from pathlib import Path

import nats
import nats.errors
from nats.aio.client import Client

from contracts.inference import INFERENCE_RECORDED, INFERENCE_RECORDS
from kit.bus.errors import BusError
from kit.bus.publishing import Publisher
from kit.bus.streams import ensure_streams
from quotagate.access import nats as access
from quotagate.stack import binaries
from quotagate.stack.ports import HOST, PortPolicy, choose
from quotagate.stack.state import NATS_USERS

_CONFIG = Path(__file__).parents[3] / "infra" / "config" / "nats.conf"
_ALWAYS = "sync_interval: always"
_PASSWORD = "q-power-cut"
_START_S = 20
_PUBLISHERS = 32
_PAYLOAD = b'{"not": "a record, but as large as one"}' * 20


class Broker:
    """Our configuration of NATS, or the one that one gets without thinking of it."""

    def __init__(self, folder: Path, *, synced: bool) -> None:
        self._folder = folder
        self._port = choose(["nats"], PortPolicy.FREE, {}, {})["nats"]
        self._process: subprocess.Popen[bytes] | None = None
        text = _CONFIG.read_text(encoding="utf-8")
        assert _ALWAYS in text
        self._config = folder / "nats.conf"
        self._config.write_text(text if synced else text.replace(_ALWAYS, ""), encoding="utf-8")
        passwords = dict.fromkeys(NATS_USERS, _PASSWORD)
        users = access.configuration(passwords)
        (folder / "nats-users.conf").write_text(users, encoding="utf-8")

    @contextlib.asynccontextmanager
    async def running(self, store: Path) -> AsyncIterator[Client]:
        """Run it on a folder, and connect; in the end it is killed."""
        with (self._folder / "nats.log").open("ab") as log:
            self._process = subprocess.Popen(  # noqa: S603, ASYNC220 - our own program; returns at once
                [
                    binaries.nats_server(os.environ),
                    *("--config", str(self._config)),
                    *("--addr", HOST),
                    *("--port", str(self._port)),
                    *("--store_dir", str(store)),
                ],
                stdout=log,
                stderr=log,
            )
        try:
            client = await self._connected()
            yield client
            await client.close()
        finally:
            self._process.kill()
            await asyncio.to_thread(self._process.wait)

    @contextlib.contextmanager
    def frozen(self) -> Iterator[None]:
        """Stop it in the middle of whatever it does."""
        assert self._process is not None
        self._process.send_signal(signal.SIGSTOP)
        try:
            yield
        finally:
            self._process.send_signal(signal.SIGCONT)

    async def _connected(self) -> Client:
        async with asyncio.timeout(_START_S):
            while True:
                try:
                    return await nats.connect(
                        f"nats://{HOST}:{self._port}",
                        user="operator",
                        password=_PASSWORD,
                        allow_reconnect=False,
                    )
                except (OSError, nats.errors.Error):
                    await asyncio.sleep(0.05)


class Acknowledgements:
    """Publishes records without end, and remembers which were acknowledged."""

    def __init__(self, client: Client) -> None:
        self._publisher = Publisher(client)
        self._numbers = iter(range(10**9))
        self.ids: set[str] = set()

    @contextlib.asynccontextmanager
    async def running(self) -> AsyncIterator[None]:
        """Publish for as long as the block lasts."""
        tasks = [asyncio.create_task(self._publish()) for _ in range(_PUBLISHERS)]
        try:
            yield
        finally:
            for task in tasks:
                task.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)

    async def _publish(self) -> None:
        for number in self._numbers:
            message_id = f"inference-{number}:1"
            try:
                await self._publisher.publish_raw(
                    INFERENCE_RECORDED.subject_for("team"),
                    _PAYLOAD + message_id.encode(),
                    message_id,
                    INFERENCE_RECORDS.name,
                    timeout_s=30,
                )
            except BusError:
                continue
            self.ids.add(message_id)


async def make_stream(client: Client) -> None:
    """Make the stream of records, as our services have it."""
    await ensure_streams(client, (INFERENCE_RECORDS,), replicas=1)


async def stored_ids(client: Client) -> set[str]:
    """Return the ids of all messages that the stream has; none where there is no stream."""
    jetstream = client.jetstream()
    try:
        state = (await jetstream.stream_info(INFERENCE_RECORDS.name)).state
    except nats.errors.Error:
        return set()
    ids: set[str] = set()
    if not state.messages:
        return ids
    subscription = await jetstream.subscribe(INFERENCE_RECORDED.wildcard, ordered_consumer=True)
    pending = 1
    while pending:
        message = await subscription.next_msg(timeout=5)
        pending = message.metadata.num_pending
        ids.add((message.headers or {})["Nats-Msg-Id"])
    return ids
