"""Settings in, server out."""

from fake_provider.app import build
from fake_provider.connection import TransportProtocol
from fake_provider.settings import FakeProviderSettings
from kit import asgi
from kit.settings import load_or_exit

if __name__ == "__main__":
    settings = load_or_exit(FakeProviderSettings)
    asgi.serve(build(settings), "fake-provider", settings, http=TransportProtocol)
