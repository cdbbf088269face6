"""What the account's values refuse before any database is asked."""

from decimal import Decimal

import pytest

from tables.account import Posting
from tables.errors import AmountError, TablesError, UnknownAccountError
from tables.ledger import Reason


@pytest.mark.parametrize("error", [AmountError, UnknownAccountError])
def test_an_errors_docstring_is_its_message(error: type[TablesError]) -> None:
    assert str(error()) == error.__doc__
    assert str(error("other words")) == "other words"


def test_a_posting_is_frozen() -> None:
    posting = Posting(team_id="t", amount_usd=Decimal(1), reason=Reason.CREDIT)
    with pytest.raises(AttributeError):
        posting.amount_usd = Decimal(2)  # type: ignore[misc] # that is the point
