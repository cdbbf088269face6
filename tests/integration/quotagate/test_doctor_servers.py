"""The doctor against real servers that are configured wrongly, and services that refuse them."""

import asyncio
from pathlib import Path

import pytest
from integration.bus import nats_settings
from integration.quotagate.scratch import Scratch
from integration.quotagate.wrong_servers import (
    Wrong,
    careless_role,
    forgetful_bucket,
    missing_bucket,
    missing_stream,
    open_redis,
    postgres_setting,
    redis_setting,
    stream_with,
    unsynced_jetstream,
)
from integration.services import ServiceProcess
from nats.js.api import DiscardPolicy, RetentionPolicy, StorageType

from contracts.inference import INFERENCE_RECORDED, INFERENCE_RECORDS
from kit.bus.connection import connection
from quotagate.config_folder import config_folder
from quotagate.doctor import examine
from quotagate.stack import Stack
from quotagate.stores import of_servers

MISCONFIGURED = [
    pytest.param(
        unsynced_jetstream,
        "nats: JetStream acknowledges before it syncs to disk",
        {"settlement", "tier-cache", "edge-proxy"},
        id="JetStream doesn't sync",
    ),
    pytest.param(
        missing_stream,
        "stream INFERENCE_RECORDS isn't there",
        {"settlement"},
        id="a stream is missing",
    ),
    pytest.param(
        missing_bucket, "bucket IDEMPOTENCY isn't there", {"edge-proxy"}, id="a bucket is missing"
    ),
    pytest.param(
        forgetful_bucket,
        "bucket IDEMPOTENCY drops old values when it is full",
        {"edge-proxy"},
        id="a bucket drops the old",
    ),
    pytest.param(
        stream_with(discard=DiscardPolicy.OLD),
        "stream INFERENCE_RECORDS drops old messages when it is full",
        {"settlement", "edge-proxy"},
        id="a stream drops the old",
    ),
    pytest.param(
        stream_with(storage=StorageType.MEMORY),
        "stream INFERENCE_RECORDS is kept in memory",
        {"settlement"},
        id="a stream is in memory",
    ),
    pytest.param(
        stream_with(retention=RetentionPolicy.WORK_QUEUE),
        "stream INFERENCE_RECORDS drops what was read",
        {"settlement"},
        id="a stream is a work queue",
    ),
    pytest.param(
        stream_with(max_age=3600.0),
        "stream INFERENCE_RECORDS drops messages too early",
        {"settlement"},
        id="a stream forgets by age",
    ),
    pytest.param(
        stream_with(no_ack=True),
        "stream INFERENCE_RECORDS doesn't acknowledge",
        {"settlement"},
        id="a stream doesn't acknowledge",
    ),
    pytest.param(
        stream_with(subjects=["quota.v1.inference.recorded.demo"]),
        "stream INFERENCE_RECORDS doesn't take quota.v1.inference.recorded.*",
        {"settlement"},
        id="a stream lacks a subject",
    ),
    pytest.param(
        stream_with(duplicate_window=60.0),
        "stream INFERENCE_RECORDS remembers message ids for 60 s, not 600 s",
        set(),
        id="a stream forgets message ids",
    ),
    pytest.param(
        redis_setting("maxmemory-policy", "allkeys-lru"),
        "redis: maxmemory-policy is allkeys-lru, not noeviction",
        {"admission", "tier-cache", "settlement"},
        id="Redis evicts",
    ),
    pytest.param(
        redis_setting("appendonly", "no"), "redis: appendonly is off", set(), id="Redis forgets"
    ),
    pytest.param(
        redis_setting("appendfsync", "no"),
        "redis: appendfsync is no",
        set(),
        id="Redis never syncs",
    ),
    pytest.param(
        redis_setting("maxmemory", "32mb"),
        "redis: maxmemory is 33,554,432 bytes",
        set(),
        id="Redis has little room",
    ),
    pytest.param(
        open_redis, "redis: anyone who reaches the port may write", set(), id="Redis is open"
    ),
    pytest.param(
        postgres_setting("fsync"),
        "postgres: fsync is off",
        {"settlement", "control-plane"},
        id="Postgres doesn't sync",
    ),
    pytest.param(
        postgres_setting("synchronous_commit"),
        "postgres: synchronous_commit is off",
        {"settlement"},
        id="Postgres commits without syncing",
    ),
    pytest.param(
        postgres_setting("full_page_writes"),
        "postgres: full_page_writes is off",
        {"control-plane"},
        id="Postgres writes torn pages",
    ),
    pytest.param(
        careless_role,
        "postgres: synchronous_commit is off for role quotagate_settlement",
        {"settlement"},
        id="settlement's role commits without syncing",
    ),
]


async def test_the_stack_s_servers_are_healthy(lab: Stack) -> None:
    diagnosis = await examine(of_servers(lab.servers))
    assert (diagnosis.flaws, diagnosis.untold) == ([], [])
    assert [server.split(" ")[0] for server in diagnosis.servers] == ["nats", "valkey", "postgres"]
    assert [clock.store for clock in diagnosis.clocks] == ["nats", "redis", "postgres"]


@pytest.mark.parametrize(("wrong", "expected", "services"), MISCONFIGURED)
async def test_what_is_configured_wrongly_is_found_and_no_service_is_ready_with_it(
    lab: Stack, tmp_path: Path, wrong: Wrong, expected: str, services: set[str]
) -> None:
    processes = [
        ServiceProcess(lab.servers, service, tmp_path, _needed(service, tmp_path))
        for service in sorted(services)
    ]
    async with wrong(lab):
        diagnosis = await examine(of_servers(lab.servers))
        assert expected in [flaw.what for flaw in diagnosis.flaws]
        dangerous = {flaw.what for flaw in diagnosis.flaws if flaw.dangerous}
        assert (expected in dangerous) == bool(services)
        try:
            await asyncio.gather(*(process.start() for process in processes))
            for process in processes:
                await _refuses(process, expected)
        finally:
            for process in processes:
                await process.stop()


async def _refuses(process: ServiceProcess, expected: str) -> None:
    """Return once the service says that this is why it isn't ready."""
    async with asyncio.timeout(30):
        while True:
            reasons = await process.problems()
            assert "service" in reasons, (reasons, process.log())
            if (reason := reasons["service"]) != "starting":
                break
            await asyncio.sleep(0.02)
    # A missing stream has its own words; a role's own setting is just the session's setting there.
    missing = expected.replace(" isn't there", ": NotFoundError")
    assert reason in {expected, expected.partition(" for role ")[0], missing}


def _needed(service: str, folder: Path) -> dict[str, str]:
    return {
        "QUOTAGATE_KEY_PEPPER": "p" * 64,
        "QUOTAGATE_ADMIN_TOKEN": "admin_" + "t" * 40,
        "QUOTAGATE_ROUTES_FILE": str(config_folder() / "routes.toml"),
        "QUOTAGATE_FAKE_PROVIDER_URL": "http://127.0.0.1:1",
        "QUOTAGATE_FAKE_PROVIDER_KEY": "fake",
        "QUOTAGATE_DATA_DIR": str(folder / service),
    }


async def test_settlement_is_not_ready_without_a_unique_index(
    lab: Stack, scratch: Scratch, tmp_path: Path
) -> None:
    await scratch.run(
        "ALTER TABLE inference_record DROP CONSTRAINT inference_record_inference_id_attempt_no_key"
    )
    expected = "there is no unique inference_id, attempt_no of inference_record in force"
    for service in ("settlement", "control-plane"):
        url = scratch.url(f"quotagate_{service.replace('-', '_')}")
        settings = {"QUOTAGATE_DATABASE_URL": url, **_needed(service, tmp_path)}
        process = ServiceProcess(lab.servers, service, tmp_path, settings)
        await process.start()
        try:
            await _refuses(process, f"postgres: {expected}")
        finally:
            await process.stop()


async def test_a_stream_that_is_nearly_full_is_found(lab: Stack) -> None:
    async with (
        stream_with(max_bytes=10_000)(lab),
        connection(nats_settings(lab.servers, "operator"), "test") as client,
    ):
        await client.jetstream().publish(INFERENCE_RECORDED.subject_for("a"), b"x" * 8_500)
        diagnosis = await examine(of_servers(lab.servers))
    words = [flaw.what for flaw in diagnosis.flaws]
    assert words == [f"stream {INFERENCE_RECORDS.name} is 86% full"]


async def test_a_server_that_does_not_answer_is_not_healthy(lab: Stack) -> None:
    settings = of_servers(lab.servers).model_copy(update={"nats_monitor_url": "http://127.0.0.1:1"})
    diagnosis = await examine(settings)
    assert diagnosis.flaws == []
    assert diagnosis.untold == ["nats monitoring: ConnectError"]
    assert [clock.store for clock in diagnosis.clocks] == ["redis", "postgres"]
