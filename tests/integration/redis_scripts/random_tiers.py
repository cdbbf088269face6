"""Random tiers, and who asks for what: enough of each kind that every limit is met."""

from decimal import Decimal

from hypothesis import strategies as st
from integration.redis_scripts.team import TIER

from admission.domain.limits import Subject
from contracts.admission import LimitReason, Policy, Rates, TokenWeights
from contracts.spend import SpendLimit, SpendMode, SpendPeriod, SpendScope
from contracts.usage import Usage

# The fast ones admit the next call, the slow ones refuse it.
per_minute = st.sampled_from([60_000_000, 600_000_000, 7, 60_000])
token_bursts = st.sampled_from([0, 5, 10**6])
rates = st.builds(
    Rates,
    rpm=st.none() | per_minute,
    tpm=st.none() | per_minute,
    request_burst=st.integers(0, 3),
    token_burst=token_bursts,
)
weights = st.builds(
    TokenWeights,
    cache_read=st.sampled_from([Decimal(0), Decimal("0.1"), Decimal("0.333333")]),
    output=st.sampled_from([Decimal(1), Decimal("4.5")]),
)
# Zero and nothing, and where a double or the counter itself has no more digits.
money = st.sampled_from(
    [
        None,
        Decimal(0),
        Decimal("0.000000001"),
        Decimal("0.004"),
        Decimal("9007199.254740993"),
        Decimal("999999999.999999999"),
    ]
)
spend_limits = st.lists(
    st.builds(
        SpendLimit,
        period=st.sampled_from(SpendPeriod),
        scope=st.sampled_from(SpendScope),
        limit_usd=money,
        mode=st.sampled_from([SpendMode.HARD, SpendMode.HARD, SpendMode.SOFT]),
    ),
    unique_by=lambda limit: (limit.period, limit.scope),
    max_size=4,
).map(tuple)
policies = st.builds(
    Policy,
    tier_id=st.just(TIER),
    rpm=st.sampled_from([60_000_000, 60, 1]),
    tpm=st.sampled_from([150_000_000, 60_000]),
    request_burst=st.integers(0, 5),
    token_burst=st.sampled_from([10**9, 1_000, 0]),
    input_tpm=st.none() | per_minute,
    output_tpm=st.none() | per_minute,
    input_token_burst=token_bursts,
    output_token_burst=token_bursts,
    tpm_weights=st.none() | weights,
    max_concurrency=st.none() | st.integers(1, 4),
    daily_requests=st.none() | st.integers(1, 12),
    daily_tokens=st.none() | st.sampled_from([1, 100, 5_000]),
    time_zone=st.sampled_from(["UTC", "Asia/Kathmandu", "America/St_Johns", "Pacific/Kiritimati"]),
    key_rates=st.none() | rates,
    model_rates=st.just({}) | st.fixed_dictionaries({"model-a": rates}),
    spend_limits=st.just(()) | spend_limits,
    shadow=st.lists(st.sampled_from(LimitReason), unique=True, max_size=4).map(tuple),
)
subjects = st.builds(
    Subject, st.sampled_from(["key-1", "key-2"]), st.sampled_from(["model-a", "model-b"])
)
usages = st.builds(
    Usage,
    input=st.sampled_from([0, 1, 50, 4_000]),
    cache_read=st.sampled_from([0, 10]),
    output=st.sampled_from([0, 3, 700]),
)
