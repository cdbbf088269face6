"""Scripts and model agree on all limits of random tiers, over random histories, on a real server.

The server's clock can't be moved, so time passes by moving what is stored into the past. The model
remembers each key's number by its name, and the leases; the server holds the rest.
"""

import re
from collections.abc import Sequence
from decimal import Decimal
from typing import Any

from hypothesis import strategies as st
from hypothesis.stateful import (
    initialize,
    invariant,
    rule,
)
from integration.redis_scripts.agreement import OneTeam, agree
from integration.redis_scripts.random_tiers import policies, subjects, usages
from integration.redis_scripts.team import TIER
from integration.redis_scripts.terms import CAPS

from admission.domain.charging import End, after
from admission.domain.decision import Admitted, Moment, decide
from admission.domain.limits import (
    CountLimit,
    LeaseLimit,
    Limit,
    SpendCap,
    Subject,
    limits_of,
)
from admission.domain.money import rough_debit_nano_usd
from admission.domain.tokens import counted
from admission.store.terms import Asking, Terms, Used, charge
from contracts.admission import LimitReason, Policy
from contracts.usage import Price, Usage, UsdPerMillion
from kit.calendar import days_around, months_around
from quotagate.stack import Servers
from redis_scripts import DayUsage, Spend, Verdict
from redis_scripts.further import where
from redis_scripts.keys import day_counter, spend_counter, team_keys

LEASE_US = 30_000_000
TERMS = Terms(LEASE_US)
# What is there before each step, so that no debit of these histories ends them.
RICH_NANO_USD = 9 * 10**18
COUNTER = re.compile(r":(?:day|spend):(\d+)-\d+")


def price(usd_per_million: str) -> Price:
    classes = dict.fromkeys(UsdPerMillion.__struct_fields__, Decimal(usd_per_million))
    return Price(
        price_id=usd_per_million,
        provider="p",
        model="m",
        usd_per_million=UsdPerMillion(**classes),
        effective_from_us=0,
    )


# The last makes a debit of one call that is beyond the ceiling.
PRICES = [price("0"), price("0.0003"), price("1"), price("1000000000"), price("1000000000000")]


class Whole(OneTeam):
    """One team's history; what the model remembers are `numbers` by key, and `leases` by name."""

    def __init__(self) -> None:
        super().__init__()
        self.policy = Policy(tier_id=TIER, rpm=60_000, tpm=60_000)
        self.numbers: dict[str, int] = {}
        self.leases: dict[str, int] = {}
        self.names = 0
        self.known = set(self.team.keys)

    @initialize(policy=policies)
    def begin(self, policy: Policy) -> None:
        self.policy = policy

    @rule(policy=policies)
    def change_tier(self, policy: Policy) -> None:
        """A tier change keeps debts, leases and counts."""
        self.policy = policy

    @rule(age_us=st.sampled_from([1, 1_000_000, 29_000_000, 86_400_000_000]))
    def let_time_pass(self, age_us: int) -> None:
        for key in [key for key in self.numbers if key.endswith("_tat")]:
            self.numbers[key] -= age_us
            self.wait(self._put(key, self.numbers[key]))
        for name in self.leases:
            self.leases[name] -= age_us
        if self.leases:
            self.wait(self._put_leases())

    @rule(requests=st.integers(0, 5), tokens=st.sampled_from([0, 99, 100, 4_000]))
    def fill_day(self, requests: int = 0, tokens: int = 0) -> None:
        """A counter that is there stays."""
        now_us = self.wait(self.team.now_us())
        start_us, end_us = days_around(now_us, self.policy.time_zone).period_of(now_us)
        self.wait(
            self.scripts.fill_day(self.team.team_id, DayUsage(start_us, end_us, requests, tokens))
        )
        for what, number in (("requests", requests), ("tokens", tokens)):
            key = day_counter(start_us, end_us, what).of(self.team.team_id)
            self.known.add(key)
            self.numbers.setdefault(key, number)

    @rule(
        subject=subjects,
        amount=st.sampled_from([0, 1, 4_000_000, 2**53 - 1, 2**53 + 1, 10**18 - 1, 10**18]),
    )
    def fill_spend(self, subject: Subject, amount: int = 0) -> None:
        """Spend that is counted stays."""
        now_us = self.wait(self.team.now_us())
        for around in (days_around, months_around):
            start_us, end_us = around(now_us, self.policy.time_zone).period_of(now_us)
            for key_id in (None, subject.key_id):
                spent = Spend(key_id, start_us, end_us, amount, 1)
                self.wait(self.scripts.fill_spend(self.team.team_id, spent))
                key = spend_counter(start_us, end_us, key_id).of(self.team.team_id)
                self.known.add(key)
                self.numbers.setdefault(key, amount)

    @rule()
    def lose_the_counters(self) -> None:
        for key in [key for key in self.numbers if COUNTER.search(key)]:
            del self.numbers[key]
            self.wait(self._delete(key))

    @rule(subject=subjects, estimate=st.sampled_from([0, 1, 60, 6_000]), times=st.integers(1, 5))
    def ask(self, subject: Subject, estimate: int, times: int) -> None:
        for _ in range(times):
            if self._ask(subject, estimate) is Verdict.COUNT_MISSING:
                self.fill_day()
                self.fill_spend(subject)

    def _ask(self, subject: Subject, estimate: int) -> Verdict:
        self.names += 1
        asking = Asking(self.team.team_id, subject, f"call-{self.names}:1", estimate)
        near_us = self.wait(self._make_rich())
        terms = TERMS.judged(self.policy, asking, CAPS, near_us)
        self.known.update(place.of(self.team.team_id) for t in terms.further for place in where(t))
        before = self.wait(self._dump())
        reply = self.wait(self.scripts.preflight(self.team.team_id, terms))

        limits = limits_of(self.policy, subject)
        keys = self._keys(limits, terms.further, reply.now_us)
        values = self._values(limits, keys, reply.now_us)
        day_end_us, month_end_us = (
            around(reply.now_us, self.policy.time_zone).period_of(reply.now_us)[1]
            for around in (days_around, months_around)
        )
        told = (reply.request_tat_us, reply.token_tat_us, *(r.value for r in reply.further))
        if any(
            value is None and isinstance(limit, CountLimit | SpendCap)
            for limit, value in zip(limits, values, strict=True)
        ):
            assert reply.verdict is Verdict.COUNT_MISSING
            assert told == values
            assert self.wait(self._dump()) == before
            return reply.verdict
        moment = Moment(reply.now_us, day_end_us, estimate, month_end_us)
        decision = decide(limits, values, moment)
        refusing = [limits[position] for position in reply.refusing]
        reasons = [limit.reason for limit in refusing]
        assert [limit.reason for limit in refusing if limit.shadow] == list(decision.shadowed)
        if isinstance(decision, Admitted):
            assert reply.verdict is Verdict.ADMITTED
            assert told == decision.values
            self._remember(limits, keys, decision.values)
            if self.policy.max_concurrency is not None:
                self._forget_expired(reply.now_us)
                self.leases[asking.lease] = reply.now_us + LEASE_US
        else:
            assert reply.verdict is Verdict.LIMITED
            assert told == values
            # A tier without further limits and shadow mode isn't told which: two are soon asked.
            assert not reply.refusing or decision.by.limit.reason in reasons
            assert self.wait(self._dump()) == before
        return reply.verdict

    @rule(
        subject=subjects,
        usage=usages,
        price=st.sampled_from(PRICES),
        shadowed=st.lists(st.sampled_from(LimitReason), unique=True, max_size=2).map(tuple),
        ends=st.booleans(),
    )
    def charge(
        self,
        subject: Subject,
        usage: Usage,
        price: Price,
        shadowed: tuple[LimitReason, ...],
        *,
        ends: bool,
    ) -> None:
        lease = next(iter(self.leases), "nobody's:1") if ends else None
        used = Used(subject, self.policy, usage, price, shadowed, lease)
        near_us = self.wait(self._make_rich())
        made, reasons = charge(used, CAPS, near_us)
        self.known.update(place.of(self.team.team_id) for c in made.further for place in where(c))
        reply = self.wait(self.scripts.postflight(self.team.team_id, made))

        limits = [
            limit
            for limit in limits_of(self.policy, subject)
            if limit.reason in {LimitReason.REQUESTS, LimitReason.TOKENS, *reasons}
        ]
        keys = self._keys(limits, made.further, reply.now_us)
        values = self._values(limits, keys, reply.now_us)
        ended_us = None
        if LimitReason.CONCURRENCY in reasons and lease is not None:
            ended_us = self.leases.pop(lease, None)
        end = End(
            counted(usage, self.policy.tpm_weights),
            usage.total,
            shadowed,
            ended_us is not None and ended_us > reply.now_us,
            rough_debit_nano_usd(usage, price.usd_per_million),
        )
        expected = after(limits, values, end, reply.now_us)
        assert (
            reply.request_tat_us,
            reply.token_tat_us,
            *(r.value for r in reply.further),
        ) == expected
        self._remember(limits, keys, expected)

    @rule()
    def renew(self) -> None:
        for name in list(self.leases)[:1]:
            before_us = self.wait(self.team.now_us())
            held = self.wait(self.scripts.renew_lease(self.team.team_id, name, LEASE_US))
            assert held == (self.leases[name] > before_us) or self.leases[name] <= before_us + 10**6
            self.leases[name] = int(self.wait(self._score(name)))

    @rule()
    def release(self) -> None:
        for name in list(self.leases)[:1]:
            assert self.wait(self.scripts.release_lease(self.team.team_id, name))
            del self.leases[name]

    @invariant()
    def the_server_holds_what_the_model_says(self) -> None:
        numbers, leases = self.wait(self._stored())
        assert numbers == self.numbers
        assert leases == self.leases

    def _keys(self, limits: Sequence[Limit], further: Sequence[Any], now_us: int) -> list[str]:
        """Return each limit's key; of two periods' the one that the server's clock is in."""
        names = team_keys(self.team.team_id)
        found = [names.request_tat, names.token_tat]
        for term in further:
            places = [place.of(self.team.team_id) for place in where(term)]
            counter = COUNTER.search(places[-1])
            second_begins_us = int(counter[1]) * 10**6 if counter else 0
            found.append(places[-1] if now_us >= second_begins_us else places[0])
        assert len(found) == len(limits)
        return found

    def _values(
        self, limits: Sequence[Limit], keys: list[str], now_us: int
    ) -> tuple[int | None, ...]:
        live = sum(expires_us > now_us for expires_us in self.leases.values())
        return tuple(
            live if isinstance(limit, LeaseLimit) else self.numbers.get(key)
            for limit, key in zip(limits, keys, strict=True)
        )

    def _remember(
        self, limits: Sequence[Limit], keys: list[str], values: Sequence[int | None]
    ) -> None:
        for limit, key, value in zip(limits, keys, values, strict=True):
            if value is not None and not isinstance(limit, LeaseLimit):
                self.numbers[key] = value

    def _forget_expired(self, now_us: int) -> None:
        self.leases = {name: at for name, at in self.leases.items() if at > now_us}

    async def _make_rich(self) -> int:
        """Fill the account again, and return the server's clock."""
        await self.operator.set(self.team.keys.balance, RICH_NANO_USD, keepttl=True)
        return await self.team.now_us()

    async def _put(self, key: str, number: int) -> None:
        await self.operator.set(key, number, keepttl=True)

    async def _put_leases(self) -> None:
        await self.operator.zadd(team_keys(self.team.team_id).leases, self.leases)

    async def _delete(self, key: str) -> None:
        await self.operator.delete(key)

    async def _score(self, name: str) -> float:
        score = await self.operator.zscore(team_keys(self.team.team_id).leases, name)
        assert score is not None
        return score

    async def _dump(self) -> list[object]:
        """Return every key of the team, byte by byte, with the millisecond it expires at."""
        async with self.operator.pipeline(transaction=False) as pipeline:
            for key in sorted(self.known):
                pipeline.dump(key)
                pipeline.pexpiretime(key)
            return list(await pipeline.execute())

    async def _stored(self) -> tuple[dict[str, int], dict[str, int]]:
        names = sorted(n for n in self.known if n.endswith("_tat") or COUNTER.search(n))
        async with self.operator.pipeline(transaction=False) as pipeline:
            pipeline.mget(names)
            pipeline.zrange(team_keys(self.team.team_id).leases, 0, -1, withscores=True)
            numbers, leases = await pipeline.execute()
        return (
            {name: int(n) for name, n in zip(names, numbers, strict=True) if n is not None},
            {member.decode(): int(score) for member, score in leases},
        )


def test_scripts_and_model_agree_on_every_limit(servers: Servers) -> None:
    agree(Whole, servers, histories=80, steps=30)
