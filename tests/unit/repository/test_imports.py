"""Who may import what: services stay apart, a domain does no I/O, drivers are listed."""

import ast
import sys
import tomllib
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[3]
SERVICES = {
    path.name: path / "src" / path.name.replace("-", "_")
    for path in sorted((ROOT / "services").iterdir())
    if (path / "pyproject.toml").exists()
}
PACKAGES = {name.replace("-", "_") for name in SERVICES}
# What a driver is called when it is imported, by the extra of quotagate-shared that brings it.
DRIVERS = {
    "nats": {"nats", "kit.bus"},
    "redis": {"redis", "kit.redis", "redis_scripts"},
    "postgres": {"asyncpg", "sqlalchemy", "sqlmodel", "kit.postgres", "tables"},
}
IO = {
    *("nats", "redis", "asyncpg", "sqlalchemy", "sqlmodel", "httpx", "pyqwest", "starlette"),
    *("fastapi", "uvicorn", "asyncio", "socket", "subprocess", "kit.bus", "kit.redis"),
    *("kit.postgres", "redis_scripts"),
}
# The database's own words for states and directions are values, not I/O.
_VALUES = {"tables.records", "tables.ledger", "tables.prices", "kit.bus.errors"}


def _imports(path: Path) -> Iterator[str]:
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            yield from (name.name for name in node.names)
        elif isinstance(node, ast.ImportFrom) and node.module:
            yield node.module
            yield from (f"{node.module}.{name.name}" for name in node.names)


def _is_or_inside(name: str, packages: set[str]) -> bool:
    return any(name == package or name.startswith(f"{package}.") for package in packages)


def _extras(service: str) -> set[str]:
    project = tomllib.loads((ROOT / "services" / service / "pyproject.toml").read_text())
    listed = [d for d in project["project"]["dependencies"] if d.startswith("quotagate-shared[")]
    extras = {extra for d in listed for extra in d.partition("[")[2].rstrip("]").split(",")}
    if "quotagate-redis-scripts" in project["project"]["dependencies"]:
        extras.add("redis")
    return extras


@pytest.mark.parametrize("service", SERVICES)
def test_no_service_imports_another(service: str) -> None:
    others = PACKAGES - {service.replace("-", "_")}
    found = [
        (path.name, name)
        for path in SERVICES[service].rglob("*.py")
        for name in _imports(path)
        if _is_or_inside(name, others | {"quotagate", "fake_provider"})
    ]
    assert found == []


@pytest.mark.parametrize("service", SERVICES)
def test_a_domain_does_no_io(service: str) -> None:
    found = [
        (path.name, name)
        for path in (SERVICES[service] / "domain").rglob("*.py")
        for name in _imports(path)
        if _is_or_inside(name, IO) and not _is_or_inside(name, _VALUES)
    ]
    assert found == []


@pytest.mark.parametrize("service", SERVICES)
def test_a_service_imports_only_the_drivers_it_lists(service: str) -> None:
    unlisted = {
        name for extra, names in DRIVERS.items() if extra not in _extras(service) for name in names
    }
    found = [
        (path.name, name)
        for path in SERVICES[service].rglob("*.py")
        for name in _imports(path)
        if _is_or_inside(name, unlisted)
    ]
    assert found == []


@pytest.mark.parametrize("service", SERVICES)
def test_a_service_has_the_same_rooms_as_the_others(service: str) -> None:
    folder = SERVICES[service]
    rooms = {path.name for path in folder.iterdir() if path.is_dir() and path.name[0] != "_"}
    files = {path.stem for path in folder.glob("*.py")}
    assert rooms <= {"handlers", "domain", "store", "clients"}
    assert {"__main__", "app", "settings"} <= files
    assert files <= {"__init__", "__main__", "app", "settings", "errors"}


def test_contracts_import_nothing_of_ours() -> None:
    ours = {"kit", "tables", "redis_scripts", "quotagate", *PACKAGES}
    found = [
        (path.name, name)
        for path in (ROOT / "shared" / "src" / "contracts").rglob("*.py")
        for name in _imports(path)
        if _is_or_inside(name, ours)
        or not (_is_or_inside(name, {"contracts", "msgspec"}) or _standard(name))
    ]
    assert found == []


def _standard(name: str) -> bool:
    return name.partition(".")[0] in sys.stdlib_module_names


def test_no_module_imports_inside_a_function() -> None:
    found = [
        f"{path.relative_to(ROOT)}:{node.lineno}"
        for folder in ("services", "shared", "lua", "infra")
        for path in (ROOT / folder).rglob("*.py")
        for function in ast.walk(ast.parse(path.read_text(encoding="utf-8")))
        if isinstance(function, ast.FunctionDef | ast.AsyncFunctionDef)
        for node in ast.walk(function)
        if isinstance(node, ast.Import | ast.ImportFrom)
    ]
    assert found == []
