"""Run the edge: `python -m edge_proxy`."""

import sys

from edge_proxy.app import SERVICE, build, proxies_of
from edge_proxy.errors import PoliciesError, RoutesError
from edge_proxy.settings import Settings
from kit.asgi import serve
from kit.connection_limits import ConnectionLimits
from kit.http_connection import BoundedProtocol, limited_protocol
from kit.settings import load_or_exit
from kit.traces.tracer import opened

_EXIT_USAGE = 2


def main() -> None:
    """Run until told to stop."""
    settings = load_or_exit(Settings)
    tracer = opened(SERVICE, settings)
    try:
        app = build(settings, tracer)
    except RoutesError as error:
        sys.stderr.write(f"routes: {error}\n")
        raise SystemExit(_EXIT_USAGE) from None
    except PoliciesError as error:
        sys.stderr.write(f"policies: {error}\n")
        raise SystemExit(_EXIT_USAGE) from None
    serve(app, SERVICE, settings, http=_protocol(settings, app.state.protocol), tracer=tracer)


def _protocol(settings: Settings, base: type[BoundedProtocol]) -> type[BoundedProtocol]:
    """Return the protocol of connections, counted by their address where that is limited."""
    most_open = settings.max_connections_per_address
    most_per_second = settings.max_new_connections_per_address
    if not most_open and not most_per_second:
        return base
    address_of = proxies_of(settings).peer_of
    return limited_protocol(ConnectionLimits(most_open, most_per_second, address_of), base)


if __name__ == "__main__":
    main()
