"""The scripts and the model agree on random windows over random histories, on a real server.

Requests come by preflight and by the script for windows alone, in turn, into the same logs. What is
refused moves nothing, be it by a window or by the team's own limits.
"""

import itertools

from hypothesis import strategies as st
from hypothesis.stateful import (
    initialize,
    invariant,
    rule,
)
from integration.redis_scripts.agreement import OneTeam, agree
from integration.redis_scripts.terms import CAPS, PLAIN, terms_of
from integration.redis_scripts.window_world import Logs
from msgspec.structs import replace

from admission.domain.windows import Log, counting, entered, use_of
from admission.store.terms import window_terms
from contracts.windows import Window, WindowUse
from quotagate.stack import Servers
from redis_scripts import Verdict
from redis_scripts.further import DebtTerms
from redis_scripts.keys import INPUT_TAT, team_owner

SECOND_US = 1_000_000
KEY_ID = "key-1"
window_sets = st.lists(
    st.builds(
        Window,
        group=st.sampled_from(["Chat", "All"]),
        label=st.sampled_from(["Minute", "Day"]),
        limit=st.integers(1, 6),
        length_us=st.sampled_from([SECOND_US * 60, SECOND_US * 3_600]),
        shadow=st.booleans(),
    ),
    min_size=1,
    max_size=3,
    unique_by=lambda window: (window.group, window.label),
).map(tuple)


class Windows(OneTeam):
    """One key's history; the model remembers each log."""

    def __init__(self) -> None:
        super().__init__()
        self.owner = team_owner(self.team.team_id)
        self.windows: tuple[Window, ...] = ()
        self.logs: dict[tuple[str, str], Log] = {}
        self.names = itertools.count()

    @property
    def stored(self) -> Logs:
        return Logs(self.owner, self.windows, KEY_ID, self.operator)

    @initialize(windows=window_sets)
    def begin(self, windows: tuple[Window, ...]) -> None:
        self.windows = windows

    @rule(windows=window_sets)
    def change_the_configuration(self, windows: tuple[Window, ...]) -> None:
        """The logs stay; a lower limit finds more in them than it allows."""
        self.windows = windows

    @rule(
        age_us=st.sampled_from([1, 20 * SECOND_US, 59 * SECOND_US, 3_599 * SECOND_US, -SECOND_US])
    )
    def let_time_pass(self, age_us: int) -> None:
        self.wait(self.stored.age(age_us))
        for window in self.windows:
            name = (window.group, window.label)
            self.logs[name] = tuple(at_us - age_us for at_us in self.logs.get(name, ()))

    @rule(times=st.integers(1, 4))
    def ask_alone(self, times: int) -> None:
        for _ in range(times):
            before = self.wait(self.stored.dump())
            terms = window_terms(self.windows, f"name-{next(self.names)}", KEY_ID)
            reply = self.wait(self.scripts.judge_windows(self.owner, terms))
            may = self._expect(reply.uses, reply.now_us)
            assert reply.admitted == may
            assert may or self.wait(self.stored.dump()) == before

    @rule(is_in_debt=st.booleans())
    def ask_by_preflight(self, *, is_in_debt: bool) -> None:
        before = self.wait(self.stored.dump()), self.wait(self.team.snapshot())
        in_debt = DebtTerms(INPUT_TAT, 1, 0, CAPS.token_us)
        terms = replace(
            terms_of(PLAIN),
            request_burst_us=10**12,
            further=(in_debt,) if is_in_debt else (),
            windows=window_terms(self.windows, f"name-{next(self.names)}", KEY_ID),
        )
        if is_in_debt:
            far_us = self.wait(self.team.now_us()) + 3_600 * SECOND_US
            self.wait(self._put_debt(far_us))
            before = before[0], self.wait(self.team.snapshot())
        reply = self.wait(self.scripts.preflight(self.team.team_id, terms))
        logs = self._logs()
        if is_in_debt:
            expected = [
                use_of(window, log, reply.now_us)
                for window, log in zip(self.windows, logs, strict=True)
            ]
            assert list(reply.windows) == expected
            assert reply.verdict is Verdict.LIMITED
        else:
            may = self._expect(reply.windows, reply.now_us)
            assert (reply.verdict is Verdict.ADMITTED) == may
        if reply.verdict is not Verdict.ADMITTED:
            assert (self.wait(self.stored.dump()), self.wait(self.team.snapshot())) == before

    @rule()
    def look(self) -> None:
        before = self.wait(self.stored.dump())
        terms = window_terms(self.windows, "", KEY_ID)
        state = self.wait(self.scripts.windows_state(self.owner, terms))
        for window, log, use in zip(self.windows, self._logs(), state.uses, strict=True):
            count = counting(window, log, state.now_us)
            empty_at_us = count[-1] + window.length_us if count else 0
            assert use == replace(use_of(window, log, state.now_us), empty_at_us=empty_at_us)
        assert self.wait(self.stored.dump()) == before

    async def _put_debt(self, tat_us: int) -> None:
        await self.operator.set(self.team.keys.input_tat, tat_us, px=10**7)

    def _logs(self) -> tuple[Log, ...]:
        return tuple(self.logs.get((each.group, each.label), ()) for each in self.windows)

    def _expect(self, uses: tuple[WindowUse, ...], now_us: int) -> bool:
        """Compare a reply with the model, have the model move, return whether it admits."""
        logs = self._logs()
        after = entered(self.windows, logs, now_us)
        before = [
            use_of(window, log, now_us) for window, log in zip(self.windows, logs, strict=True)
        ]
        if after is None:
            assert list(uses) == before
            return False
        for window, use, was, log in zip(self.windows, uses, before, after, strict=True):
            assert use == (was if was.admits_at_us else WindowUse(used=was.used + 1))
            self.logs[window.group, window.label] = log
        return True

    @invariant()
    def the_server_holds_what_the_model_says(self) -> None:
        assert self.wait(self.stored.stored()) == self._logs()


def test_scripts_and_model_agree_on_windows(servers: Servers) -> None:
    agree(Windows, servers, histories=60, steps=30)
