"""Scripts and model agree over random histories with random policies, on a real server."""

from hypothesis import strategies as st
from hypothesis.stateful import invariant, rule
from integration.redis_scripts.agreement import OneTeam, agree
from integration.redis_scripts.team import TIER
from integration.redis_scripts.terms import charge_of, terms_of

from admission.domain.gcra import Admitted, postflight, preflight
from contracts.admission import Policy
from quotagate.stack import Servers
from redis_scripts import Verdict

policies = st.builds(
    Policy,
    tier_id=st.just(TIER),
    rpm=st.sampled_from([1, 7, 60, 61, 999, 30_000, 60_000_001]),
    tpm=st.sampled_from([1, 999, 60_000, 90_001, 150_000_000]),
    request_burst=st.integers(0, 5),
    token_burst=st.sampled_from([0, 1, 1_000, 90_001]),
)
ages_us = st.sampled_from([1, 1_000, 1_000_000, 60_000_000, 86_400_000_000])


class Agreement(OneTeam):
    """One team's history; `request_tat_us` and `token_tat_us` are what the model remembers."""

    def __init__(self) -> None:
        super().__init__()
        self.policy = Policy(tier_id=TIER, rpm=60, tpm=60_000)
        self.request_tat_us: int | None = None
        self.token_tat_us: int | None = None

    @rule(policy=policies)
    def change_tier(self, policy: Policy) -> None:
        """A tier change keeps the TATs."""
        self.policy = policy

    @rule(age_us=ages_us)
    def let_time_pass(self, age_us: int) -> None:
        if self.request_tat_us is not None:
            self.request_tat_us -= age_us
        if self.token_tat_us is not None:
            self.token_tat_us -= age_us
        self.wait(self.team.put(request_tat_us=self.request_tat_us, token_tat_us=self.token_tat_us))

    @rule()
    def pay_all_debts(self) -> None:
        self.let_time_pass(10**15)

    @rule()
    def ask(self) -> None:
        reply = self.wait(self.scripts.preflight(self.team.team_id, terms_of(self.policy)))
        decision = preflight(self.policy, reply.now_us, self.request_tat_us, self.token_tat_us)
        if isinstance(decision, Admitted):
            assert reply.verdict is Verdict.ADMITTED
            self.request_tat_us = decision.request_tat_us
        else:
            assert reply.verdict is Verdict.LIMITED
        assert reply.request_tat_us == self.request_tat_us
        assert reply.token_tat_us == self.token_tat_us

    @rule(tokens=st.sampled_from([0, 1, 13, 2_000, 128_000, 2_000_000]))
    def charge(self, tokens: int) -> None:
        reply = self.wait(
            self.scripts.postflight(self.team.team_id, charge_of(self.policy, tokens))
        )
        self.token_tat_us = postflight(self.policy, reply.now_us, self.token_tat_us, tokens)
        assert reply.request_tat_us == self.request_tat_us
        assert reply.token_tat_us == self.token_tat_us

    @invariant()
    def the_server_holds_what_the_model_says(self) -> None:
        state = self.wait(self.scripts.limits_state(self.team.team_id))
        assert state.request_tat_us == self.request_tat_us
        assert state.token_tat_us == self.token_tat_us


def test_scripts_and_model_agree(servers: Servers) -> None:
    agree(Agreement, servers, histories=60, steps=40, shorten=True)
