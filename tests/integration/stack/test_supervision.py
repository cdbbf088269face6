"""The servers run as they must, and come back when they are killed."""

import json
import os
import sys
import urllib.request
from pathlib import Path

import asyncpg
import pytest
from redis import Redis

from quotagate.stack import Servers, Stack


def test_jetstream_syncs_before_it_acknowledges(servers: Servers) -> None:
    with urllib.request.urlopen(f"{servers.nats_monitor_url}/jsz") as answer:  # noqa: S310 - our own server
        assert json.load(answer)["config"]["sync_always"] is True


@pytest.mark.skipif(
    sys.platform != "linux" or os.geteuid() != 0, reason="Linux tells it of others to root only"
)
def test_nats_need_not_wake_up_on_time(own_servers: Stack) -> None:
    [pid] = [status.pid for status in own_servers.status() if status.name == "nats"]
    process = Path("/proc", str(pid))
    assert process.joinpath("exe").resolve().name == "nats-server"
    tasks = process.joinpath("task").iterdir()
    slack_ns = {Path("/proc", task.name, "timerslack_ns").read_text().strip() for task in tasks}
    assert slack_ns == {"1000000"}


def test_valkey_never_evicts(servers: Servers) -> None:
    with Redis.from_url(servers.redis_url) as redis:
        assert redis.config_get("maxmemory-policy") == {"maxmemory-policy": "noeviction"}


@pytest.mark.parametrize("setting", ["fsync", "synchronous_commit", "full_page_writes"])
async def test_a_commit_means_on_disk(servers: Servers, setting: str) -> None:
    connection = await asyncpg.connect(servers.database_url)
    try:
        assert await connection.fetchval(f"SHOW {setting}") == "on"
    finally:
        await connection.close()


@pytest.mark.parametrize("name", ["nats", "valkey", "postgres"])
def test_a_killed_server_is_started_again(own_servers: Stack, name: str) -> None:
    before = {status.name: status.pid for status in own_servers.status()}

    own_servers.kill(name)
    own_servers.wait_ready(name)

    after = {status.name: status.pid for status in own_servers.status()}
    assert after[name] not in {0, before[name]}
    assert {other: pid for other, pid in after.items() if other != name} == {
        other: pid for other, pid in before.items() if other != name
    }
