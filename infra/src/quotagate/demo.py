"""Demo data: a tier, a team with a key and a credit, and prices; through the admin API alone.

What is there already stays as it is, so running it again, also after somebody changed the demo
tier or spent the demo credit, gives the same team and the same key.
"""

import os
import time
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from types import MappingProxyType
from typing import Any

import httpx

from kit import keys

TIER_ID = "tier_1"
TEAM_ID = "demo"
MODEL = "gpt-4o-mini"
PRICES: Mapping[str, Mapping[str, Mapping[str, str]]] = MappingProxyType(
    {
        "fake": {
            "gpt-4o-mini": {"input": "0.15", "cache_read": "0.075", "output": "0.60"},
            "gpt-4o": {"input": "2.50", "cache_read": "1.25", "output": "10.00"},
            "gpt-3.5-turbo-instruct": {"input": "1.50", "output": "2.00"},
            "text-embedding-3-small": {"input": "0.02", "output": "0"},
        },
        "fake-anthropic": {
            "claude-haiku-4-5": {
                "input": "1",
                "cache_read": "0.10",
                "cache_write_5m": "1.25",
                "cache_write_1h": "2",
                "output": "5",
            },
        },
    }
)
"""USD per million tokens, by provider and model: those that infra/config/routes.toml sends to the
fake provider."""

Json = dict[str, Any]

_TIER = {"rpm": 20, "tpm": 100_000}
_CREDIT = {"amount": "10", "reason": "Demo credit"}
_REQUEST_TIMEOUT_S = 10.0
_PUBLISHED_WITHIN_S = 15.0
_POLL_S = 0.05


class DemoError(Exception):
    """The demo data could not be made."""

    def __init__(self, message: str | None = None) -> None:
        super().__init__(message or type(self).__doc__)


@dataclass(frozen=True, slots=True)
class DemoData:
    """What a first call needs."""

    tier_id: str
    team_id: str
    key: str = field(repr=False)
    """The API key's text."""
    model: str
    """A model that is priced."""


def demo(control_plane_url: str, admin_token: str, key_file: Path) -> DemoData:
    """Make the demo data; returns once every service was told.

    The key's text is kept in `key_file`, which only its owner may read, because the control plane
    shows it once. A file whose key was revoked, or of another database, is replaced.

    Raises:
        DemoError: the control plane can't be reached, or it refused.

    """
    client = httpx.Client(
        base_url=f"{control_plane_url.rstrip('/')}/admin/v1",
        headers={"Authorization": f"Bearer {admin_token}"},
        timeout=_REQUEST_TIMEOUT_S,
    )
    with client:
        admin = _Admin(client)
        _make_tier(admin)
        _make_team(admin)
        _make_credit(admin)
        _make_prices(admin)
        key = _make_key(admin, key_file)
        admin.wait_until_published()
    return DemoData(TIER_ID, TEAM_ID, key, MODEL)


class _Admin:
    """The admin API; remembers the events of its changes."""

    def __init__(self, client: httpx.Client) -> None:
        self._client = client
        self._event_ids: list[str] = []

    def find(self, path: str) -> Json | None:
        """Return what is there; None: nothing."""
        response = self._send(self._client.build_request("GET", path))
        return None if response.status_code == httpx.codes.NOT_FOUND else _body(response)

    def get(self, path: str, **query: str) -> Json:
        """Return what must be there."""
        return _body(self._send(self._client.build_request("GET", path, params=query)))

    def write(
        self, method: str, path: str, body: Mapping[str, object], once: str | None = None
    ) -> Json:
        """Change something; `once` makes it happen once, whoever else is at it."""
        headers = {} if once is None else {"Idempotency-Key": once}
        request = self._client.build_request(method, path, json=body, headers=headers)
        told = _body(self._send(request))
        if told.get("event_id") is not None:
            self._event_ids.append(told["event_id"])
        return told

    def wait_until_published(self) -> None:
        """Return once the change events were acknowledged by their stream."""
        give_up_at = time.monotonic() + _PUBLISHED_WITHIN_S
        for event_id in self._event_ids:
            while self.get(f"/events/{event_id}")["published_at"] is None:
                if time.monotonic() > give_up_at:
                    raise DemoError("The control plane doesn't publish its change events.")
                time.sleep(_POLL_S)

    def _send(self, request: httpx.Request) -> httpx.Response:
        try:
            return self._client.send(request)
        except httpx.HTTPError as error:
            raise DemoError(f"The control plane doesn't answer: {type(error).__name__}") from error


def _body(response: httpx.Response) -> Json:
    if response.is_success:
        told: Json = response.json()
        return told
    try:
        reason = response.json()["error"]["message"]
    except (ValueError, LookupError, TypeError):
        reason = response.reason_phrase
    request = f"{response.request.method} {response.request.url.path}"
    raise DemoError(f"{request}: {response.status_code} {reason}")


def _make_tier(admin: _Admin) -> None:
    if admin.find(f"/tiers/{TIER_ID}") is None:
        admin.write("PUT", f"/tiers/{TIER_ID}", _TIER)


def _make_team(admin: _Admin) -> None:
    if admin.find(f"/teams/{TEAM_ID}") is None:
        team = {"team_id": TEAM_ID, "name": "Demo", "tier_id": TIER_ID}
        admin.write("POST", "/teams", team, once="demo-team")


def _make_credit(admin: _Admin) -> None:
    # Only for an account that nothing ever happened to; a spent credit isn't given again.
    if admin.get(f"/teams/{TEAM_ID}/account")["version"] == 0:
        admin.write("POST", f"/teams/{TEAM_ID}/credits", _CREDIT, once="demo-credit")


def _make_prices(admin: _Admin) -> None:
    for provider, models in PRICES.items():
        for model, usd_per_million in models.items():
            if not admin.get("/prices", provider=provider, model=model, limit="1")["items"]:
                price = {"provider": provider, "model": model, "usd_per_million": usd_per_million}
                admin.write("POST", "/prices", price, once=f"demo-price-{model}")


def _make_key(admin: _Admin, key_file: Path) -> str:
    kept = _read_key(key_file)
    if kept is not None and _is_valid(admin, kept):
        return kept
    made: str = admin.write("POST", f"/teams/{TEAM_ID}/keys", {"name": "demo"})["key"]
    _keep_key(key_file, made)
    return made


def _read_key(key_file: Path) -> str | None:
    try:
        return key_file.read_text(encoding="ascii").strip()
    except (FileNotFoundError, UnicodeDecodeError):
        return None


def _is_valid(admin: _Admin, key: str) -> bool:
    parsed = keys.parse(key)
    if parsed is None:
        return False
    cursor: str | None = ""
    while cursor is not None:
        query = {"limit": "200"} | ({"cursor": cursor} if cursor else {})
        page = admin.get(f"/teams/{TEAM_ID}/keys", **query)
        for found in page["items"]:
            if found["key_id"] == parsed.key_id:
                return found["revoked_at"] is None and found["expires_at"] is None
        cursor = page["next_cursor"]
    return False


def _keep_key(key_file: Path, key: str) -> None:
    """Write the file whole or not at all, readable by nobody else at any moment."""
    draft = key_file.with_name(f"{key_file.name}.{os.getpid()}")
    draft.unlink(missing_ok=True)
    draft.touch(mode=0o600, exist_ok=False)
    draft.write_text(key + "\n", encoding="ascii")
    draft.replace(key_file)
