"""What consuming tells settling."""

import asyncio


class Backlog:
    """That records were stored, and how many more the stream holds."""

    def __init__(self) -> None:
        self.stored = asyncio.Event()
        """Set whenever records were stored; whoever settles clears it."""
        self.unread = 0
        """Messages the stream still held when some were last taken."""
