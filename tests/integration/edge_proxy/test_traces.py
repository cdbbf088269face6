"""A collector is never waited for: not by a request, and not by a stop."""

import signal
from pathlib import Path

import httpx
from collector import Seen, collector, deaf
from integration.edge_proxy.world import World
from integration.edge_proxy.world import world as new_world

from quotagate.stack import Stack

# Far longer than any test here may take.
NEVER_S = "3600"
NOWHERE = "http://127.0.0.1:1"


async def _answers(world: World, count: int = 3) -> None:
    team = world.team()
    for _ in range(count):
        assert (await world.ask(team)).status_code == httpx.codes.OK
    assert (await world.ask(team, more={"stream": True})).status_code == httpx.codes.OK


def _settings(url: str, timeout_s: str) -> dict[str, str]:
    return {
        "QUOTAGATE_TRACES_ENDPOINT": url,
        "QUOTAGATE_TRACES_SAMPLE": "1",
        "OTEL_EXPORTER_OTLP_TIMEOUT": timeout_s,
    }


async def test_a_collector_that_never_answers(module_servers: Stack, tmp_path: Path) -> None:
    async with (
        deaf() as silent,
        new_world(
            module_servers.servers, tmp_path, settings=_settings(silent.url, NEVER_S)
        ) as world,
    ):
        await _answers(world)
        await silent.accepted.wait()
        await _answers(world)
        world.edge.signal(signal.SIGTERM)
        # It has what it sent to the collector still on its hands.
        assert await world.edge.ended() == -signal.SIGTERM
        assert "Traceback" not in world.edge.log()


async def test_a_collector_that_is_not_there(module_servers: Stack, tmp_path: Path) -> None:
    dropped = 'quotagate_spans_dropped_total{reason="export_failed"}'
    async with new_world(
        module_servers.servers, tmp_path, settings=_settings(NOWHERE, "1")
    ) as world:
        await _answers(world)
        await world.edge.becomes_more(dropped)
        await _answers(world)
        world.edge.signal(signal.SIGTERM)
        assert await world.edge.ended() == -signal.SIGTERM
        log = world.edge.log()
    assert "the collector takes no spans" in log
    assert "Traceback" not in log


async def test_what_is_left_is_sent_at_a_stop(module_servers: Stack, tmp_path: Path) -> None:
    with collector() as found:
        async with new_world(
            module_servers.servers, tmp_path, settings=_settings(found.url, "10")
        ) as world:
            await _answers(world, count=1)
            world.edge.signal(signal.SIGTERM)
            await world.edge.ended()
        names = [span.name for span in found.spans]
    assert names.count("POST /v1/chat/completions") == 2
    assert names.count("chat plain") == 2


async def test_the_standard_s_variables_reach_the_collector(
    module_servers: Stack, tmp_path: Path
) -> None:
    standard = {
        "OTEL_EXPORTER_OTLP_HEADERS": "x-tenant=ours",
        "OTEL_RESOURCE_ATTRIBUTES": "deployment.environment.name=tests",
    }
    with collector() as found:
        settings = _settings(f"{found.url}/v1/traces", "10") | standard
        async with new_world(module_servers.servers, tmp_path, settings=settings) as world:
            await _answers(world, count=1)
            await world.edge.becomes_more("quotagate_spans_exported_total")
    assert found.headers[0]["x-tenant"] == "ours"
    assert b"deployment.environment.name" in found.bodies[0]


def _has_its_request(trace: list[Seen]) -> bool:
    return any(span.kind == "server" for span in trace)


async def test_a_line_of_the_log_names_its_span(module_servers: Stack, tmp_path: Path) -> None:
    trace_id = "4bf92f3577b34da6a3ce929d0e0e4736"
    with collector() as found:
        async with new_world(
            module_servers.servers, tmp_path, settings=_settings(found.url, "10")
        ) as world:
            answer = await world.http.post(
                "/v1/chat/completions",
                headers={
                    **world.team().headers,
                    "traceparent": f"00-{trace_id}-00f067aa0ba902b7-01",
                },
                json={"model": "nowhere", "messages": [{"role": "user", "content": "hello"}]},
            )
            assert answer.status_code == httpx.codes.BAD_GATEWAY
            trace = await found.trace(trace_id, _has_its_request)
            (request,) = [span for span in trace if span.kind == "server"]
            lines = [line for line in world.edge.log().splitlines() if trace_id in line]
    assert any("attempt did not succeed" in line for line in lines)
    assert all(f'"span_id":"{request.span_id}"' in line for line in lines)


async def test_a_trace_that_begins_here_is_the_record_s_and_not_the_provider_s(
    module_servers: Stack, tmp_path: Path
) -> None:
    with collector() as found:
        async with new_world(
            module_servers.servers, tmp_path, settings=_settings(found.url, "10")
        ) as world:
            team = world.team()
            assert (await world.ask(team)).status_code == httpx.codes.OK
            record = await world.records.one(team.team_id)
            assert record.trace_id is not None
            trace = await found.trace(record.trace_id, _has_its_request)
            seen = await world.witness.one(marker=team.team_id)
    assert [span.parent_id for span in trace if span.kind == "server"] == [""]
    names = {name for name, _ in seen["headers"]}
    assert "content-type" in names
    assert not names & {"traceparent", "tracestate"}
