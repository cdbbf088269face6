"""What `up` prints: where everything is, and a first request to copy."""

from quotagate.stack import Stack


def text(stack: Stack) -> str:
    """Return the addresses, the demo key and a `curl` line that works."""
    edges = [stack.url(name) for name in stack.programs_of("edge-proxy")]
    servers = stack.servers
    lines = [
        f"edge (OpenAI-compatible)  {'  '.join(f'{url}/v1' for url in edges)}",
        f"control plane             {stack.url('control-plane')}  (OpenAPI: /openapi.json)",
        f"  admin token             {stack.state.credentials.admin_token}",
        f"fake provider             {stack.url('fake-provider')}",
        f"NATS, its monitor         {servers.nats_url}  {servers.nats_monitor_url}",
        f"Valkey                    127.0.0.1:{stack.state.ports['valkey']}",
        f"Postgres                  127.0.0.1:{stack.state.ports['postgres']}",
        f"logs, data, passwords     {stack.directory}",
    ]
    return "\n".join(lines)
