"""Gates: a request waits at one until a test opens it. Order without clocks."""

import asyncio


class Gates:
    """Gates by name; each is closed until it is opened, and then stays open."""

    def __init__(self) -> None:
        self._events: dict[str, asyncio.Event] = {}

    def of(self, name: str) -> asyncio.Event:
        """Return the event that is set when the gate opens."""
        return self._events.setdefault(name, asyncio.Event())

    def open(self, name: str) -> None:
        """Let all pass who wait or will come."""
        self.of(name).set()

    def forget(self) -> None:
        """Open all gates, and have them closed again for whoever comes later."""
        for event in self._events.values():
            event.set()
        self._events.clear()
