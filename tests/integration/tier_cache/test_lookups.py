"""Lookups: what the database says of keys, policies and prices, read with read-only rights."""

from datetime import UTC, datetime

import pytest
from integration.desk import PROVIDER, Desk
from integration.tables.rows import new_name
from sqlalchemy import text
from sqlalchemy.exc import DBAPIError
from sqlalchemy.ext.asyncio import AsyncEngine

from contracts.admission import KeyLimits, LimitReason, Policy
from contracts.cache import KeyFacts, KeyResolveRequest, PoliciesRequest, PricesRequest
from contracts.errors import ErrorCode
from kit import postgres
from kit.bus.serving import ReplyError
from kit.money import format_usd
from tier_cache.handlers.lookups import Lookups
from tier_cache.settings import Settings
from tier_cache.store.database import Database


@pytest.fixture
def lookups(engine: AsyncEngine) -> Lookups:
    return Lookups(Database(engine))


async def test_a_key_is_told_with_all_the_edge_needs(desk: Desk, lookups: Lookups) -> None:
    team_id = await desk.open_team()
    key_id = await desk.add_key(
        team_id,
        secret_hash=bytes(range(32)),
        allowed_models=["a", "b"],
        expires_at=datetime(2100, 1, 1, tzinfo=UTC),
        limits={"rpm": 7, "request_burst": 2, "shadow": ["key_requests"]},
        old_secret_hash=bytes(32),
        old_secret_until=datetime(2100, 1, 1, tzinfo=UTC),
    )
    reply = await lookups.resolve_key(KeyResolveRequest(key_id=key_id))
    assert reply.key == KeyFacts(
        key_id=key_id,
        team_id=team_id,
        secret_hash=bytes(range(32)).hex(),
        expires_at_us=4_102_444_800_000_000,
        allowed_models=("a", "b"),
        limits=KeyLimits(rpm=7, request_burst=2, shadow=(LimitReason.KEY_REQUESTS,)),
        old_secret_hash="00" * 32,
        old_secret_until_us=4_102_444_800_000_000,
    )


async def test_a_plain_key_never_expires_and_may_use_everything(
    desk: Desk, lookups: Lookups
) -> None:
    key_id = await desk.add_key(await desk.open_team())
    key = (await lookups.resolve_key(KeyResolveRequest(key_id=key_id))).key
    assert key is not None
    assert (key.expires_at_us, key.allowed_models, key.limits) == (None, None, None)
    assert (key.old_secret_hash, key.old_secret_until_us) == (None, None)
    assert not key.revoked


async def test_a_revoked_key_says_so_at_the_next_question(desk: Desk, lookups: Lookups) -> None:
    key_id = await desk.add_key(await desk.open_team())
    await lookups.resolve_key(KeyResolveRequest(key_id=key_id))
    await desk.revoke_key(key_id)
    key = (await lookups.resolve_key(KeyResolveRequest(key_id=key_id))).key
    assert key is not None
    assert key.revoked


async def test_no_key_of_that_name_or_of_a_deleted_team(desk: Desk, lookups: Lookups) -> None:
    team_id = await desk.open_team()
    orphan = await desk.add_key(team_id)
    await desk.delete_team(team_id)
    for key_id in (orphan, "no-such-key"):
        assert (await lookups.resolve_key(KeyResolveRequest(key_id=key_id))).key is None


async def test_policies_are_those_of_all_tiers(desk: Desk, lookups: Lookups) -> None:
    tier_id = await desk.open_tier(rpm=20, tpm=100_000, burst=3)
    policies = (await lookups.policies(PoliciesRequest())).policies
    assert Policy(tier_id=tier_id, rpm=20, tpm=100_000, request_burst=3) in policies


async def test_a_tier_that_cannot_be_is_named_and_hides_no_other(
    desk: Desk, lookups: Lookups
) -> None:
    good = await desk.open_tier(rpm=20)
    bad = await desk.open_tier(tpm_weights={"input": "NaN"})
    reply = await lookups.policies(PoliciesRequest())
    assert good in {policy.tier_id for policy in reply.policies}
    assert bad not in {policy.tier_id for policy in reply.policies}
    assert "tpm_weights" in reply.impossible[bad]
    assert good not in reply.impossible


async def test_a_key_whose_limits_cannot_be_is_refused_by_name(
    desk: Desk, lookups: Lookups, capsys: pytest.CaptureFixture[str]
) -> None:
    key_id = await desk.add_key(await desk.open_team(), limits={"rpm": "many"})
    with pytest.raises(ReplyError) as caught:
        await lookups.resolve_key(KeyResolveRequest(key_id=key_id))
    assert caught.value.code is ErrorCode.IMPOSSIBLE_LIMITS
    assert f"key {key_id}: limits: " in capsys.readouterr().out


async def test_prices_are_those_in_effect_and_to_come(desk: Desk, lookups: Lookups) -> None:
    model = new_name("model")
    await desk.add_price(model, "now() - interval '3 days'")
    current = await desk.add_price(model, "now() - interval '2 days'")
    # A clock that is behind still needs the one before this.
    recent = await desk.add_price(model, "now() - interval '1 minute'")
    coming = await desk.add_price(model, "now() + interval '1 day'")
    prices = [
        price
        for price in (await lookups.prices(PricesRequest())).prices
        if (price.provider, price.model) == (PROVIDER, model)
    ]
    assert {price.price_id for price in prices} == {current, recent, coming}


async def test_a_price_keeps_every_digit(desk: Desk, lookups: Lookups) -> None:
    model, digits = new_name("model"), "0." + "123456789" * 8
    await desk.add_price(model, output=digits)
    price = next(
        price for price in (await lookups.prices(PricesRequest())).prices if price.model == model
    )
    assert format_usd(price.usd_per_million.output) == digits
    assert format_usd(price.usd_per_million.input) == "1"


async def test_without_postgres_there_is_an_error_and_no_answer(settings: Settings) -> None:
    nowhere = settings.model_validate(
        settings.model_dump() | {"database_url": "postgresql://nobody:x@127.0.0.1:1/none"}
    )
    engine = postgres.connect(nowhere)
    lookups = Lookups(Database(engine))
    with pytest.raises(ReplyError) as caught:
        await lookups.resolve_key(KeyResolveRequest(key_id="k"))
    assert caught.value.code is ErrorCode.STORE_UNAVAILABLE
    await engine.dispose()


async def test_tier_cache_can_write_nothing(engine: AsyncEngine) -> None:
    async with engine.connect() as connection:
        with pytest.raises(DBAPIError):
            await connection.execute(text("UPDATE team SET name = 'x'"))
