"""compose.yaml fits the code: its settings exist, and each service mounts only its own secrets."""

import tomllib
from pathlib import Path
from typing import Any

import pytest
import yaml

from quotagate.provision import Addresses, contents
from quotagate.settings_page import settings_class
from quotagate.stack.layout import MODULES
from quotagate.stack.state import Credentials
from quotagate.stores import StoreSettings

ROOT = Path(__file__).parents[3]
SECRETS = "/run/secrets/"


@pytest.fixture(scope="module")
def compose() -> dict[str, Any]:
    loaded: dict[str, Any] = yaml.safe_load((ROOT / "compose.yaml").read_text())
    return loaded


@pytest.mark.parametrize("service", sorted(MODULES))
def test_a_service_s_variables_are_its_settings(compose: dict[str, Any], service: str) -> None:
    module = __import__(f"{MODULES[service]}.settings", fromlist=["settings"])
    known = {f"QUOTAGATE_{name.upper()}" for name in settings_class(module).model_fields}
    # What routes.toml asks for, and what the library that sends spans reads for itself.
    known |= {"QUOTAGATE_FAKE_PROVIDER_URL", "QUOTAGATE_FAKE_PROVIDER_KEY"}
    known |= {"OTEL_EXPORTER_OTLP_HEADERS", "OTEL_RESOURCE_ATTRIBUTES"}
    given = compose["services"][service]["environment"]
    assert {name if name in known else name.removesuffix("_FILE") for name in given} <= known


@pytest.mark.parametrize("service", sorted(set(MODULES) - {"fake-provider"}))
def test_a_service_s_traces_are_a_matter_of_variables(
    compose: dict[str, Any], service: str
) -> None:
    assert {"QUOTAGATE_TRACES_ENDPOINT", "QUOTAGATE_TRACES_SAMPLE"} <= set(
        compose["services"][service]["environment"]
    )


@pytest.mark.parametrize("service", sorted(set(MODULES) - {"fake-provider"}))
def test_a_service_mounts_its_own_secrets_and_finds_each_file(
    compose: dict[str, Any], service: str
) -> None:
    described = compose["services"][service]
    mounted = [volume for volume in described["volumes"] if "secrets" in volume]
    assert mounted == [f"{service}-secrets:/run/secrets:ro"]
    wanted = {
        value.removeprefix(SECRETS)
        for value in described["environment"].values()
        if value.startswith(SECRETS)
    }
    assert wanted == set(contents(Credentials.generate(), Addresses("v:1", "p:1"))[service])


def test_every_package_is_built_into_an_image(compose: dict[str, Any]) -> None:
    built = {
        described["build"]["args"]["SERVICE"]
        for described in compose["services"].values()
        if "build" in described
    }
    packages = {
        tomllib.loads(path.read_text())["project"]["name"].removeprefix("quotagate-")
        for path in [*ROOT.glob("services/*/pyproject.toml"), *ROOT.glob("infra/**/pyproject.toml")]
    }
    assert built == packages


def test_what_is_scaled_has_no_fixed_name_or_port(compose: dict[str, Any]) -> None:
    for service in ("admission", "tier-cache", "settlement"):
        assert "ports" not in compose["services"][service]
    for described in compose["services"].values():
        assert "container_name" not in described


def test_an_operator_reaches_every_store(compose: dict[str, Any]) -> None:
    described = compose["services"]["operator"]
    known = {f"QUOTAGATE_{name.upper()}" for name in StoreSettings.model_fields}
    given = described["environment"]
    assert {name.removesuffix("_FILE") for name in given} <= known
    assert {"QUOTAGATE_NATS_URL", "QUOTAGATE_NATS_MONITOR_URL"} < set(given)
    assert described["volumes"] == ["operator-secrets:/run/secrets:ro"]
    wanted = {value for value in given.values() if value.startswith(SECRETS)}
    provided = contents(Credentials.generate(), Addresses("v:1", "p:1"))["operator"]
    assert wanted == {f"{SECRETS}{name}" for name in ("nats_password", "redis_url", "database_url")}
    assert {value.removeprefix(SECRETS) for value in wanted} <= set(provided)
    # It starts nothing by itself, and nothing waits for it.
    assert described["profiles"] == ["tools"]
    assert "depends_on" not in described
