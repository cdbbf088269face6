"""Run the edge: `python -m edge_proxy`."""

import sys

from edge_proxy.app import SERVICE, build
from edge_proxy.errors import RoutesError
from edge_proxy.settings import Settings
from kit.asgi import serve
from kit.http_connection import BoundedProtocol
from kit.settings import load_or_exit

_EXIT_USAGE = 2


def main() -> None:
    """Run until told to stop."""
    settings = load_or_exit(Settings)
    try:
        app = build(settings)
    except RoutesError as error:
        sys.stderr.write(f"routes: {error}\n")
        raise SystemExit(_EXIT_USAGE) from None
    serve(app, SERVICE, settings, http=BoundedProtocol)


if __name__ == "__main__":
    main()
