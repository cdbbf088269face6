"""docs/adapters.md says of adapters and headers what the code says."""

import re
from pathlib import Path

from edge_proxy.domain import headers
from edge_proxy.domain.adapters import ADAPTERS
from edge_proxy.domain.adapters.adapter import Traits
from edge_proxy.domain.endpoints import ENDPOINTS

PAGE = (Path(__file__).parents[3] / "docs" / "adapters.md").read_text(encoding="utf-8")


def _rows(head: str) -> list[list[str]]:
    """Return the cells of a table's rows, below the head that begins so."""
    table = PAGE[PAGE.index(f"| {head} ") :].partition("\n\n")[0].splitlines()
    return [[cell.strip() for cell in line.strip("|").split("|")] for line in table]


def test_adapters_by_endpoints() -> None:
    head, _, *rows = _rows("endpoint")
    adapters = {name: new(Traits()) for name, new in ADAPTERS.items()}
    assert head[1:] == [f"`{name}`" for name in adapters]
    expected = [
        [
            f"`{endpoint.path}`",
            *(
                f"`{adapter.apis[endpoint.path].path}`" if endpoint.path in adapter.apis else "–"
                for adapter in adapters.values()
            ),
        ]
        for endpoint in ENDPOINTS
    ]
    assert rows == expected


def test_headers() -> None:
    _, _, to_provider, to_client = _rows("way")
    sent = [(name.encode(), b"x") for name in _names(to_provider)]
    assert [name for name, _ in headers.to_provider(sent)[:-2]] == _names(to_provider)
    received = [(name, "x") for name in _names(to_client)]
    assert list(headers.to_client(received, error=True)) == _names(to_client)
    usual = to_client[1].partition(";")[0]
    assert list(headers.to_client(received)) == re.findall("`([^`]+)`", usual)


def _names(row: list[str]) -> list[str]:
    return re.findall("`([^`]+)`", row[1])
