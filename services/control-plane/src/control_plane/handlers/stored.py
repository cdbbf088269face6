"""Rows as they are told, also those that were written past this API and can't be.

One of them must not hide the others of its page, nor keep itself from being mended or revoked.
"""

from collections.abc import Mapping
from typing import Any, TypeVar

from pydantic import Field, ValidationError

from control_plane.handlers.fields import Told

ToldT = TypeVar("ToldT", bound=Told)

PROBLEM: Any = Field(
    default=None,
    description="What of it, as it is stored, isn't possible: it was written past this API. It is"
    " told as if it were absent, and whoever would be judged by it is refused. Null: nothing.",
)


def as_told(kind: type[ToldT], stored: Mapping[str, Any], problem: str | None) -> ToldT:
    """Return a row, without what can't be told of it; `problem` is what is known to be wrong."""
    try:
        return kind.model_validate({**stored, "problem": problem})
    except ValidationError as error:
        wrong = error.errors(include_url=False, include_input=False)
    names = {each["loc"][0] for each in wrong}
    possible = {name: value for name, value in stored.items() if name not in names}
    first = f"{'.'.join(map(str, wrong[0]['loc']))}: {wrong[0]['msg']}"
    return kind.model_validate({**possible, "problem": problem or first})
