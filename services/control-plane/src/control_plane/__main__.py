"""Run the control plane: `python -m control_plane`."""

from control_plane.app import build
from control_plane.settings import ControlPlaneSettings
from kit.asgi import serve
from kit.http_connection import BoundedProtocol
from kit.settings import load_or_exit
from kit.traces.tracer import opened


def main() -> None:
    """Run until told to stop."""
    settings = load_or_exit(ControlPlaneSettings)
    tracer = opened("control-plane", settings)
    app = build(settings, tracer)
    serve(app, "control-plane", settings, http=BoundedProtocol, tracer=tracer)


if __name__ == "__main__":
    main()
