"""A tier's numbers as one API key meets them, where the key has limits of its own."""

from collections.abc import Iterator

import msgspec

from contracts.admission import KeyLimits, LimitReason, Policy, Rates

_NONE = Rates()


def as_met_by(policy: Policy, own: KeyLimits | None) -> Policy:
    """Return the policy with a key's own limits where the tier's for every key stood.

    Each limit is replaced by itself, with its burst and its shadow mode, so one that the key
    doesn't name stays the tier's.
    """
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


def _reasons(own: KeyLimits) -> Iterator[LimitReason]:
    if own.rpm is not None:
        yield LimitReason.KEY_REQUESTS
    if own.tpm is not None:
        yield LimitReason.KEY_TOKENS
