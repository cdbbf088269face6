"""Everything together: nobody is refused what his work needs, and each tells that it is ready."""

import http.client
import json
import os
import re

import pytest
from redis import Redis

from quotagate.stack import Stack
from quotagate.stack.layout import MODULES


@pytest.mark.parametrize("service", sorted(MODULES))
@pytest.mark.parametrize("path", ["/health/live", "/health/ready", "/metrics"])
def test_every_process_tells_how_it_is(stack: Stack, service: str, path: str) -> None:
    connection = http.client.HTTPConnection("127.0.0.1", stack.state.ports[service], timeout=10)
    connection.request("GET", path)
    assert connection.getresponse().status == 200
    connection.close()


def test_nats_refused_nobody(stack: Stack) -> None:
    lines = stack.log_file("nats").read_text().splitlines()
    assert [line for line in lines if re.search(r"(?i)permissions? violation", line)] == []


def test_valkey_refused_nobody(stack: Stack) -> None:
    with Redis.from_url(stack.servers.redis_url) as redis:
        assert redis.acl_log() == []


def test_the_log_is_one_json_object_a_line(stack: Stack) -> None:
    for service in MODULES:
        for line in stack.log_file(service).read_text().splitlines():
            assert json.loads(line)["service"] == service, line


def test_no_log_holds_a_secret(stack: Stack) -> None:
    credentials = stack.state.credentials
    secrets = {
        *credentials.nats.values(),
        *credentials.valkey.values(),
        *credentials.database.values(),
        credentials.admin_token,
        credentials.key_pepper,
        credentials.supervisor,
        stack.demo().key,
    }
    for log in (stack.directory / "logs").glob("*.log"):
        text = log.read_text(errors="replace")
        assert [secret for secret in secrets if secret in text] == [], log.name


@pytest.mark.parametrize("service", sorted(MODULES))
def test_readiness_is_a_metric_too(stack: Stack, service: str) -> None:
    connection = http.client.HTTPConnection("127.0.0.1", stack.state.ports[service], timeout=10)
    connection.request("GET", "/metrics")
    assert "\nquotagate_ready 1.0\n" in connection.getresponse().read().decode()
    connection.close()


def test_settlement_lets_the_others_go_first(stack: Stack) -> None:
    pids = {status.name: status.pid for status in stack.status()}
    assert os.getpriority(os.PRIO_PROCESS, pids["settlement"] or 0) > os.getpriority(
        os.PRIO_PROCESS, pids["edge-proxy"] or 0
    )
