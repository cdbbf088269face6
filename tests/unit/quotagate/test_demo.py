"""The demo data fit the routes that ship."""

import tomllib
from pathlib import Path

from quotagate.demo import MODEL, PRICES

FILE = Path(__file__).parents[3] / "infra" / "config" / "routes.toml"
ROUTES = tomllib.loads(FILE.read_text(encoding="utf-8"))


def test_every_model_of_the_fake_provider_is_priced() -> None:
    deployed = {
        (deployment["provider"], deployment["model"])
        for route in ROUTES["models"].values()
        for deployment in route["deployments"]
    }
    priced = {(provider, model) for provider, models in PRICES.items() for model in models}
    assert deployed == priced


def test_every_provider_that_ships_is_the_fake_one() -> None:
    addresses = {provider["base_url"] for provider in ROUTES["providers"].values()}
    assert addresses == {"${QUOTAGATE_FAKE_PROVIDER_URL}/v1"}


def test_the_demo_model_is_a_route() -> None:
    assert MODEL in ROUTES["models"]
