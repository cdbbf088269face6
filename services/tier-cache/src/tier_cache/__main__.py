"""Run tier-cache: `python -m tier_cache`."""

from kit.asgi import serve
from kit.settings import load_or_exit
from kit.traces.tracer import opened
from tier_cache.app import build
from tier_cache.settings import Settings


def main() -> None:
    """Run until told to stop."""
    settings = load_or_exit(Settings)
    tracer = opened("tier-cache", settings)
    serve(build(settings, tracer), "tier-cache", settings, tracer=tracer)


if __name__ == "__main__":
    main()
