"""From a tier's policy to what the scripts are told, as admission's store does it."""

from integration.redis_scripts.team import TIER

from admission.domain.policy import cost_us, interval_us, request_burst_us, token_burst_us
from contracts.admission import Policy
from redis_scripts import Charge, DebtCaps, PreflightTerms

# As long as a script can hold exactly: nothing of these tests is capped by it.
CAPS = DebtCaps(request_us=7_000_000_000_000_000, token_us=7_000_000_000_000_000)
PLAIN = Policy(tier_id=TIER, rpm=60, tpm=60_000)


def terms_of(policy: Policy, caps: DebtCaps = CAPS) -> PreflightTerms:
    return PreflightTerms(
        policy.tier_id,
        interval_us(policy),
        request_burst_us(policy),
        token_burst_us(policy),
        caps,
    )


def charge_of(
    policy: Policy, tokens: int, debit_nano_usd: int = 0, caps: DebtCaps = CAPS
) -> Charge:
    return Charge(cost_us(policy, tokens), debit_nano_usd, caps)
