"""Servers of these tests alone: they look at all that a server holds, and break some of it."""

import uuid
from collections.abc import AsyncIterator, Iterator

import pytest
from integration.quotagate.scratch import Scratch, drop_database, make_database
from integration.quotagate.true_books import write_true_books
from stacks import stack_of_servers

from quotagate.stack import Stack


@pytest.fixture(scope="session")
def lab() -> Iterator[Stack]:
    """A stack with only its servers, whose NATS and Valkey hold what these tests put there."""
    with stack_of_servers("lab") as stack:
        yield stack


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
