"""The composition root."""

import contextlib
import secrets

from starlette.applications import Starlette
from starlette.routing import BaseRoute, Route

from fake_provider.domain.chat import CHAT
from fake_provider.domain.completions import COMPLETIONS
from fake_provider.domain.embeddings import EMBEDDINGS
from fake_provider.domain.messages import MESSAGES
from fake_provider.domain.responses import RESPONSES
from fake_provider.handlers.inference import Inference, Provider
from fake_provider.handlers.models import lookup_routes
from fake_provider.handlers.witness import witness_routes
from fake_provider.journal import Journal
from fake_provider.settings import FakeProviderSettings
from kit.asgi import service_app
from kit.health import Health

APIS = (CHAT, RESPONSES, MESSAGES, EMBEDDINGS, COMPLETIONS)
"""Everything that is inferred, the busiest first: routes are tried in order."""


def build(settings: FakeProviderSettings) -> Starlette:
    """Wire the provider."""
    journal = Journal(settings.fake_journal_entries, settings.fake_journal)
    provider = Provider(secrets.token_hex(4), settings.api_keys(), journal)
    health = Health()

    async def open_service(stack: contextlib.AsyncExitStack) -> None:
        stack.callback(journal.close)

    inference: list[BaseRoute] = [
        Route(api.path, Inference(api, provider), methods=["POST"]) for api in APIS
    ]
    routes = [
        *inference,
        *lookup_routes(provider, settings.models()),
        *witness_routes(provider),
    ]
    return service_app(routes, open_service, health)
