"""The admin API: every route, without the gate in front of it."""

from fastapi import FastAPI

from control_plane.handlers import (
    accounts,
    errors,
    events,
    keys,
    limits,
    openapi,
    prices,
    records,
    teams,
    tiers,
    webhooks,
)
from control_plane.handlers.services import Services

_ROUTERS = (teams, keys, accounts, limits, records, tiers, prices, events, webhooks)


def api(services: Services) -> FastAPI:
    """Return the application. It is for behind the gate: by itself it asks nobody who they are."""
    application = FastAPI(
        openapi_url=None,  # served in front of the gate
        docs_url=None,
        redoc_url=None,
        redirect_slashes=False,  # a redirect would be built from the Host header
        responses=openapi.EVERYWHERE | openapi.WITH_BODY,
        generate_unique_id_function=lambda route: route.name,
    )
    application.state.services = services
    for resource in _ROUTERS:
        application.include_router(resource.router)
    errors.install(application)
    return application
