"""The scripts of sliding windows alone, one typed method each."""

from collections.abc import Sequence

from redis_scripts.keys import Owner
from redis_scripts.pipelines import Pipelines
from redis_scripts.sources import load
from redis_scripts.windows import WindowsReply, WindowsState, WindowTerms, judged_alone, read_use

_JUDGE_WINDOWS = load("judge_windows")
_WINDOWS_STATE = load("windows_state")


class WindowScripts:
    """A part of `RedisScripts`, whose methods raise what all of them raise."""

    _pipelines: Pipelines

    async def judge_windows(self, owner: Owner, windows: Sequence[WindowTerms]) -> WindowsReply:
        """Decide one request by one owner's windows alone, of which there is at least one."""
        keys = [owner.key(window.place) for window in windows]
        arguments = tuple(judged_alone(windows))
        verdict, now_us, *uses = await self._pipelines.run(_JUDGE_WINDOWS, keys, arguments)
        return WindowsReply(verdict == b"admitted", now_us, tuple(map(read_use, uses)))

    async def windows_state(self, owner: Owner, windows: Sequence[WindowTerms]) -> WindowsState:
        """Read one owner's windows, of which there is at least one. Writes and extends nothing."""
        keys = [owner.key(window.place) for window in windows]
        # Without the first of the three: whether it is in shadow mode changes nothing here.
        arguments = [number for window in windows for number in window.arguments()[1:]]
        now_us, *uses = await self._pipelines.run(_WINDOWS_STATE, keys, arguments)
        return WindowsState(now_us, tuple(map(read_use, uses)))
