"""What `up` and `demo` print: where everything is, and a first request to copy."""

import json
import shlex

from quotagate.demo import DemoData
from quotagate.stack import Stack


def first_request(edge_url: str, demo: DemoData) -> str:
    """Return a `curl` line that works."""
    body = {"model": demo.model, "messages": [{"role": "user", "content": "Hello"}]}
    arguments = (
        *("curl", f"{edge_url}/v1/chat/completions"),
        *("-H", f"Authorization: Bearer {demo.key}"),
        *("-H", "Content-Type: application/json"),
        *("-d", json.dumps(body)),
    )
    return shlex.join(arguments)


def text(stack: Stack) -> str:
    """Return the addresses of a running stack, its demo key and a first request."""
    edges = [stack.url(name) for name in stack.programs_of("edge-proxy")]
    servers, ports = stack.servers, stack.state.ports
    demo = stack.demo()
    return "\n".join(
        [
            *(f"Edge (OpenAI)   {url}/v1" for url in edges),
            f"  API key       {demo.key}",
            f"Control plane   {stack.url('control-plane')}/admin/v1  (described at /openapi.json)",
            f"  admin token   {stack.state.credentials.admin_token}",
            f"Fake provider   {stack.url('fake-provider')}",
            f"NATS            {servers.nats_url}  (monitor: {servers.nats_monitor_url})",
            f"Valkey          redis://127.0.0.1:{ports['valkey']}",
            f"Postgres        postgresql://127.0.0.1:{ports['postgres']}/quotagate",
            f"Passwords       {stack.directory / 'state.json'}",
            "",
            "Try it:",
            "",
            first_request(edges[0], demo),
        ]
    )
