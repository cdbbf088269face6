"""Paged lists: a bounded number of items, and a cursor to the next ones."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Annotated, Generic, TypeVar

from fastapi import Query
from pydantic import Field

from control_plane.domain import cursors
from control_plane.handlers.fields import Asked, Told

ItemT = TypeVar("ItemT")
RowT = TypeVar("RowT")


class PageAsked(Asked):
    """Which page of a list."""

    limit: int = Field(default=50, ge=1, le=200, description="Most items to return.")
    cursor: str | None = Field(
        default=None,
        max_length=1_000,
        description="`next_cursor` of the page before; absent: the first page.",
    )


PageQuery = Annotated[PageAsked, Query()]


class Page(Told, Generic[ItemT]):
    """A page of a list."""

    items: list[ItemT]
    next_cursor: str | None = Field(
        description="Ask for the next page with this; null: this was the last page."
    )


@dataclass(frozen=True, slots=True)
class Listing(Generic[RowT]):
    """A list: its name, and what it is sorted by."""

    name: str
    key_types: tuple[type[cursors.Part], ...]
    key_of: Callable[[RowT], cursors.Key]

    def after(self, page: PageAsked) -> cursors.Key | None:
        """Return the sort key behind which the page begins; None: at the beginning.

        Raises:
            InvalidError: the cursor isn't one of this list.

        """
        if page.cursor is None:
            return None
        return cursors.decode(page.cursor, self.name, self.key_types)

    def page(
        self, asked: PageAsked, rows: Sequence[RowT], tell: Callable[[RowT], ItemT]
    ) -> Page[ItemT]:
        """Return the page of rows that were read with a limit of one more than asked for."""
        shown = rows[: asked.limit]
        more = len(rows) > asked.limit
        return Page(
            items=[tell(row) for row in shown],
            next_cursor=cursors.encode(self.name, self.key_of(shown[-1])) if more else None,
        )
