"""Starts the control plane: settings in, server out."""

from control_plane.app import build
from control_plane.settings import ControlPlaneSettings
from kit.asgi import serve
from kit.settings import load_or_exit

if __name__ == "__main__":
    settings = load_or_exit(ControlPlaneSettings)
    serve(build(settings), "control-plane", settings)
