"""An operator's commands with the variables and files that a container of compose.yaml gets."""

from collections.abc import Mapping
from pathlib import Path

import pytest
import yaml
from integration.quotagate.command import run_command

from quotagate.provision import Addresses, contents
from quotagate.stack import Stack

COMPOSE = Path(__file__).parents[3] / "compose.yaml"


def _environment(lab: Stack, folder: Path) -> Mapping[str, str]:
    """Return the container's variables, with its servers and its files where the lab's are."""
    ports = lab.state.ports
    addresses = Addresses(f"127.0.0.1:{ports['valkey']}", f"127.0.0.1:{ports['postgres']}")
    for name, text in contents(lab.state.credentials, addresses)["operator"].items():
        (folder / name).write_text(text, encoding="utf-8")
    described = yaml.safe_load(COMPOSE.read_text(encoding="utf-8"))["services"]["operator"]
    given: dict[str, str] = described["environment"]
    return {
        name: value.replace("/run/secrets", str(folder))
        .replace("nats:4222", f"127.0.0.1:{ports['nats']}")
        .replace("nats:8222", f"127.0.0.1:{ports['nats-monitor']}")
        .replace("${QUOTAGATE_LOG_LEVEL:-info}", "info")
        for name, value in given.items()
    }


@pytest.mark.parametrize("command", ["doctor", "verify"])
async def test_the_operator_s_container_reaches_every_store(
    lab: Stack, tmp_path: Path, command: str
) -> None:
    answer = await run_command(command, "--json", environment=_environment(lab, tmp_path))
    assert answer.status == 0, answer.out + answer.err
