"""What consuming tells settling."""

import asyncio

from settlement.handlers.traced import RecordTraces


class Backlog:
    """That records were stored, and how many more the stream holds."""

    def __init__(self, traces: RecordTraces | None = None) -> None:
        self.stored = asyncio.Event()
        """Set whenever records were stored; whoever settles clears it."""
        self.unread = 0
        """Messages the stream still held when some were last taken."""
        self.traces = traces
        """Which of them belong to traces; None: there are no traces."""
