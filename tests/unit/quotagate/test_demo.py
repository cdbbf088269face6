"""The demo data fit the routes that ship."""

import tomllib
from pathlib import Path

from quotagate.demo import PRICES, PROVIDER

ROUTES = Path(__file__).parents[3] / "infra" / "config" / "routes.toml"


def test_every_model_of_the_fake_provider_is_priced() -> None:
    models = tomllib.loads(ROUTES.read_text(encoding="utf-8"))["models"]
    deployed = {
        deployment["model"]
        for route in models.values()
        for deployment in route["deployments"]
        if deployment["provider"] == PROVIDER
    }
    assert deployed
    assert deployed <= set(PRICES)


def test_the_first_demo_model_is_a_route() -> None:
    assert next(iter(PRICES)) in tomllib.loads(ROUTES.read_text(encoding="utf-8"))["models"]
