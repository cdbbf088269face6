"""What a client may believe after each kind of answer."""

import json

import pytest
from faults.evidence import Told
from faults.load.clients import judge
from faults.load.http import Answer
from faults.load.orders import Order

from contracts.usage import Usage
from edge_proxy.domain.problems import CHECK_UNAVAILABLE, NOT_RECORDED, Problem
from edge_proxy.domain.shapes import OPENAI_SHAPE
from edge_proxy.domain.upstream import FROM_UPSTREAM

_PLAIN = Order(marker="m", model="small", stream=False, usage=Usage(input=1))
_STREAM = Order(marker="m", model="small", stream=True, usage=Usage(input=1))


def _answer(status: int, body: bytes = b"{}", **more: object) -> Answer:
    return Answer(status=status, body=body, **{"whole": True, **more})  # type: ignore[arg-type] # a test's own fields


def _problem(problem: Problem) -> Answer:
    return _answer(problem.status, OPENAI_SHAPE.error(problem))


@pytest.mark.parametrize(
    ("order", "answer", "told"),
    [
        pytest.param(_PLAIN, _answer(200), Told.COMPLETE, id="a whole answer"),
        pytest.param(_PLAIN, _answer(200, whole=False), Told.CUT, id="half an answer"),
        pytest.param(_PLAIN, Answer(), Told.CUT, id="nothing"),
        pytest.param(
            _STREAM, _answer(200, b"data: {}\n\ndata: [DONE]\n\n"), Told.COMPLETE, id="a stream"
        ),
        pytest.param(
            _STREAM, _answer(200, b"data: {}\n\n"), Told.FAILED, id="a stream without its end"
        ),
        pytest.param(
            _STREAM, _answer(200, b"data: [DONE]\n\n", whole=False), Told.CUT, id="cut at the end"
        ),
        pytest.param(_PLAIN, _answer(402), Told.REFUSED, id="no money"),
        pytest.param(_PLAIN, _answer(429), Told.REFUSED, id="our limit"),
        pytest.param(
            _PLAIN, _answer(429, headers=dict(FROM_UPSTREAM)), Told.FAILED, id="the provider's"
        ),
        pytest.param(_PLAIN, _problem(CHECK_UNAVAILABLE), Told.REFUSED, id="nothing was sent"),
        pytest.param(_PLAIN, _problem(NOT_RECORDED), Told.FAILED, id="sent, but not recorded"),
        pytest.param(_PLAIN, _answer(503, b"?"), Told.FAILED, id="a 503 of somebody else"),
        pytest.param(_PLAIN, _answer(502), Told.FAILED, id="the provider failed"),
    ],
)
def test_what_an_answer_means(order: Order, answer: Answer, told: Told) -> None:
    assert judge(order, answer, left=False) is told


def test_who_left_knows_nothing() -> None:
    assert judge(_STREAM, Answer(status=200), left=True) is Told.LEFT


def test_an_error_that_is_no_object_is_none() -> None:
    assert Answer(body=json.dumps({"error": "text"}).encode()).error == {}
