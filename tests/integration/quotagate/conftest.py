"""Servers of these tests alone: they look at all that a server holds, and break some of it."""

import os
import uuid
from collections.abc import AsyncIterator, Iterator
from pathlib import Path

import pytest
from integration.quotagate.scratch import Scratch, drop_database, make_database
from integration.quotagate.true_books import write_true_books

from quotagate.stack import PortPolicy, Stack

_STACKS = Path(__file__).parents[3] / "build" / "test-stacks"


@pytest.fixture(scope="session")
def lab() -> Iterator[Stack]:
    """A stack with only its servers, whose NATS and Valkey hold what these tests put there."""
    stack = Stack(_STACKS / f"{os.getpid()}-lab", PortPolicy.FREE)
    try:
        stack.up(services=())
        yield stack
    finally:
        stack.down()


@pytest.fixture(scope="session")
async def true_books(lab: Stack) -> str:
    """The name of a database in which everything is in order; nobody is connected to it."""
    scratch = await make_database(lab.servers, "true_books", template="quotagate")
    await write_true_books(scratch)
    await scratch.close()
    return scratch.name


@pytest.fixture
async def scratch(lab: Stack, true_books: str) -> AsyncIterator[Scratch]:
    """A copy of the true books, to falsify."""
    scratch = await make_database(lab.servers, f"scratch_{uuid.uuid4().hex}", template=true_books)
    yield scratch
    await scratch.close()
    await drop_database(lab.servers, scratch.name)
