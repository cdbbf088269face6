"""What admission holds in its own memory: policies, prices, and the tier each team was seen in.

None of it decides alone: policies and prices are loaded again when they change, and a remembered
tier is only a guess that the preflight script compares with the stored mapping.
"""

from collections import OrderedDict
from collections.abc import Iterable, Mapping

from admission.domain.debts import LongestDebts, longest_debts
from admission.domain.prices import PriceBook
from contracts.admission import Deployment, Policy
from contracts.usage import Price


class Memory:
    """Policies by tier, the price book, and at most `remembered_teams` teams' last seen tiers."""

    def __init__(self, remembered_teams: int, explicable_tokens: int) -> None:
        self._remembered_teams = remembered_teams
        self._explicable_tokens = explicable_tokens
        self._policies: dict[str, Policy] = {}
        self._impossible: Mapping[str, str] = {}
        self._prices = PriceBook({})
        self._tiers: OrderedDict[str, str] = OrderedDict()
        self._longest_debts = LongestDebts()

    def replace_policies(
        self, policies: Iterable[Policy], impossible: Mapping[str, str] | None = None
    ) -> None:
        """Hold these policies and no others; `impossible`: why which other tiers have none."""
        self._policies = {policy.tier_id: policy for policy in policies}
        self._impossible = impossible or {}
        self._longest_debts = longest_debts(self._policies.values(), self._explicable_tokens)

    def replace_prices(self, prices: Iterable[Price]) -> None:
        """Hold these prices and no others."""
        self._prices = PriceBook.of(prices)

    def policy(self, tier_id: str) -> Policy | None:
        """Return a tier's policy; None: not loaded, or there is no such tier."""
        return self._policies.get(tier_id)

    def problem(self, tier_id: str) -> str | None:
        """Return why what is stored of a tier can't be a policy; None: nobody said so."""
        return self._impossible.get(tier_id)

    def pin(self, deployments: Iterable[Deployment], now_us: int) -> tuple[Price | None, ...]:
        """Return for each deployment the price in effect at `now_us` (unix µs, our wall clock)."""
        return tuple(self._prices.pin(deployment, now_us) for deployment in deployments)

    def last_seen(self, team_id: str) -> Policy | None:
        """Return the policy of the tier the team was last seen in; None: not remembered."""
        tier_id = self._tiers.get(team_id)
        if tier_id is None:
            return None
        self._tiers.move_to_end(team_id)
        return self._policies.get(tier_id)

    def saw(self, team_id: str, tier_id: str) -> None:
        """Remember the tier that Redis holds for a team, and forget who wasn't seen for longest."""
        self._tiers[team_id] = tier_id
        self._tiers.move_to_end(team_id)
        if len(self._tiers) > self._remembered_teams:
            self._tiers.popitem(last=False)

    def debts_of(self, policy: Policy | None) -> LongestDebts:
        """Return the longest explicable debts: of all tiers, and of a policy that may be older."""
        if policy is None or self._policies.get(policy.tier_id) == policy:
            return self._longest_debts
        return self._longest_debts.or_longer(longest_debts((policy,), self._explicable_tokens))
