"""Who gets which secret, and that they stay the same."""

from pathlib import Path

from quotagate.provision import Addresses, contents, provision
from quotagate.stack.state import Credentials

ADDRESSES = Addresses("valkey:6379", "postgres:5432")


def _files(directory: Path) -> dict[str, str]:
    return {
        str(path.relative_to(directory)): path.read_text()
        for path in directory.rglob("*")
        if path.is_file()
    }


def test_a_second_time_changes_nothing(tmp_path: Path) -> None:
    provision(tmp_path, ADDRESSES)
    first = _files(tmp_path)
    provision(tmp_path, ADDRESSES)
    assert _files(tmp_path) == first


def test_each_service_finds_only_what_it_may_touch() -> None:
    folders = contents(Credentials.generate(), ADDRESSES)
    assert {name: set(files) for name, files in folders.items()} == {
        "nats": {"nats.conf", "nats-users.conf"},
        "valkey": {"valkey.conf", "users.acl", "operator_password"},
        "postgres": {"postgresql.conf", "superuser_password", "owner_password"},
        "operator": {
            "nats_password",
            "database_url",
            "redis_url",
            "admin_token",
            "tier_cache_database_password",
            "settlement_database_password",
            "control_plane_database_password",
        },
        "edge-proxy": {"nats_password", "key_pepper"},
        "admission": {"nats_password", "redis_url"},
        "tier-cache": {"nats_password", "redis_url", "database_url"},
        "settlement": {"nats_password", "redis_url", "database_url"},
        "control-plane": {"nats_password", "database_url", "key_pepper", "admin_token"},
    }


def test_no_service_finds_another_s_secret() -> None:
    credentials = Credentials.generate()
    folders = contents(credentials, ADDRESSES)
    for service in ("edge-proxy", "admission", "tier-cache", "settlement", "control-plane"):
        text = "\n".join(folders[service].values())
        others = {
            *(password for user, password in credentials.nats.items() if user != service),
            *(password for user, password in credentials.valkey.items() if user != service),
        }
        assert not [secret for secret in others if secret in text]
