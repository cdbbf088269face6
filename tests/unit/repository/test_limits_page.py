"""docs/limits.md and the shipped policies say what the edge understands."""

import re
import tomllib
from pathlib import Path

import pytest

from edge_proxy.app import policy_endpoints
from edge_proxy.domain.policies import parse
from edge_proxy.domain.reasons import REASONS

_ROOT = Path(__file__).parents[3]
_PAGE = (_ROOT / "docs" / "limits.md").read_text(encoding="utf-8")
_SHIPPED = (_ROOT / "infra" / "config" / "policies.toml").read_text(encoding="utf-8")


@pytest.mark.parametrize("reason", sorted(REASONS))
def test_every_reason_has_its_row(reason: str) -> None:
    (table,) = re.findall(r"^## Every reason\n(.*?)(?=^## |\Z)", _PAGE, re.MULTILINE | re.DOTALL)
    assert f"`{reason}`" in table


def test_the_example_is_one() -> None:
    (example,) = re.findall(r"```toml\n(.*?)```", _PAGE, re.DOTALL)
    policies = parse(example, policy_endpoints())
    assert len(policies["POST /v1/messages"].keys.windows) == 2
    assert len(policies["POST /v1/messages"].addresses.windows) == 1


def test_the_shipped_file_has_no_policy_and_its_comment_would_be_one() -> None:
    assert parse(_SHIPPED, policy_endpoints()) == {}
    lines = [line.removeprefix("# ") for line in _SHIPPED.splitlines() if line.startswith("#")]
    start = next(n for n, line in enumerate(lines) if line.startswith("[policies"))
    example = "\n".join(lines[start:])
    assert tomllib.loads(example)
    assert "POST /v1/messages" in parse(example, policy_endpoints())
