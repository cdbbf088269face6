"""Whose a stored response is, and where it is fetched."""

import msgspec
import pytest

from contracts.responses import StoredResponse
from edge_proxy.domain.adapters.openai_responses import stored_id
from edge_proxy.domain.inference import Caller
from edge_proxy.domain.problems import Problem
from edge_proxy.domain.routes import Target, parse
from edge_proxy.domain.stored_responses import entry_key, target_of
from edge_proxy.domain.surroundings import Surroundings

ROUTES = parse(
    """
    [providers.a]
    adapter = "openai"
    base_url = "http://a/v1"
    [providers.b]
    adapter = "openai"
    base_url = "http://b/v1"
    [providers.claude]
    adapter = "anthropic"
    base_url = "http://c/v1"
    [models.m]
    deployments = [
        { provider = "claude", model = "x" },
        { provider = "a", model = "x" },
        { provider = "b", model = "y" },
    ]
    """,
    Surroundings(variables={}, read_file=str),
)
CALLER = Caller(team_id="t", key_id="k", allowed_models=None)


def stored(provider: str = "b", model: str = "m", team_id: str = "t") -> StoredResponse:
    return StoredResponse(team_id=team_id, provider=provider, model=model)


def test_it_is_fetched_where_it_is() -> None:
    target = target_of(stored(), "resp_1", CALLER, ROUTES)
    assert isinstance(target, Target)
    assert target.provider.base_url == "http://b/v1"


@pytest.mark.parametrize(
    ("found", "code"),
    [
        pytest.param(None, "response_not_found", id="unknown"),
        pytest.param(stored(team_id="u"), "response_not_found", id="another team's"),
        pytest.param(stored(model="gone"), "response_not_found", id="the route is gone"),
        pytest.param(stored(provider="gone"), "response_not_found", id="the provider is gone"),
        pytest.param(stored(provider="claude"), "response_not_found", id="another API by now"),
    ],
)
def test_it_is_not_there(found: StoredResponse | None, code: str) -> None:
    problem = target_of(found, "resp_1", CALLER, ROUTES)
    assert isinstance(problem, Problem)
    assert (problem.status, problem.code) == (404, code)


def test_a_key_needs_the_right_to_the_model() -> None:
    narrow = Caller(team_id="t", key_id="k", allowed_models=("n",))
    problem = target_of(stored(), "resp_1", narrow, ROUTES)
    assert isinstance(problem, Problem)
    assert problem.status == 403


def test_keys_of_teams_are_apart() -> None:
    keys = {entry_key(team, response) for team in ("t", "u") for response in ("r", "s")}
    assert len(keys) == 4
    assert all(key.isalnum() for key in keys)


@pytest.mark.parametrize(
    ("response", "found"),
    [
        (b'{"id":"resp_1"}', "resp_1"),
        (b'{"id":"resp_1","store":true}', "resp_1"),
        (b'{"id":"resp_1","store":null}', "resp_1"),
        (b'{"id":"resp_1","store":false}', None),
        (b'{"id":"../x"}', None),
        (b'{"id":""}', None),
        (b'{"id":7}', None),
        (b"{}", None),
    ],
)
def test_what_is_stored(response: bytes, found: str | None) -> None:
    assert stored_id(msgspec.json.decode(response, type=dict[str, msgspec.Raw])) == found
