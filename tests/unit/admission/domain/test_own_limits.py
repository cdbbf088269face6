"""A key's own limits stand where its tier's for every key stood, each for itself."""

from decimal import Decimal

import pytest

from admission.domain.own_limits import as_met_by
from contracts.admission import KeyLimits, LimitReason, Policy, Rates
from contracts.spend import SpendLimit, SpendPeriod, SpendScope

TIERS_RATES = Rates(rpm=10, tpm=1_000, request_burst=2, token_burst=300)
TIER = Policy(
    tier_id="t",
    rpm=60,
    tpm=60_000,
    key_rates=TIERS_RATES,
    shadow=(LimitReason.TOKENS, LimitReason.KEY_REQUESTS),
)


@pytest.mark.parametrize(
    ("own", "rates", "shadow"),
    [
        pytest.param(
            KeyLimits(rpm=5),
            Rates(rpm=5, tpm=1_000, token_burst=300),
            {LimitReason.TOKENS},
            id="its own requests, without the tier's burst and shadow",
        ),
        pytest.param(
            KeyLimits(tpm=9, token_burst=1),
            Rates(rpm=10, request_burst=2, tpm=9, token_burst=1),
            {LimitReason.TOKENS, LimitReason.KEY_REQUESTS},
            id="its own tokens, and the tier's requests",
        ),
        pytest.param(
            KeyLimits(rpm=70, tpm=9, shadow=(LimitReason.KEY_TOKENS,)),
            Rates(rpm=70, tpm=9),
            {LimitReason.TOKENS, LimitReason.KEY_TOKENS},
            id="both, one in shadow mode",
        ),
        pytest.param(
            KeyLimits(rpm=5, shadow=(LimitReason.KEY_TOKENS, LimitReason.REQUESTS)),
            Rates(rpm=5, tpm=1_000, token_burst=300),
            {LimitReason.TOKENS},
            id="no shadow over what isn't its own",
        ),
    ],
)
def test_each_limit_is_replaced_by_itself(
    own: KeyLimits, rates: Rates, shadow: set[LimitReason]
) -> None:
    met = as_met_by(TIER, own)
    assert (met.key_rates, set(met.shadow)) == (rates, shadow)
    assert (met.tier_id, met.rpm, met.tpm) == (TIER.tier_id, TIER.rpm, TIER.tpm)


@pytest.mark.parametrize("own", [None, KeyLimits()], ids=["absent", "empty"])
def test_a_key_without_limits_meets_the_tier_as_it_is(own: KeyLimits | None) -> None:
    assert as_met_by(TIER, own) is TIER


def test_a_key_may_have_limits_where_the_tier_gives_keys_none() -> None:
    plain = Policy(tier_id="t", rpm=60, tpm=60_000)
    assert as_met_by(plain, KeyLimits(tpm=9)).key_rates == Rates(tpm=9)


def test_a_keys_own_spend_takes_the_place_of_every_keys_of_the_same_period() -> None:
    every = [
        SpendLimit(period=period, scope=scope, limit_usd=Decimal(5))
        for scope in SpendScope
        for period in SpendPeriod
    ]
    own = SpendLimit(period=SpendPeriod.DAY, scope=SpendScope.KEY, limit_usd=None)
    tier = Policy(
        tier_id="t",
        rpm=1,
        tpm=1,
        spend_limits=tuple(every),
        shadow=(LimitReason.KEY_DAY_SPEND, LimitReason.DAY_SPEND),
    )
    met = as_met_by(tier, KeyLimits(spend_limits=(own,)))
    assert set(met.spend_limits) == {*every, own} - {
        SpendLimit(period=SpendPeriod.DAY, scope=SpendScope.KEY, limit_usd=Decimal(5))
    }
    assert met.shadow == (LimitReason.DAY_SPEND,)
