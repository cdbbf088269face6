"""The whole decision: who refuses, who is told, what an admission leaves, and what is explained."""

from decimal import Decimal

import pytest

from admission.domain.charging import End, after, spent_after
from admission.domain.decision import (
    Admitted,
    Limited,
    Moment,
    decide,
    explain,
    judge,
    refusal,
)
from admission.domain.limits import Subject, limits_of, never_admissible
from admission.domain.tokens import counted
from contracts.admission import LimitExplanation, LimitReason, LimitScope, Policy, Rates, Refusal
from contracts.spend import SpendLimit, SpendMode, SpendPeriod, SpendScope
from contracts.usage import Usage

NOW_US = 1_788_436_800_000_000
HOUR_US = 3_600_000_000
MOMENT = Moment(NOW_US, NOW_US + HOUR_US, month_end_us=NOW_US + 9 * HOUR_US)
SUBJECT = Subject("key-1", "model-1")
FULL = Policy(
    tier_id="full",
    rpm=60,
    tpm=60_000,
    input_tpm=60_000,
    output_tpm=60_000,
    max_concurrency=2,
    daily_requests=10,
    daily_tokens=1_000,
    key_rates=Rates(rpm=60, tpm=60_000),
    model_rates={"model-1": Rates(rpm=60, tpm=60_000)},
    spend_limits=tuple(
        SpendLimit(period=period, scope=scope, limit_usd=Decimal("0.000001"))
        for scope in SpendScope
        for period in SpendPeriod
    ),
)
# Windows are the edge's configuration, and no limits of a tier.
REASONS = [reason for reason in LimitReason if reason is not LimitReason.ENDPOINT]
IDLE: dict[LimitReason, int | None] = {
    reason: 0 if reason.startswith(("day_", "concurrency")) or reason.endswith("_spend") else None
    for reason in REASONS
}


def values(**used: int) -> tuple[int | None, ...]:
    return tuple({**IDLE, **{LimitReason(name): value for name, value in used.items()}}.values())


def test_a_full_policy_has_every_limit_in_the_order_of_the_reasons() -> None:
    limits = limits_of(FULL, SUBJECT)
    assert [limit.reason for limit in limits] == REASONS


@pytest.mark.parametrize(
    "subject", [Subject(), Subject(model="model-2")], ids=["nobody", "another model"]
)
def test_limits_of_keys_and_models_are_asked_of_those_only(subject: Subject) -> None:
    reasons = {limit.reason for limit in limits_of(FULL, subject)}
    assert not {reason for reason in reasons if reason.startswith(("key_", "model_"))}


def test_idle_is_admitted_and_every_limit_moves_as_it_does() -> None:
    second_us = NOW_US + 1_000_000
    assert decide(limits_of(FULL, SUBJECT), values(), MOMENT) == Admitted(
        values(
            requests=second_us,
            key_requests=second_us,
            model_requests=second_us,
            concurrency=1,
            day_requests=1,
        ),
        (),
    )


@pytest.mark.parametrize(
    ("used", "reason", "wait_us"),
    [
        pytest.param({"output_tokens": NOW_US + 7}, LimitReason.OUTPUT_TOKENS, 7, id="a debt"),
        pytest.param({"concurrency": 2}, LimitReason.CONCURRENCY, 1_000_000, id="in flight"),
        pytest.param({"day_requests": 10}, LimitReason.DAY_REQUESTS, HOUR_US, id="the day"),
        pytest.param(
            {"tokens": NOW_US + 9, "key_tokens": NOW_US + 9},
            LimitReason.TOKENS,
            9,
            id="equal waits: the first",
        ),
        pytest.param(
            {"day_tokens": 1_000, "requests": NOW_US + 2 * HOUR_US},
            LimitReason.REQUESTS,
            2 * HOUR_US,
            id="the longest wait",
        ),
        pytest.param({"day_spend": 1_000}, LimitReason.DAY_SPEND, HOUR_US, id="the day's money"),
        pytest.param(
            {"day_spend": 1_000, "key_month_spend": 10**17},
            LimitReason.KEY_MONTH_SPEND,
            9 * HOUR_US,
            id="the month's money of a key",
        ),
        pytest.param(
            {"day_spend": 1_000, "requests": NOW_US + 20 * HOUR_US},
            LimitReason.DAY_SPEND,
            HOUR_US,
            id="money before what waits longer",
        ),
    ],
)
def test_who_refuses(used: dict[str, int], reason: LimitReason, wait_us: int) -> None:
    decision = decide(limits_of(FULL, SUBJECT), values(**used), MOMENT)
    assert isinstance(decision, Limited)
    assert (decision.by.limit.reason, decision.by.wait_us) == (reason, wait_us)


BURSTY = Policy(
    tier_id="bursty",
    rpm=60_000_000,
    tpm=10**9,
    input_tpm=60_000,
    output_tpm=6_000,
    input_token_burst=2_000,
    output_token_burst=100,
    key_rates=Rates(rpm=60, tpm=600, request_burst=2, token_burst=30),
    model_rates={"model-1": Rates(rpm=30, tpm=60, request_burst=1, token_burst=1)},
)


@pytest.mark.parametrize(
    ("reason", "burst_us"),
    [
        pytest.param("input_tokens", 2_000_000, id="2,000 input tokens of 1 ms"),
        pytest.param("output_tokens", 1_000_000, id="100 output tokens of 10 ms"),
        pytest.param("key_requests", 2_000_000, id="two requests of a key, a second each"),
        pytest.param("key_tokens", 3_000_000, id="30 tokens of a key, 100 ms each"),
        pytest.param("model_requests", 2_000_000, id="one request at a model, two seconds"),
        pytest.param("model_tokens", 1_000_000, id="one token at a model, a second"),
    ],
)
def test_a_debt_within_the_burst_admits_and_beyond_it_waits_for_the_next_request(
    reason: str, burst_us: int
) -> None:
    limits = limits_of(BURSTY, SUBJECT)
    idle = {limit.reason: None for limit in limits}

    def owing(debt_us: int) -> Admitted | Limited:
        debts = {**idle, LimitReason(reason): NOW_US + debt_us}
        return decide(limits, tuple(debts.values()), MOMENT)

    assert isinstance(owing(burst_us), Admitted)
    refused = owing(burst_us + 250_000)
    assert isinstance(refused, Limited)
    # Retry-After is when the next request is admitted, the reset when the debt is gone.
    assert (refused.by.limit.reason, refused.by.wait_us) == (reason, 250_000)
    assert refusal(refused.by, MOMENT).resets_at_us == NOW_US + burst_us + 250_000
    told = explain(refused.by, MOMENT)
    assert (told.reset_us, told.retry_after_us) == (burst_us + 250_000, 250_000)


def test_what_remains_of_requests_with_a_burst_is_what_would_be_admitted_at_once() -> None:
    limit = limits_of(BURSTY, SUBJECT)[4]
    remaining = [
        explain(judge(limit, NOW_US + debt_s * 1_000_000, MOMENT), MOMENT).remaining
        for debt_s in range(5)
    ]
    assert (limit.reason, remaining) == (LimitReason.KEY_REQUESTS, [3, 2, 1, 0, 0])


@pytest.mark.parametrize(
    ("limit_usd", "spent", "refuses"),
    [
        pytest.param("0", 0, True, id="nothing may be spent"),
        pytest.param(None, 10**18, False, id="no limit"),
        pytest.param("0.000000002", 1, False, id="a nano below"),
        pytest.param("0.000000002", 2, True, id="just reached"),
        pytest.param("9007199.254740993", 2**53, False, id="beyond a double, below"),
        pytest.param("9007199.254740993", 2**53 + 1, True, id="beyond a double"),
        pytest.param("1", None, False, id="not known"),
    ],
)
@pytest.mark.parametrize("mode", SpendMode)
def test_spend_refuses_once_as_much_is_spent(
    limit_usd: str | None, spent: int | None, refuses: bool, mode: SpendMode
) -> None:
    amount = None if limit_usd is None else Decimal(limit_usd)
    limit = SpendLimit(period=SpendPeriod.DAY, limit_usd=amount, mode=mode)
    policy = Policy(tier_id="t", rpm=60, tpm=60, spend_limits=(limit,))
    caps = limits_of(policy, Subject())[2:]
    decided = decide(limits_of(policy, Subject()), (None, None, *(spent for _ in caps)), MOMENT)
    if mode is SpendMode.HARD:
        assert isinstance(decided, Limited) == refuses
    else:
        assert isinstance(decided, Admitted)
        assert decided.shadowed == ((LimitReason.DAY_SPEND,) if refuses else ())


@pytest.mark.parametrize(
    ("spent", "debit", "after"),
    [
        pytest.param(0, 0, 0, id="nothing"),
        pytest.param(2**53, 1, 2**53 + 1, id="beyond a double"),
        pytest.param(10**18 - 1, 10**18 - 1, 2 * 10**18 - 2, id="the last that is added"),
        pytest.param(10**18, 5, 10**18, id="at the ceiling"),
        pytest.param(7, 10**18, 10**18, id="a debit above all limits"),
    ],
)
def test_spend_grows_up_to_a_ceiling(spent: int, debit: int, after: int) -> None:
    assert spent_after(spent, debit) == after


def test_a_limit_in_shadow_mode_is_told_and_keeps_its_debt() -> None:
    policy = Policy(tier_id="t", rpm=60, tpm=1, shadow=(LimitReason.REQUESTS,))
    limits = limits_of(policy, SUBJECT)
    tat_us = NOW_US + 5
    assert decide(limits, (tat_us, None), MOMENT) == Admitted(
        (tat_us, None), (LimitReason.REQUESTS,)
    )
    refused = decide(limits, (tat_us, NOW_US + 3), MOMENT)
    assert isinstance(refused, Limited)
    assert (refused.by.limit.reason, refused.shadowed) == (
        LimitReason.TOKENS,
        (LimitReason.REQUESTS,),
    )


@pytest.mark.parametrize(
    ("estimate", "used", "admitted"),
    [
        pytest.param(0, 999, True, id="one token is left, and asked at least"),
        pytest.param(0, 1_000, False, id="none is left"),
        pytest.param(400, 600, True, id="just enough"),
        pytest.param(401, 600, False, id="one too many"),
    ],
)
def test_the_input_needs_room_in_the_day(estimate: int, used: int, *, admitted: bool) -> None:
    moment = Moment(NOW_US, NOW_US + HOUR_US, estimate)
    decision = decide(limits_of(FULL, SUBJECT), values(day_tokens=used), moment)
    assert isinstance(decision, Admitted) == admitted


@pytest.mark.parametrize(
    ("estimate", "shadow", "never"),
    [
        pytest.param(1_000, (), False, id="as much as a day"),
        pytest.param(1_001, (), True, id="more than a day"),
        pytest.param(1_001, (LimitReason.DAY_TOKENS,), False, id="in shadow mode"),
    ],
)
def test_never_admissible(estimate: int, shadow: tuple[LimitReason, ...], *, never: bool) -> None:
    policy = Policy(tier_id="t", rpm=1, tpm=1, daily_tokens=1_000, shadow=shadow)
    assert never_admissible(policy, estimate) == never


def test_an_end_charges_tokens_to_each_limit_and_the_day_and_frees_the_lease() -> None:
    usage = Usage(input=30, output=10)
    end = End(counted(usage, None), usage.total, (LimitReason.KEY_TOKENS,), releases=True)
    left = after(limits_of(FULL, SUBJECT), values(concurrency=2, day_tokens=5), end, NOW_US)
    assert left == values(
        tokens=NOW_US + 40_000,
        input_tokens=NOW_US + 30_000,
        output_tokens=NOW_US + 10_000,
        model_tokens=NOW_US + 40_000,
        concurrency=1,
        day_tokens=45,
    )


def test_what_a_refusal_and_an_explanation_tell() -> None:
    limits = {limit.reason: limit for limit in limits_of(FULL, SUBJECT)}
    debt = judge(limits[LimitReason.KEY_TOKENS], NOW_US + 1_500, MOMENT)
    assert refusal(debt, MOMENT) == Refusal(
        reason=LimitReason.KEY_TOKENS,
        scope=LimitScope.KEY,
        limit=60_000,
        used=2,
        resets_at_us=NOW_US + 1_500,
    )
    assert explain(debt, MOMENT) == LimitExplanation(
        reason=LimitReason.KEY_TOKENS,
        scope=LimitScope.KEY,
        limit=60_000,
        used=2,
        remaining=59_998,
        reset_us=1_500,
        retry_after_us=1_500,
    )
    lost = explain(judge(limits[LimitReason.DAY_TOKENS], None, MOMENT), MOMENT)
    assert (lost.known, lost.remaining, lost.retry_after_us) == (False, 0, 0)
    busy = judge(limits[LimitReason.CONCURRENCY], 3, MOMENT)
    assert refusal(busy, MOMENT).resets_at_us is None
    assert explain(busy, MOMENT).remaining == 0
    idle = explain(judge(limits[LimitReason.REQUESTS], None, MOMENT), MOMENT)
    assert (idle.remaining, idle.reset_us, idle.retry_after_us) == (1, 0, 0)
