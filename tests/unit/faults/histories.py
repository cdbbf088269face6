"""A run in which everything was as promised, small enough to be spoilt one fact at a time."""

from dataclasses import replace
from decimal import Decimal

from faults.evidence import (
    Account,
    Cached,
    Certainty,
    Charge,
    Debit,
    Entry,
    Evidence,
    Posting,
    Record,
    Request,
    Revocation,
    Served,
    Told,
    VersionSet,
    Window,
)

from contracts.usage import Usage, UsdPerMillion

TEAM = "team-1"
S = 1_000_000
PRICE = UsdPerMillion(
    input=Decimal(1),
    cache_read=Decimal("0.1"),
    cache_write_5m=Decimal(0),
    cache_write_1h=Decimal(0),
    output=Decimal("4.0000000000000000001"),
    reasoning=Decimal(0),
)
# 100 in and 50 out, then 10 in and 1 out.
ONE_USD, TWO_USD = Decimal("0.000300000000000000000005"), Decimal("0.0000140000000000000000001")
ONE_NANO_USD, TWO_NANO_USD = 300_001, 14_001

ONE = Request(
    marker="one",
    team_id=TEAM,
    key_id="key-1",
    usage=Usage(input=100, output=50),
    sent_at_us=10 * S,
    told=Told.COMPLETE,
    told_at_us=11 * S,
    status=200,
    inference_id="inference-1",
    limits_shown=True,
)
TWO = replace(
    ONE,
    marker="two",
    usage=Usage(input=10, output=1),
    inference_id="inference-2",
    told=Told.CUT,
    limits_shown=False,
)
SILENT = replace(ONE, marker="silent", usage=None, inference_id="inference-3")
REFUSED = replace(ONE, marker="refused", told=Told.REFUSED, status=429, inference_id="inference-4")
LOST = replace(TWO, marker="lost", usage=Usage(input=1), inference_id=None)

RECORD_ONE = Record(
    record_id=1,
    inference_id="inference-1",
    attempt_no=1,
    team_id=TEAM,
    marker="one",
    outcome="succeeded",
    state="SETTLED",
    price_id="price-1",
    usage=ONE.usage,
    provider_request_id="served-1",
)
RECORD_TWO = replace(
    RECORD_ONE,
    record_id=2,
    inference_id="inference-2",
    marker="two",
    usage=TWO.usage,
    provider_request_id="served-2",
)
RECORD_SILENT = replace(
    RECORD_ONE,
    record_id=3,
    inference_id="inference-3",
    marker="silent",
    state="UNBILLABLE",
    usage=None,
    provider_request_id="served-3",
)
RECORD_LOST = replace(
    RECORD_SILENT,
    record_id=4,
    inference_id="inference-5",
    marker="lost",
    outcome="unknown",
    provider_request_id=None,
)

SERVED_ONE = Served(
    request_id="served-1",
    marker="one",
    received_at_us=10 * S + 100,
    outcome="completed",
    reported=True,
)
SERVED_TWO = replace(SERVED_ONE, request_id="served-2", marker="two")
SERVED_SILENT = replace(SERVED_ONE, request_id="served-3", marker="silent", reported=False)
SERVED_LOST = replace(SERVED_ONE, request_id="served-4", marker="lost", outcome="cut")

CREDIT = Posting(name="credit-1", team_id=TEAM, amount_usd=Decimal(10), certainty=Certainty.DONE)
ENTRY_CREDIT = Entry(
    entry_id=1,
    team_id=TEAM,
    reason="CREDIT",
    amount_usd=Decimal(10),
    balance_after_usd=Decimal(10),
    version=1,
    note="credit-1",
)
USED_USD = Decimal("0.0003140000000000000000051")
BALANCE_USD = Decimal("9.9996859999999999999999949")
ENTRY_USAGE = Entry(
    entry_id=2,
    team_id=TEAM,
    reason="USAGE",
    amount_usd=-USED_USD,
    balance_after_usd=BALANCE_USD,
    version=2,
)
CHARGE_ONE = Charge(record_id=1, team_id=TEAM, amount_usd=ONE_USD, entry_id=2)
CHARGE_TWO = Charge(record_id=2, team_id=TEAM, amount_usd=TWO_USD, entry_id=2)
ACCOUNT = Account(team_id=TEAM, balance_usd=BALANCE_USD, version=2, tier_id="tier-1")
CACHED = Cached(balance_nano_usd=9_999_685_999, version=2, tier_id="tier-1")

FROZEN = Window(fault="freeze", target="valkey", start_us=20 * S, end_us=25 * S, store_unknown=True)

RIGHT = Evidence(
    requests=(ONE, TWO, SILENT, REFUSED, LOST),
    postings=(CREDIT, replace(CREDIT, name="credit-2", certainty=Certainty.NOT_DONE)),
    revocations=(Revocation(key_id="key-9", told_at_us=1 * S),),
    windows=(FROZEN,),
    served=(SERVED_ONE, SERVED_TWO, SERVED_SILENT, SERVED_LOST),
    records=(RECORD_ONE, RECORD_TWO, RECORD_SILENT, RECORD_LOST),
    charges=(CHARGE_ONE, CHARGE_TWO),
    entries=(ENTRY_CREDIT, ENTRY_USAGE),
    accounts=(ACCOUNT,),
    prices={"price-1": PRICE},
    cached={TEAM: CACHED},
    published_at_us={
        "inference-1:1": 10 * S + 500,
        "inference-2:1": 10 * S + 600,
        "inference-3:1": 10 * S + 700,
        "inference-5:1": 12 * S,
    },
    debits=(
        Debit(team_id=TEAM, amount_nano_usd=ONE_NANO_USD, at_us=10 * S + 400),
        Debit(team_id=TEAM, amount_nano_usd=TWO_NANO_USD, at_us=10 * S + 450),
    ),
    versions=(
        VersionSet(team_id=TEAM, version=1, at_us=1 * S, life=1),
        VersionSet(team_id=TEAM, version=2, at_us=2 * S, life=1),
        VersionSet(team_id=TEAM, version=1, at_us=3 * S, life=2),
    ),
)
