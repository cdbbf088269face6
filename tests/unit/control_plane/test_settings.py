"""Settings: a wrong one is refused by name, without its value."""

import pytest

from control_plane.settings import ControlPlaneSettings
from kit.settings import SettingsError, load

ENOUGH = {"QUOTAGATE_ADMIN_TOKEN": "a" * 16, "QUOTAGATE_KEY_PEPPER": "b" * 16}


def test_the_two_secrets_are_enough() -> None:
    settings = load(ControlPlaneSettings, ENOUGH)
    assert settings.port == 8081
    assert "a" * 16 not in repr(settings)
    assert "b" * 16 not in repr(settings)


@pytest.mark.parametrize("missing", sorted(ENOUGH))
def test_neither_secret_has_a_default(missing: str) -> None:
    rest = {name: value for name, value in ENOUGH.items() if name != missing}
    with pytest.raises(SettingsError, match=f"^{missing}: "):
        load(ControlPlaneSettings, rest)


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("QUOTAGATE_ADMIN_TOKEN", "guessable"),
        ("QUOTAGATE_KEY_PEPPER", ""),
        ("QUOTAGATE_PORT", "many"),
        ("QUOTAGATE_ADMIN_BODY_MAX_BYTES", "10"),
        ("QUOTAGATE_ADMIN_BODY_TIMEOUT_S", "0"),
        ("QUOTAGATE_OUTBOX_POLL_S", "0"),
        ("QUOTAGATE_OUTBOX_ACK_TIMEOUT_S", "-1"),
        ("QUOTAGATE_LIMITS_TIMEOUT_S", "soon"),
        ("QUOTAGATE_IDEMPOTENCY_RETENTION_H", "0"),
        ("QUOTAGATE_WEBHOOK_URL", "ftp://somewhere"),
        ("QUOTAGATE_WEBHOOK_SECRET", "whsec_short"),
        ("QUOTAGATE_WEBHOOK_TIMEOUT_S", "0"),
        ("QUOTAGATE_WEBHOOK_PATIENCE_H", "0"),
    ],
)
def test_a_wrong_one_is_named_and_its_value_is_not_told(name: str, value: str) -> None:
    with pytest.raises(SettingsError, match=f"^{name}: ") as caught:
        load(ControlPlaneSettings, ENOUGH | {name: value})
    assert "guessable" not in str(caught.value)


def test_a_webhook_needs_a_secret() -> None:
    with pytest.raises(SettingsError, match=r"^QUOTAGATE_WEBHOOK_SECRET: "):
        load(ControlPlaneSettings, ENOUGH | {"QUOTAGATE_WEBHOOK_URL": "https://example.com/hook"})
