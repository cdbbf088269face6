"""The policies file: what it says, and each mistake by its place."""

import pytest

from contracts.windows import Window
from edge_proxy.domain.policies import EndpointPolicy, Windows, parse
from edge_proxy.errors import PoliciesError

CHAT = "POST /v1/chat/completions"
MODELS = "GET /v1/models"
ENDPOINTS = (CHAT, MODELS)
MINUTE = Window(group="Chat", label="Minute", limit=100, length_us=60_000_000)
DAY = Window(group="Chat", label="Day", limit=10_000, length_us=86_400_000_000)

FILE = """
[policies.Chat]
endpoints = ["POST /v1/chat/completions"]
windows = [
    { label = "Minute", limit = 100, seconds = 60 },
    { label = "Day", limit = 10_000, seconds = 86_400 },
]
"""
ALL = """
[policies.All]
endpoints = ["POST /v1/chat/completions", "GET /v1/models"]
windows = []
address_windows = [{ label = "Second", limit = 5, seconds = 1 }]
on_store_failure = "closed"
shadow = true
"""


def test_keys_and_addresses_have_the_same_windows_unless_said() -> None:
    policies = parse(FILE, ENDPOINTS)
    assert policies == {CHAT: EndpointPolicy(Windows((MINUTE, DAY)), Windows((MINUTE, DAY)))}


def test_all_policies_of_an_endpoint_are_judged_together() -> None:
    policies = parse(FILE + ALL, ENDPOINTS)
    second = Window(group="All", label="Second", limit=5, length_us=1_000_000, shadow=True)
    assert policies == {
        CHAT: EndpointPolicy(Windows((MINUTE, DAY)), Windows((MINUTE, DAY, second), closed=True)),
        MODELS: EndpointPolicy(Windows(), Windows((second,), closed=True)),
    }
    assert not policies[MODELS].keys


def changed(before: str, after: str) -> str:
    assert before in FILE
    return FILE.replace(before, after, 1)


@pytest.mark.parametrize(
    ("text", "said"),
    [
        pytest.param("[", "not TOML", id="no TOML"),
        pytest.param("", "policies: Field required", id="nothing"),
        pytest.param(changed("windows", "window"), "policies.Chat.window", id="unknown field"),
        pytest.param(changed("Chat]", '"Chat-1"]'), "policies.Chat-1", id="a hyphen"),
        pytest.param(FILE + FILE.replace("Chat]", "chat]"), "differs in case only", id="twice"),
        pytest.param(
            changed("POST /v1/chat", "GET /v1/chat"),
            "policies.Chat.endpoints: 'GET /v1/chat/completions' is none of GET /v1/models, POST",
            id="an endpoint that isn't there",
        ),
        pytest.param(
            changed('completions"]', 'completions", "POST /v1/chat/completions"]'),
            "policies.Chat.endpoints: one of them stands there twice",
            id="an endpoint counted twice",
        ),
        pytest.param(
            changed("[policies.Chat]\nendpoints", "[policies.Chat]\nother"),
            "other",
            id="no endpoints",
        ),
        pytest.param(changed("limit = 100,", "limit = 0,"), "windows.0.limit", id="limit 0"),
        pytest.param(changed("limit = 100,", 'limit = "1",'), "windows.0.limit", id="text"),
        pytest.param(changed("seconds = 60 ", "seconds = 0 "), "windows.0.seconds", id="no time"),
        pytest.param(changed('"Day"', '"minute"'), "labels must differ", id="one label"),
        pytest.param(
            changed("10_000", "100"), "beside 'Day', 'Minute' would never refuse", id="pointless"
        ),
        pytest.param(
            changed("86_400", "60"), "beside 'Day', 'Minute' would never refuse", id="equally long"
        ),
        pytest.param(
            FILE + 'on_store_failure = "ajar"', "policies.Chat.on_store_failure", id="ajar"
        ),
    ],
)
def test_mistakes(text: str, said: str) -> None:
    with pytest.raises(PoliciesError) as caught:
        parse(text, ENDPOINTS)
    assert said in str(caught.value)


def test_no_more_windows_than_a_message_holds() -> None:
    many = "".join(FILE.replace("Chat]", f"G{number}]") for number in range(17))
    with pytest.raises(PoliciesError, match="more than 32 windows"):
        parse(many, ENDPOINTS)
