from pathlib import Path

import pytest
from pydantic import Field, SecretStr, ValidationError

from kit.settings import ServiceSettings, SettingsError, load


class Example(ServiceSettings):
    """A service's settings."""

    password: SecretStr = Field(SecretStr(""), description="A secret.")


def test_defaults_and_variables() -> None:
    settings = load(
        Example, {"QUOTAGATE_PORT": "8080", "QUOTAGATE_LOG_LEVEL": "debug", "PORT": "1"}
    )
    assert (settings.port, settings.log_level, settings.grace_s) == (8080, "debug", 30.0)


def test_a_secret_can_be_a_file(tmp_path: Path) -> None:
    secret = tmp_path / "password"
    secret.write_text("s3cret with space \n", encoding="utf-8")
    settings = load(Example, {"QUOTAGATE_PORT": "1", "QUOTAGATE_PASSWORD_FILE": str(secret)})
    assert settings.password.get_secret_value() == "s3cret with space "


@pytest.mark.parametrize("name", ["ROUTES", "POLICIES"])
def test_a_setting_that_means_a_file_is_not_read(name: str) -> None:
    load(Example, {"QUOTAGATE_PORT": "1", f"QUOTAGATE_{name}_FILE": "/nowhere"})


@pytest.mark.parametrize(
    ("variables", "named"),
    [
        pytest.param({}, "QUOTAGATE_PORT", id="missing"),
        pytest.param({"QUOTAGATE_PORT": "many"}, "QUOTAGATE_PORT", id="not a number"),
        pytest.param({"QUOTAGATE_PORT": "70000"}, "QUOTAGATE_PORT", id="out of range"),
        pytest.param(
            {"QUOTAGATE_PORT": "1", "QUOTAGATE_GRACE_S": "0"}, "QUOTAGATE_GRACE_S", id="zero grace"
        ),
        pytest.param(
            {"QUOTAGATE_PORT": "1", "QUOTAGATE_PASSWORD_FILE": "/nowhere"},
            "QUOTAGATE_PASSWORD_FILE",
            id="no such file",
        ),
    ],
)
def test_a_wrong_setting_is_named_but_not_shown(variables: dict[str, str], named: str) -> None:
    with pytest.raises(SettingsError, match=named) as caught:
        load(Example, variables)
    assert "many" not in str(caught.value)


def test_settings_are_frozen() -> None:
    settings = load(Example, {"QUOTAGATE_PORT": "1"})
    with pytest.raises(ValidationError):
        settings.port = 2
