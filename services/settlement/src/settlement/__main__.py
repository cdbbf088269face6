"""Run settlement: `python -m settlement`."""

import os

from kit.asgi import serve
from kit.settings import load_or_exit
from kit.traces.tracer import opened
from settlement.app import build
from settlement.settings import Settings


def main() -> None:
    """Run until told to stop."""
    settings = load_or_exit(Settings)
    os.nice(settings.niceness)
    tracer = opened("settlement", settings)
    serve(build(settings, tracer), "settlement", settings, tracer=tracer)


if __name__ == "__main__":
    main()
