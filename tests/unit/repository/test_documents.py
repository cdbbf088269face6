"""Documents say what the code says: what can be compared is compared."""

import ast
import re
from pathlib import Path

import pytest

from contracts.catalogue import EVENTS, REQUESTS, STREAMS
from quotagate.settings_page import page

ROOT = Path(__file__).parents[3]
DOCS = ROOT / "docs"
PAGES = [ROOT / "README.md", ROOT / "CONTRIBUTING.md", *sorted(DOCS.rglob("*.md"))]


def test_every_setting_stands_in_the_settings_page() -> None:
    assert (DOCS / "settings.md").read_text(encoding="utf-8") == page(), "run: make docs"


@pytest.mark.parametrize("document", PAGES, ids=lambda path: str(path.relative_to(ROOT)))
def test_a_document_names_only_files_that_exist(document: Path) -> None:
    text = re.sub(r"```[\s\S]*?```", "", document.read_text(encoding="utf-8"))
    linked = [link for link in re.findall(r"\]\(([^)#]+)\)", text) if "://" not in link]
    assert not [link for link in linked if not (document.parent / link).exists()]
    named = set(re.findall(r"`(\w[\w./-]*\.(?:py|lua|md|toml|yaml|json))`", text))
    everything = [str(path.relative_to(ROOT)) for path in _files()]
    unknown = {
        name
        for name in named
        if not any(path == name or path.endswith(f"/{name}") for path in everything)
    }
    assert not unknown - {"state.json"}


def _files() -> list[Path]:
    folders = ("services", "shared", "lua", "infra", "tests", "docs")
    inside = [path for folder in folders for path in (ROOT / folder).rglob("*") if path.is_file()]
    return inside + [path for path in ROOT.iterdir() if path.is_file()]


SUBJECTS = [contract.subject for contract in REQUESTS] + [event.subject for event in EVENTS]


@pytest.mark.parametrize("subject", [*SUBJECTS, *(stream.name for stream in STREAMS)])
def test_nothing_else_spells_a_subject(subject: str) -> None:
    """Subjects and streams are spelled in the contracts; others import them."""
    fixed = subject.partition(".{")[0]
    spelled = [
        str(path.relative_to(ROOT))
        for folder in ("services", "shared", "lua", "infra")
        for path in (ROOT / folder).rglob("*.py")
        if "contracts" not in path.parts and _spells(path, fixed)
    ]
    assert spelled == []


def _spells(path: Path, subject: str) -> bool:
    """Whether a string of the code, and not of a docstring, holds the subject."""
    tree = ast.parse(path.read_text(encoding="utf-8"))
    described = {id(n.value) for n in ast.walk(tree) if isinstance(n, ast.Expr)}
    return any(
        isinstance(node, ast.Constant)
        and isinstance(node.value, str)
        and id(node) not in described
        and subject in node.value
        for node in ast.walk(tree)
    )
