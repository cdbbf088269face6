"""docs/errors.md has every code of the edge and no other: the set is closed."""

import ast
import re
from collections.abc import Iterator
from pathlib import Path

_ROOT = Path(__file__).parents[3]
_EDGE = _ROOT / "services" / "edge-proxy" / "src" / "edge_proxy"
_PAGE = (_ROOT / "docs" / "errors.md").read_text(encoding="utf-8")
# Where a problem's code stands among the arguments of what makes one.
_POSITIONS = {"Problem": 2, "invalid_request": 0, "_upstream": 1}
# What makes problems of a code that its own callers say.
_MAKERS = {"invalid_request", "_upstream"}


def _codes(tree: ast.AST, maker: str = "") -> Iterator[str]:
    """Return every code that is said; one that isn't spelt out is an error."""
    for node in ast.iter_child_nodes(tree):
        inside = node.name if isinstance(node, ast.FunctionDef) else maker
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name):
            position = _POSITIONS.get(node.func.id)
            if position is not None and inside not in _MAKERS:
                code = node.args[position]
                assert isinstance(code, ast.Constant), ast.unparse(node)
                yield str(code.value)
        yield from _codes(node, inside)


def test_the_page_has_every_code_and_no_other() -> None:
    said = {
        code
        for path in _EDGE.rglob("*.py")
        for code in _codes(ast.parse(path.read_text(encoding="utf-8")))
    }
    rows = re.findall(r"^\| (`.*?`) \|", _PAGE, re.MULTILINE)
    told = [code for row in rows for code in re.findall(r"`([a-z_]+)`", row)]
    assert sorted(told) == sorted(said)
