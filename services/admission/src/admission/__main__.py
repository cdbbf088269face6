"""Run admission: `python -m admission`."""

from admission.app import build
from admission.settings import Settings
from kit.asgi import serve
from kit.settings import load_or_exit
from kit.traces.tracer import opened


def main() -> None:
    """Run until told to stop."""
    settings = load_or_exit(Settings)
    tracer = opened("admission", settings)
    serve(build(settings, tracer), "admission", settings, tracer=tracer)


if __name__ == "__main__":
    main()
