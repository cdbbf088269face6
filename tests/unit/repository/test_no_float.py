"""No binary fraction touches money: what the code says of amounts is Decimal, integer or text.

What the schema says of them is tested in tests/integration/tables/test_schema.py.
"""

import ast
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[3]
SOURCES = sorted(
    path
    for folder in ("shared/src", "lua", "services", "infra/src", "infra/fake-provider")
    for path in (ROOT / folder).rglob("*.py")
)
MONEY = re.compile(r"(^|_)usd(_|$)|^amount$|^balance$|^(amount|balance)_|_(amount|balance)$")


def _names(node: ast.AST) -> Iterator[str]:
    """Return every name that an expression mentions."""
    for each in ast.walk(node):
        if isinstance(each, ast.Name):
            yield each.id
        elif isinstance(each, ast.Attribute):
            yield each.attr
        elif isinstance(each, ast.arg | ast.keyword) and each.arg is not None:
            yield each.arg


def _is_money(node: ast.AST) -> bool:
    return any(MONEY.search(name) for name in _names(node))


def _is_binary(node: ast.AST) -> bool:
    """Tell whether an expression makes or is a binary fraction by itself."""
    return any(
        (isinstance(each, ast.Constant) and isinstance(each.value, float))
        or (isinstance(each, ast.Name) and each.id == "float")
        for each in ast.walk(node)
    )


def _touches(node: ast.AST) -> bool:
    if isinstance(node, ast.BinOp):
        divides = isinstance(node.op, ast.Div)
        return _is_money(node) and (divides or _is_binary(node.left) or _is_binary(node.right))
    if isinstance(node, ast.Call):
        made = node.func.id if isinstance(node.func, ast.Name) else ""
        if made == "Decimal":
            return any(_is_binary(argument) for argument in node.args)
        return made in {"float", "round"} and any(_is_money(each) for each in node.args)
    if isinstance(node, ast.AnnAssign):
        return _is_money(node.target) and _is_binary(node.annotation)
    if isinstance(node, ast.arg):
        named = MONEY.search(node.arg) is not None
        return named and node.annotation is not None and _is_binary(node.annotation)
    if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
        named = MONEY.search(node.name) is not None
        return named and node.returns is not None and _is_binary(node.returns)
    return False


def touched(source: str) -> list[str]:
    """Return the lines in which a binary fraction touches money."""
    lines = source.splitlines()
    found = {
        node.lineno
        for node in ast.walk(ast.parse(source))
        if isinstance(node, ast.expr | ast.stmt | ast.arg) and _touches(node)
    }
    return [lines[number - 1].strip() for number in sorted(found)]


def test_money_is_exact() -> None:
    assert len(SOURCES) > len({path.parent for path in SOURCES}) > 0
    found = {path: touched(path.read_text(encoding="utf-8")) for path in SOURCES}
    assert {str(path.relative_to(ROOT)): lines for path, lines in found.items() if lines} == {}


@pytest.mark.parametrize(
    "line",
    [
        "price_usd = tokens * usd_per_million / 1_000_000",
        "total = float(amount_usd)",
        "amount_usd: float = 0",
        "def balance_usd(): return balance_nano_usd * 1e-9",
        "def charge(amount_usd: float): ...",
        "async def cost_usd() -> float: ...",
        "shown = round(entry.balance_after_usd, 2)",
        "half = Decimal(0.5)",
    ],
)
def test_a_binary_fraction_would_be_found(line: str) -> None:
    assert touched(line) == [line]


@pytest.mark.parametrize(
    "line",
    [
        "amount_usd = Decimal('0.5')",
        "share = used / limit",
        "total_usd = exact_sum(*amounts)",
        "whole = balance_nano_usd // 10**9",
        "timeout_s: float = 0.5",
    ],
)
def test_what_is_exact_is_left_alone(line: str) -> None:
    assert touched(line) == []
