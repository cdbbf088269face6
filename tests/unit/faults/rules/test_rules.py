"""The checker is shown histories that are wrong on purpose, one lie each: it must see each."""

from dataclasses import replace
from decimal import Decimal
from typing import Any, cast

import pytest
from faults.evidence import Cached, Certainty, Evidence, Told, VersionSet
from faults.rules import Rule, check
from unit.faults import histories as right

S = right.S


def _with(**changes: Any) -> Evidence:
    return replace(right.RIGHT, **changes)


def _instead(old: Any, *new: Any) -> Evidence:
    """Return the right history with one fact replaced, wherever it stands."""
    for name in ("requests", "served", "records", "charges", "entries", "debits", "postings"):
        facts = getattr(right.RIGHT, name)
        if old in facts:
            at = facts.index(old)
            return _with(**{name: (*facts[:at], *new, *facts[at + 1 :])})
    raise LookupError(old)


def test_a_right_history_breaks_no_rule() -> None:
    assert check(right.RIGHT) == []


FIRST_DEBIT = right.RIGHT.debits[0]
REVOKED_ONE = replace(right.RIGHT.revocations[0], key_id="key-1")

WRONG = [
    pytest.param(
        _instead(right.RECORD_SILENT), {Rule.SUCCESS_NOT_RECORDED, Rule.INVISIBLE_REQUEST},
        id="a success without a record",
    ),
    pytest.param(
        _instead(right.RECORD_SILENT, replace(right.RECORD_SILENT, outcome="failed")),
        {Rule.SUCCESS_NOT_RECORDED}, id="a success recorded as a failure",
    ),
    pytest.param(
        _instead(right.ONE, replace(right.ONE, inference_id=None)),
        {Rule.SUCCESS_NOT_RECORDED}, id="a success without an inference id",
    ),
    pytest.param(
        _instead(right.RECORD_ONE, replace(right.RECORD_ONE, usage=None, state="UNBILLABLE")),
        {Rule.NOT_SETTLED}, id="a charge of an unbillable record",
    ),
    pytest.param(
        _with(
            records=(replace(right.RECORD_ONE, usage=None, state="UNBILLABLE"),
                     *right.RIGHT.records[1:]),
            charges=(right.CHARGE_TWO,),
            entries=(right.ENTRY_CREDIT, replace(
                right.ENTRY_USAGE, amount_usd=-right.TWO_USD,
                balance_after_usd=Decimal(10) - right.TWO_USD)),
            accounts=(replace(right.ACCOUNT, balance_usd=Decimal(10) - right.TWO_USD),),
            cached={},
        ),
        {Rule.SUCCESS_NOT_CHARGED}, id="a success without a charge",
    ),
    pytest.param(
        _instead(right.CHARGE_ONE, right.CHARGE_ONE, right.CHARGE_ONE),
        {Rule.CHARGED_TWICE, Rule.DEBITS_NOT_CHARGES}, id="a record charged twice",
    ),
    pytest.param(
        _instead(right.RECORD_TWO, right.RECORD_TWO, replace(right.RECORD_TWO, record_id=9)),
        {Rule.CHARGED_TWICE, Rule.NOT_SETTLED}, id="an attempt recorded twice",
    ),
    pytest.param(
        _with(
            records=(*right.RIGHT.records,
                     replace(right.RECORD_TWO, record_id=9, inference_id="inference-9")),
            charges=(right.CHARGE_ONE, right.CHARGE_TWO, replace(right.CHARGE_TWO, record_id=9)),
        ),
        {Rule.CHARGED_TWICE, Rule.DEBITS_NOT_CHARGES}, id="one served request charged twice",
    ),
    pytest.param(
        _with(charges=(right.CHARGE_ONE,
                       replace(right.CHARGE_TWO, amount_usd=right.TWO_USD + Decimal("1e-22")))),
        {Rule.WRONG_AMOUNT, Rule.DEBITS_NOT_CHARGES}, id="an amount wrong in its last digit",
    ),
    pytest.param(
        _with(prices={}), {Rule.WRONG_AMOUNT, Rule.DEBITED_TOO_OFTEN},
        id="a price that doesn't exist",
    ),
    pytest.param(
        _instead(right.SERVED_TWO, replace(right.SERVED_TWO, reported=False)),
        {Rule.CHARGED_UNREPORTED}, id="a charge that no provider reported",
    ),
    pytest.param(
        _instead(right.SERVED_TWO), {Rule.CHARGED_UNREPORTED, Rule.DEBITED_TOO_OFTEN},
        id="a charge of what no provider saw",
    ),
    pytest.param(
        _with(published_at_us={**right.RIGHT.published_at_us, "inference-1:1": 11 * S + 1}),
        {Rule.TOLD_TOO_EARLY}, id="success told before its record was durable",
    ),
    pytest.param(
        _with(published_at_us={}), {Rule.TOLD_TOO_EARLY}, id="success whose record is nowhere",
    ),
    pytest.param(
        _instead(right.SERVED_LOST, replace(right.SERVED_LOST, received_at_us=23 * S)),
        {Rule.ADMITTED_BLINDLY}, id="a request served while the store was frozen",
    ),
    pytest.param(
        _instead(right.TWO, replace(right.TWO, told=Told.REFUSED)),
        {Rule.REFUSED_BUT_SERVED}, id="a refusal that reached a provider",
    ),
    pytest.param(
        _with(revocations=(REVOKED_ONE,)), {Rule.REVOKED_KEY_ACCEPTED},
        id="a revoked key accepted nine seconds later",
    ),
    pytest.param(
        _instead(right.RECORD_LOST), {Rule.INVISIBLE_REQUEST},
        id="a request of the provider without a record",
    ),
    pytest.param(
        _instead(right.SERVED_LOST, right.SERVED_LOST,
                 replace(right.SERVED_LOST, request_id="served-5")),
        {Rule.INVISIBLE_REQUEST}, id="two requests of the provider and one record",
    ),
    pytest.param(
        _instead(right.SERVED_SILENT), {Rule.SUCCESS_OF_NOBODY},
        id="a success that no provider knows",
    ),
    pytest.param(
        _with(accounts=(replace(right.ACCOUNT, balance_usd=right.BALANCE_USD + 1),), cached={}),
        {Rule.BALANCE_NOT_LEDGER}, id="a balance that isn't the sum of its entries",
    ),
    pytest.param(
        _instead(right.ENTRY_USAGE, replace(right.ENTRY_USAGE, version=3)),
        {Rule.BALANCE_NOT_LEDGER}, id="a gap in the versions",
    ),
    pytest.param(
        _instead(right.ENTRY_CREDIT, replace(right.ENTRY_CREDIT, balance_after_usd=Decimal(11))),
        {Rule.BALANCE_NOT_LEDGER}, id="a running balance that isn't",
    ),
    pytest.param(
        _with(charges=(right.CHARGE_ONE, replace(right.CHARGE_TWO, entry_id=None))),
        {Rule.DEBITS_NOT_CHARGES}, id="a charge that no debit took",
    ),
    pytest.param(
        _instead(right.CREDIT, replace(right.CREDIT, name="lost")),
        {Rule.POSTING_NOT_AS_TOLD}, id="an acknowledged credit that isn't there",
    ),
    pytest.param(
        _instead(right.CREDIT, replace(right.CREDIT, certainty=Certainty.NOT_DONE)),
        {Rule.POSTING_NOT_AS_TOLD}, id="a refused credit that is there",
    ),
    pytest.param(
        _instead(right.CREDIT, replace(right.CREDIT, amount_usd=Decimal(9))),
        {Rule.POSTING_NOT_AS_TOLD}, id="a credit of another amount",
    ),
    pytest.param(
        _with(cached={right.TEAM: replace(right.CACHED, balance_nano_usd=9_999_686_000)}),
        {Rule.CACHE_DIVERGED}, id="a cached balance one nano-USD off",
    ),
    pytest.param(
        _with(cached={right.TEAM: replace(right.CACHED, version=1)}),
        {Rule.CACHE_DIVERGED}, id="a cached balance of another version",
    ),
    pytest.param(
        _with(cached={right.TEAM: Cached(tier_id="tier-0")}),
        {Rule.CACHE_DIVERGED}, id="a tier of long ago",
    ),
    pytest.param(
        _with(versions=(*right.RIGHT.versions,
                        VersionSet(team_id=right.TEAM, version=1, at_us=4 * S, life=1))),
        {Rule.VERSION_WENT_BACK}, id="an older balance over a newer one",
    ),
    pytest.param(
        _instead(FIRST_DEBIT, FIRST_DEBIT, replace(FIRST_DEBIT, at_us=10 * S + 410)),
        {Rule.DEBITED_TOO_OFTEN}, id="a debit carried out twice",
    ),
    pytest.param(
        _instead(FIRST_DEBIT, replace(FIRST_DEBIT, at_us=10 * S + 501)),
        {Rule.RECORD_BEFORE_DEBIT}, id="a record published before its debit",
    ),
    pytest.param(
        _instead(right.RECORD_LOST, replace(right.RECORD_LOST, state="PENDING")),
        {Rule.NOT_SETTLED}, id="a record still pending",
    ),
    pytest.param(_with(dead_letters=("poison",)), {Rule.GIVEN_UP}, id="a dead letter"),
    pytest.param(
        _with(never_told=("event-1",)), {Rule.CHANGE_NEVER_TOLD}, id="a change nobody was told",
    ),
    pytest.param(_with(unproved=("a gap",)), {Rule.NOT_PROVED}, id="what verify finds"),
    pytest.param(
        _with(unrecovered=("edge-proxy",)), {Rule.NOT_RECOVERED}, id="an edge that stays closed",
    ),
]  # fmt: skip


@pytest.mark.parametrize(("evidence", "rules"), WRONG)
def test_a_wrong_history_breaks_its_rule(evidence: Evidence, rules: set[Rule]) -> None:
    assert {violation.rule for violation in check(evidence)} == rules


def test_every_rule_has_a_history_that_breaks_it() -> None:
    assert {rule for case in WRONG for rule in cast("set[Rule]", case.values[1])} == set(Rule)


TOLERATED = [
    pytest.param(
        _instead(right.SERVED_LOST, replace(right.SERVED_LOST, received_at_us=20 * S + S // 2)),
        id="a request on its way when the store froze",
    ),
    pytest.param(
        replace(
            _instead(right.SERVED_LOST, replace(right.SERVED_LOST, received_at_us=23 * S)),
            windows=(
                right.FROZEN,
                replace(
                    right.FROZEN, target="edge-proxy", store_unknown=False, delays_dispatch=True
                ),
            ),
        ),
        id="an edge that was frozen with what it had been allowed",
    ),
    pytest.param(
        _with(
            revocations=(REVOKED_ONE,),
            windows=(replace(right.FROZEN, start_us=2 * S, end_us=3 * S),),
        ),
        id="a revocation in the middle of a fault",
    ),
    pytest.param(
        _with(postings=(replace(right.CREDIT, certainty=Certainty.UNKNOWN),)),
        id="a credit whose outcome was unknown, and that is there",
    ),
    pytest.param(_with(cached={}), id="nothing is cached"),
    pytest.param(
        _with(debits=()),
        id="debits that nobody watched",
    ),
]


@pytest.mark.parametrize("evidence", TOLERATED)
def test_what_may_happen_breaks_no_rule(evidence: Evidence) -> None:
    assert check(evidence) == []
