"""Answers where no endpoint is to blame: unknown addresses, wrong methods, faults of ours."""

from starlette.requests import Request
from starlette.responses import Response
from starlette.types import ExceptionHandler

from edge_proxy.domain.endpoints import shape_at
from edge_proxy.domain.problems import METHOD_NOT_ALLOWED, UNEXPECTED, URL_NOT_FOUND, Problem


def _handler(problem: Problem) -> ExceptionHandler:
    async def answer(request: Request, error: Exception) -> Response:
        allow = getattr(error, "headers", None) or {}
        return Response(
            shape_at(request.url.path).error(problem),
            problem.status,
            headers={**problem.headers, **allow},
            media_type="application/json",
        )

    return answer


FALLBACKS = {
    404: _handler(URL_NOT_FOUND),
    405: _handler(METHOD_NOT_ALLOWED),
    500: _handler(UNEXPECTED),
}
