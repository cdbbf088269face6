"""A Valkey cluster of our own: real nodes as child processes on free ports."""

import asyncio
import os
import signal
import subprocess
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

from redis import Redis
from redis.exceptions import RedisError

from quotagate.stack.binaries import valkey_server
from quotagate.stack.ports import HOST, PortPolicy, choose

SLOTS = 16_384
# Short, so that a failover takes about two seconds.
NODE_TIMEOUT_MS = 1_000
POLL_S = 0.05
PATIENCE_S = 60


@dataclass
class Node:
    """One server of the cluster."""

    port: int
    bus_port: int
    folder: Path
    process: subprocess.Popen[bytes] | None = None

    def client(self) -> Redis:
        return Redis(host=HOST, port=self.port, decode_responses=True)

    def start(self) -> None:
        self.folder.mkdir(parents=True, exist_ok=True)
        arguments = {
            "port": self.port,
            "cluster-port": self.bus_port,
            "bind": HOST,
            "dir": self.folder,
            "cluster-enabled": "yes",
            "cluster-node-timeout": NODE_TIMEOUT_MS,
            "cluster-require-full-coverage": "no",
            "maxmemory-policy": "noeviction",
            "repl-diskless-sync-delay": 0,
            "save": "",
        }
        command = [str(valkey_server(os.environ))]
        for name, value in arguments.items():
            command += [f"--{name}", str(value)]
        self.process = subprocess.Popen(command, stdout=subprocess.DEVNULL)  # noqa: S603 - our own server

    def signal(self, number: signal.Signals) -> None:
        assert self.process is not None
        self.process.send_signal(number)

    def stop(self) -> None:
        if self.process is not None:
            self.process.kill()
            self.process.wait()


@dataclass
class Cluster:
    """Three primaries that share the slots, and one replica of the first."""

    nodes: list[Node] = field(default_factory=list)

    @property
    def url(self) -> str:
        return f"redis://{HOST}:{self.nodes[0].port}"

    @property
    def primaries(self) -> list[Node]:
        return self.nodes[:3]

    async def start(self, folder: Path) -> None:
        names = [f"{kind}-{number}" for number in range(4) for kind in ("node", "bus")]
        ports = choose(names, PortPolicy.FREE, {}, {})
        for number in range(4):
            node = Node(ports[f"node-{number}"], ports[f"bus-{number}"], folder / str(number))
            self.nodes.append(node)
            node.start()
        await until(lambda: all(_answers(node) for node in self.nodes))
        self._join()
        await until(lambda: all(_knows(node, self.nodes) for node in self.nodes))
        with self.nodes[0].client() as first, self.nodes[3].client() as replica:
            replica.execute_command("CLUSTER REPLICATE", first.execute_command("CLUSTER MYID"))
        replica_node = self.nodes[3]
        await until(lambda: all(_sees_replica(node, replica_node) for node in self.primaries))
        await until(lambda: _follows(replica_node))

    def stop(self) -> None:
        for node in self.nodes:
            node.stop()

    def _join(self) -> None:
        first = self.nodes[0]
        for number, node in enumerate(self.nodes):
            with node.client() as client:
                if node in self.primaries:
                    slots = (SLOTS * number // 3, SLOTS * (number + 1) // 3 - 1)
                    client.execute_command("CLUSTER ADDSLOTSRANGE", *slots)
                client.execute_command("CLUSTER MEET", HOST, first.port, first.bus_port)


async def until(condition: Callable[[], bool]) -> None:
    """Wait for what the servers do by themselves and announce to nobody."""
    async with asyncio.timeout(PATIENCE_S):
        while not condition():
            await asyncio.sleep(POLL_S)


def _answers(node: Node) -> bool:
    with node.client() as client:
        try:
            return bool(client.ping())
        except RedisError:
            return False


def _knows(node: Node, nodes: list[Node]) -> bool:
    with node.client() as client:
        info = client.execute_command("CLUSTER INFO")
    healthy: bool = info["cluster_state"] == "ok"
    return healthy and info["cluster_known_nodes"] == str(len(nodes))


def _sees_replica(node: Node, replica: Node) -> bool:
    """Tell whether the node knows the replica as one, so that a vote can succeed."""
    with node.client() as client:
        known = client.execute_command("CLUSTER NODES")
    flags: str = known[f"{HOST}:{replica.port}"]["flags"]
    return "slave" in flags


def _follows(replica: Node) -> bool:
    with replica.client() as client:
        return bool(client.info("replication").get("master_link_status") == "up")
