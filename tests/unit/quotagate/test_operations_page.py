"""docs/operations.md names what there is: metrics, findings, columns, commands."""

import re
from fnmatch import fnmatchcase
from pathlib import Path

import pytest

from quotagate.reconcile.usage_file import KNOWN_NAMES
from quotagate.verify import Kind

_ROOT = Path(__file__).parents[3]
_PAGE = (_ROOT / "docs" / "operations.md").read_text(encoding="utf-8")
_WORDS = set(re.findall(r"`([^`\n]+)`", _PAGE))


def _sources() -> str:
    folders = (*(_ROOT / "services").glob("*/src"), _ROOT / "shared" / "src", _ROOT / "lua")
    return "\n".join(
        path.read_text(encoding="utf-8") for folder in folders for path in folder.rglob("*.py")
    )


def test_every_metric_of_the_alarms_is_there() -> None:
    metrics = set(re.findall(r"`(quotagate_[a-z_]+)", _PAGE)) - {"quotagate_control_plane"}
    assert len(metrics) > 15
    sources = _sources()
    assert [name for name in sorted(metrics) if f'"{name}"' not in sources] == []


@pytest.mark.parametrize("kind", list(Kind))
def test_every_finding_is_explained(kind: Kind) -> None:
    assert any(fnmatchcase(kind.value, word) for word in _WORDS)


@pytest.mark.parametrize(
    "name", [name for ours, known in KNOWN_NAMES.items() for name in (str(ours), *known)]
)
def test_every_column_of_an_export_is_explained(name: str) -> None:
    assert name in _WORDS


@pytest.mark.parametrize(
    "command",
    ["verify", "doctor", "unknown-spend", "reconcile", "dead-letters", "held", "catch-up"],
)
def test_every_command_is_explained(command: str) -> None:
    assert f"`quotagate {command}" in _PAGE
