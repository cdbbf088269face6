"""One fake provider for all tests of this folder, and the official clients that talk to it."""

from collections.abc import AsyncIterator

import anthropic
import httpx
import openai
import pytest
from integration.fake_provider.process import API_KEY, FakeProcess
from integration.fake_provider.subject import Subject, real_anthropic, real_openai
from integration.fake_provider.witness import Witness


@pytest.fixture(scope="session")
async def provider(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[FakeProcess]:
    process = FakeProcess(tmp_path_factory.mktemp("fake-provider"))
    await process.start()
    yield process
    await process.stop()
    assert '"level":"error"' not in process.log(), process.log()


@pytest.fixture(scope="session")
async def witness(provider: FakeProcess) -> AsyncIterator[Witness]:
    witness = Witness(provider.base_url)
    yield witness
    await witness.close()


@pytest.fixture(scope="session")
def fake_subject(provider: FakeProcess) -> Subject:
    return Subject(
        provider.base_url, API_KEY, "gpt-4o-mini", "gpt-4o-mini", "text-embedding-3-small"
    )


@pytest.fixture(scope="session")
def openai_subject(fake_subject: Subject) -> Subject:
    return real_openai() or fake_subject


@pytest.fixture(scope="session")
def anthropic_subject(fake_subject: Subject) -> Subject:
    return real_anthropic() or fake_subject


@pytest.fixture(scope="session")
async def openai_client(openai_subject: Subject) -> AsyncIterator[openai.AsyncOpenAI]:
    """OpenAI's client, told to check every answer against its own types."""
    async with openai.AsyncOpenAI(
        api_key=openai_subject.api_key,
        base_url=f"{openai_subject.base_url}/v1",
        max_retries=0,
        _strict_response_validation=True,
    ) as client:
        yield client


@pytest.fixture(scope="session")
async def lenient_client(openai_subject: Subject) -> AsyncIterator[openai.AsyncOpenAI]:
    """The client as everybody uses it, where its own types forbid what OpenAI really sends."""
    async with openai.AsyncOpenAI(
        api_key=openai_subject.api_key, base_url=f"{openai_subject.base_url}/v1", max_retries=0
    ) as client:
        yield client


@pytest.fixture(scope="session")
async def anthropic_client(anthropic_subject: Subject) -> AsyncIterator[anthropic.AsyncAnthropic]:
    """Anthropic's client, as strict."""
    async with anthropic.AsyncAnthropic(
        api_key=anthropic_subject.api_key,
        base_url=anthropic_subject.base_url,
        max_retries=0,
        _strict_response_validation=True,
    ) as client:
        yield client


@pytest.fixture(scope="session")
async def fake_openai(fake_subject: Subject) -> AsyncIterator[openai.AsyncOpenAI]:
    """The client of the tests that order a behaviour: always at the fake provider."""
    async with openai.AsyncOpenAI(
        api_key=fake_subject.api_key, base_url=f"{fake_subject.base_url}/v1", max_retries=0
    ) as client:
        yield client


@pytest.fixture(scope="session")
async def fake_anthropic(fake_subject: Subject) -> AsyncIterator[anthropic.AsyncAnthropic]:
    async with anthropic.AsyncAnthropic(
        api_key=fake_subject.api_key, base_url=fake_subject.base_url, max_retries=0
    ) as client:
        yield client


@pytest.fixture(scope="session")
async def http(fake_subject: Subject) -> AsyncIterator[httpx.AsyncClient]:
    """A plain client, for what the official ones hide; it carries a valid key for both APIs."""
    headers = {
        "authorization": f"Bearer {fake_subject.api_key}",
        "x-api-key": fake_subject.api_key,
        "accept-encoding": "identity",
    }
    async with httpx.AsyncClient(
        base_url=fake_subject.base_url, headers=headers, timeout=30
    ) as client:
        yield client
