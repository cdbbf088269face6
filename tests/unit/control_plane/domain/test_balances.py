"""Balances stay within what the balance cache can hold."""

from decimal import Decimal

import pytest

from control_plane.domain.balances import MAX_BALANCE_USD, check
from control_plane.domain.errors import InvalidError
from kit.money import ceil_nano_usd, floor_nano_usd


@pytest.mark.parametrize("balance_usd", [MAX_BALANCE_USD, -MAX_BALANCE_USD, Decimal(0)])
def test_a_possible_balance_fits_64_bits_of_nano_usd(balance_usd: Decimal) -> None:
    check(balance_usd)
    assert -(2**63) < floor_nano_usd(balance_usd) <= ceil_nano_usd(balance_usd) < 2**63


@pytest.mark.parametrize("sign", [1, -1])
def test_a_larger_one_is_refused(sign: int) -> None:
    with pytest.raises(InvalidError) as caught:
        check(sign * Decimal("9000000000.000000000000000001"))
    assert caught.value.field == "amount"
