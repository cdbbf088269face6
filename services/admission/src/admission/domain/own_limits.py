"""A tier's numbers as one API key meets them, where the key has limits of its own."""

from collections.abc import Iterator

import msgspec

from admission.domain.limits import spend_reason
from contracts.admission import KeyLimits, LimitReason, Policy, Rates

_NONE = Rates()


def as_met_by(policy: Policy, own: KeyLimits | None) -> Policy:
    """Return the policy with a key's own limits where the tier's for every key stood.

    Each limit is replaced by itself, with its burst and its shadow mode, so one that the key
    doesn't name stays the tier's. Of spend limits, that of the same period is replaced.
    """
    if own is not None and own.spend_limits:
        policy = _with_spend(policy, own)
    replaced = () if own is None else tuple(_reasons(own))
    if own is None or not replaced:
        return policy
    tiers = policy.key_rates or _NONE
    requests = own if LimitReason.KEY_REQUESTS in replaced else tiers
    tokens = own if LimitReason.KEY_TOKENS in replaced else tiers
    shadow = (
        *(reason for reason in policy.shadow if reason not in replaced),
        *(reason for reason in own.shadow if reason in replaced),
    )
    rates = Rates(
        rpm=requests.rpm,
        request_burst=requests.request_burst,
        tpm=tokens.tpm,
        token_burst=tokens.token_burst,
    )
    return msgspec.structs.replace(policy, key_rates=rates, shadow=shadow)


def _with_spend(policy: Policy, own: KeyLimits) -> Policy:
    replaced = {(limit.scope, limit.period) for limit in own.spend_limits}
    reasons = {spend_reason(limit) for limit in own.spend_limits}
    limits = (
        *(limit for limit in policy.spend_limits if (limit.scope, limit.period) not in replaced),
        *own.spend_limits,
    )
    shadow = (
        *(reason for reason in policy.shadow if reason not in reasons),
        *(reason for reason in own.shadow if reason in reasons),
    )
    return msgspec.structs.replace(policy, spend_limits=limits, shadow=shadow)


def _reasons(own: KeyLimits) -> Iterator[LimitReason]:
    if own.rpm is not None:
        yield LimitReason.KEY_REQUESTS
    if own.tpm is not None:
        yield LimitReason.KEY_TOKENS
