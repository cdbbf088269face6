"""The whole system, and an operator of it."""

from collections.abc import AsyncIterator

import pytest
from e2e.operator import Operator
from integration.fake_provider.witness import Witness

from quotagate.stack import Stack


@pytest.fixture(scope="session")
async def operator(stack: Stack) -> AsyncIterator[Operator]:
    operator = Operator(stack)
    yield operator
    await operator.close()


@pytest.fixture(scope="session")
async def witness(stack: Stack) -> AsyncIterator[Witness]:
    witness = Witness(stack.url("fake-provider"))
    yield witness
    await witness.close()
