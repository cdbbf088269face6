"""Run admission: `python -m admission`."""

from admission.app import build
from admission.settings import Settings
from kit.asgi import serve
from kit.settings import load_or_exit


def main() -> None:
    """Run until told to stop."""
    settings = load_or_exit(Settings)
    serve(build(settings), "admission", settings)


if __name__ == "__main__":
    main()
