"""Which node of a cluster holds a team, and learning it anew after a node failed.

The client would learn it while it repeats a failed command, and we never let it repeat one.
"""

import asyncio

from redis import exceptions
from redis.asyncio import RedisCluster

from kit import log
from redis_scripts.errors import NotDoneError

# At most this often is a cluster asked for its layout.
_INTERVAL_S = 0.5

_NODE_FAILED = (
    exceptions.ConnectionError,
    exceptions.TimeoutError,
    exceptions.ClusterDownError,
    OSError,
)
# What a cluster client raises; its own root is no RedisError.
_FAILURES = (exceptions.RedisError, exceptions.RedisClusterException, OSError)

_log = log.get(__name__)


class Topology:
    """The layout of one cluster as its client knows it."""

    def __init__(self, cluster: RedisCluster) -> None:
        self._cluster = cluster
        self._asking: asyncio.Task[None] | None = None
        self._asked_s = 0.0

    async def node_of(self, key: str) -> str:
        """Return the name of the node that holds a key.

        Raises:
            NotDoneError: the cluster can't be reached, or nobody holds the key.

        """
        try:
            await self._cluster.initialize()
            node = self._cluster.get_node_from_key(key)
        except _FAILURES as error:
            self._ask(None)
            raise NotDoneError(type(error).__name__) from error
        if node is None:
            raise NotDoneError
        return str(node.name)

    def learn(self, node: str, replies: list[object]) -> None:
        """Ask for the layout if a node's replies say that it failed."""
        if any(isinstance(reply, _NODE_FAILED) for reply in replies):
            self._ask(node)

    async def drain(self) -> None:
        """Wait for a question that is on its way."""
        if self._asking is not None:
            await self._asking

    def _ask(self, failed_node: str | None) -> None:
        loop = asyncio.get_running_loop()
        asking = self._asking is not None and not self._asking.done()
        if not asking and loop.time() - self._asked_s >= _INTERVAL_S:
            self._asked_s = loop.time()
            self._asking = loop.create_task(self._ask_now(failed_node))

    async def _ask_now(self, failed_node: str | None) -> None:
        # The nodes' manager keeps the connections of nodes that stay; the client's own way would
        # close them all, and with them the calls of healthy nodes.
        try:
            await self._cluster.nodes_manager.initialize(last_failed_node_name=failed_node)
        except _FAILURES as error:
            _log.warning("redis cluster layout unknown", error=type(error).__name__)
