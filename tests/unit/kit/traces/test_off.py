"""Without a collector's address the library stays on the disk; with one it is loaded."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[4]
LIBRARY = ["google.protobuf", "opentelemetry.exporter", "opentelemetry.sdk.trace", "requests"]
SERVICES = ("edge_proxy", "admission", "tier_cache", "settlement", "control_plane")
# Redis's client looks for the library's metrics where it is installed, and asks it for nothing.
WITHOUT_REDIS = {"edge_proxy", "control_plane"}

# Everything that its process does up to where it would serve, and then what it has loaded.
_START = """
import importlib, json, sys
main = importlib.import_module(sys.argv[1] + ".__main__")
main.serve = lambda *_, tracer, **__: print(json.dumps(
    [tracer is not None, [name for name in sys.argv[2:] if name in sys.modules]]
))
main.main()
"""


def _started(
    service: str, folder: Path, *, of: list[str] = LIBRARY, **traces: str
) -> tuple[bool, list[str]]:
    """Return whether a service has a tracer, and which of these modules it has loaded."""
    environment = {
        "PATH": os.environ["PATH"],
        "QUOTAGATE_KEY_PEPPER": "a pepper for these tests",
        "QUOTAGATE_ADMIN_TOKEN": "a token for these tests",
        "QUOTAGATE_ROUTES_FILE": str(ROOT / "infra" / "config" / "routes.toml"),
        "QUOTAGATE_FAKE_PROVIDER_URL": "http://127.0.0.1:1",
        "QUOTAGATE_FAKE_PROVIDER_KEY": "fake",
        "QUOTAGATE_DATA_DIR": str(folder),
        **traces,
    }
    ended = subprocess.run(  # noqa: S603 # our own interpreter and text
        [sys.executable, "-c", _START, service, *of],
        env=environment,
        cwd=folder,
        capture_output=True,
        text=True,
        check=False,
    )
    assert ended.returncode == 0, ended.stderr
    traced, loaded = json.loads(ended.stdout)
    return traced, loaded


@pytest.mark.parametrize("service", SERVICES)
def test_off_nothing_of_it_is_loaded(service: str, tmp_path: Path) -> None:
    assert _started(service, tmp_path) == (False, [])
    if service in WITHOUT_REDIS:
        assert _started(service, tmp_path, of=["opentelemetry.sdk"]) == (False, [])


def test_on_it_is(tmp_path: Path) -> None:
    on = _started("edge_proxy", tmp_path, QUOTAGATE_TRACES_ENDPOINT="http://127.0.0.1:1")
    assert on == (True, LIBRARY)
