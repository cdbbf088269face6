"""Names of programs, and what reaches their environment."""

from pathlib import Path

import pytest

from quotagate.stack import layout
from quotagate.stack.state import State


@pytest.mark.parametrize(
    ("program", "service"),
    [
        ("admission", "admission"),
        ("admission-2", "admission"),
        ("edge-proxy", "edge-proxy"),
        ("edge-proxy-12", "edge-proxy"),
        ("control-plane", "control-plane"),
        ("nats", "nats"),
        ("nats-2", "nats-2"),
    ],
)
def test_the_service_of_a_program(program: str, service: str) -> None:
    assert layout.service_of(program) == service


def test_replicas_are_numbered_from_two() -> None:
    names = layout.replicas(["admission", "edge-proxy"], {"admission": 3})
    assert names == ["admission", "admission-2", "admission-3", "edge-proxy"]


def test_a_service_gets_only_what_it_may_touch() -> None:
    state = State.new()
    state.ports.update(dict.fromkeys(("nats", "nats-monitor", "valkey", "postgres"), 1))
    state.ports.update(dict.fromkeys(layout.SERVICES, 2))
    secrets = {
        service: {
            name.removeprefix("QUOTAGATE_")
            for name in layout.service_environment(service, state)
            if any(word in name for word in ("PASSWORD", "REDIS", "DATABASE", "TOKEN", "PEPPER"))
        }
        for service in layout.SERVICES
    }
    assert secrets == {
        "edge-proxy": {"NATS_PASSWORD", "KEY_PEPPER"},
        "admission": {"NATS_PASSWORD", "REDIS_URL"},
        "tier-cache": {"NATS_PASSWORD", "REDIS_URL", "DATABASE_URL"},
        "settlement": {"NATS_PASSWORD", "REDIS_URL", "DATABASE_URL"},
        "control-plane": {"NATS_PASSWORD", "DATABASE_URL", "ADMIN_TOKEN", "KEY_PEPPER"},
        "fake-provider": set(),
    }


def test_a_user_s_settings_reach_the_services_but_not_those_the_stack_makes() -> None:
    environment = {
        "PATH": "/bin",
        "OPENAI_API_KEY": "sk",
        "PGHOST": "elsewhere",
        "QUOTAGATE_LOG_LEVEL": "debug",
        "QUOTAGATE_PORT": "1",
        "QUOTAGATE_NATS_PASSWORD_FILE": "/somewhere",
        "QUOTAGATE_ROUTES_FILE": "/mine.toml",
        "QUOTAGATE_POLICIES_FILE": "policies.toml",
    }
    inherited = layout.inherited_environment(environment, Path("/shipped.toml"), ours=True)
    assert inherited == {
        "PATH": "/bin",
        "OPENAI_API_KEY": "sk",
        "QUOTAGATE_LOG_LEVEL": "debug",
        "QUOTAGATE_ROUTES_FILE": "/mine.toml",
        "QUOTAGATE_POLICIES_FILE": str(Path.cwd() / "policies.toml"),
    }


def test_a_test_s_stack_is_deaf_to_the_user_s_settings() -> None:
    environment = {"PATH": "/bin", "QUOTAGATE_LOG_LEVEL": "debug"}
    inherited = layout.inherited_environment(environment, Path("/shipped.toml"), ours=False)
    assert inherited == {"PATH": "/bin", "QUOTAGATE_ROUTES_FILE": "/shipped.toml"}
