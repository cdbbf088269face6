"""The alarms of the operations page are the rules that ship, and ask for metrics that exist."""

import re
from pathlib import Path
from typing import Any

import pytest
import yaml

ROOT = Path(__file__).parents[3]
METRIC = re.compile(r"quotagate_[a-z_]+")


def _rules() -> list[dict[str, Any]]:
    text = (ROOT / "infra" / "config" / "alerts.yaml").read_text(encoding="utf-8")
    return [rule for group in yaml.safe_load(text)["groups"] for rule in group["rules"]]


def _served() -> set[str]:
    """Return the names of all metrics of the code."""
    return {
        name
        for folder in ("services", "shared", "lua")
        for path in (ROOT / folder).rglob("*.py")
        for name in re.findall(r'"(quotagate_[a-z_]+)"', path.read_text(encoding="utf-8"))
    }


def _alarms() -> list[str]:
    page = (ROOT / "docs" / "operations.md").read_text(encoding="utf-8")
    table = page.partition("## Alarms")[2].partition("\n## ")[0]
    return [line for line in table.splitlines() if line.startswith("| ")][2:]


@pytest.mark.parametrize("rule", _rules(), ids=lambda rule: rule["alert"])
def test_a_rule_asks_for_what_is_served_and_says_what_it_means(rule: dict[str, Any]) -> None:
    names = set(METRIC.findall(rule["expr"]))
    assert names
    assert not names - _served()
    assert rule["annotations"]["summary"]
    assert rule["labels"]["severity"] in {"page", "ticket", "info"}


def test_the_page_explains_each_rule_and_nothing_else() -> None:
    explained = {name for line in _alarms() for name in METRIC.findall(line.split("|")[1])}
    asked = {name for rule in _rules() for name in METRIC.findall(rule["expr"])}
    assert explained == asked
    assert len(_alarms()) == len(_rules())
