"""What admission holds in its own memory."""

from admission.domain.debts import longest_debts
from admission.store.memory import Memory
from contracts.admission import Policy

_SLOW = Policy(tier_id="slow", rpm=1, tpm=60)
_FAST = Policy(tier_id="fast", rpm=600, tpm=10**6)
_TOKENS = 10**6


def _memory(remembered_teams: int = 2) -> Memory:
    memory = Memory(remembered_teams, _TOKENS)
    memory.replace_policies([_SLOW, _FAST])
    return memory


def test_a_team_is_assumed_in_the_tier_it_was_last_seen_in() -> None:
    memory = _memory()
    assert memory.last_seen("a") is None
    memory.saw("a", "slow")
    memory.saw("a", "fast")
    assert memory.last_seen("a") == _FAST


def test_the_team_not_seen_for_longest_is_forgotten() -> None:
    memory = _memory(remembered_teams=2)
    memory.saw("a", "slow")
    memory.saw("b", "slow")
    memory.last_seen("a")
    memory.saw("c", "slow")
    assert [memory.last_seen(team) for team in "abc"] == [_SLOW, None, _SLOW]


def test_a_team_is_assumed_under_the_new_numbers_of_its_tier() -> None:
    memory = _memory()
    memory.saw("a", "slow")
    raised = Policy(tier_id="slow", rpm=2, tpm=120)
    memory.replace_policies([raised])
    assert memory.last_seen("a") == raised


def test_a_team_whose_tier_is_gone_is_not_assumed() -> None:
    memory = _memory()
    memory.saw("a", "slow")
    memory.replace_policies([_FAST])
    assert memory.last_seen("a") is None
    assert memory.policy("slow") is None


def test_debts_are_those_of_every_tier_as_a_team_may_bring_its_debt_along() -> None:
    memory = _memory()
    assert memory.debts_of(_FAST) == memory.debts_of(None) == longest_debts([_SLOW], _TOKENS)


def test_a_policy_from_before_a_change_may_explain_a_longer_debt() -> None:
    memory = _memory()
    before = Policy(tier_id="slow", rpm=1, tpm=6)
    assert memory.debts_of(before) == longest_debts([before], _TOKENS)
    assert memory.debts_of(_SLOW) == longest_debts([_SLOW], _TOKENS)
