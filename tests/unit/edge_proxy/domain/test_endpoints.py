"""Endpoints: what they refuse whatever the model, and the shape of what stands at no endpoint."""

import pytest

from edge_proxy.domain.asked import Asked, read
from edge_proxy.domain.endpoints import CHAT_COMPLETIONS, ENDPOINTS, RESPONSES, shape_at
from edge_proxy.domain.shapes import ANTHROPIC_SHAPE, OPENAI_SHAPE, Shape


@pytest.mark.parametrize(
    ("member", "refused"),
    [
        pytest.param(b'"background":true', True, id="true"),
        pytest.param(b'"background":"yes"', True, id="a text"),
        pytest.param(b'"background":false,"background":true', True, id="twice"),
        pytest.param(b'"background":false', False, id="false"),
        pytest.param(b'"background":null', False, id="null"),
        pytest.param(b'"input":"background"', False, id="not said"),
    ],
)
def test_what_runs_on_where_nobody_meters_it_is_refused(member: bytes, refused: bool) -> None:
    asked = read(b'{"model":"m",%b}' % member)
    assert isinstance(asked, Asked)
    problem = RESPONSES.objection(asked)
    assert (problem is not None) is refused
    if problem is not None:
        assert (problem.status, problem.code) == (400, "unsupported_parameter")
        assert problem.param == "background"
    assert CHAT_COMPLETIONS.objection(asked) is None


@pytest.mark.parametrize(
    ("path", "shape"),
    [
        ("/v1/messages", ANTHROPIC_SHAPE),
        ("/v1/messages/count_tokens", ANTHROPIC_SHAPE),
        ("/v1/messagesx", OPENAI_SHAPE),
        ("/v1/chat/completions", OPENAI_SHAPE),
        ("/", OPENAI_SHAPE),
    ],
)
def test_the_shape_of_an_address(path: str, shape: Shape) -> None:
    assert shape_at(path) is shape


def test_an_endpoint_is_one_row() -> None:
    assert len({endpoint.path for endpoint in ENDPOINTS}) == len(ENDPOINTS)
