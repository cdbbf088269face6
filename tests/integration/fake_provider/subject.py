"""Which provider the conformance suites talk to: the fake one, or a real one from variables."""

import os
from dataclasses import dataclass

PREFIX = "QUOTAGATE_CONFORMANCE_"


@dataclass(frozen=True, slots=True)
class Subject:
    """A provider's address, key and models."""

    base_url: str
    api_key: str
    chat_model: str
    completion_model: str
    embedding_model: str


def real_openai() -> Subject | None:
    """Return OpenAI, or what claims to be like it, if its key is in the environment."""
    return _real("OPENAI", "https://api.openai.com", "gpt-4o-mini")


def real_anthropic() -> Subject | None:
    """Return Anthropic if its key, and the model to use, are in the environment."""
    return _real("ANTHROPIC", "https://api.anthropic.com", "")


def _real(name: str, base_url: str, chat_model: str) -> Subject | None:
    def read(variable: str, default: str) -> str:
        return os.environ.get(f"{PREFIX}{name}_{variable}", default)

    if not read("KEY", ""):
        return None
    return Subject(
        base_url=read("BASE_URL", base_url),
        api_key=read("KEY", ""),
        chat_model=read("MODEL", chat_model),
        completion_model=read("COMPLETION_MODEL", "gpt-3.5-turbo-instruct"),
        embedding_model=read("EMBEDDING_MODEL", "text-embedding-3-small"),
    )
