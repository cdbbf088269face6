"""How often each of many has done something lately, in one process and in bounded memory.

So many in a burst, then one after the other: GCRA, as the limits of teams, but by this process's
clock. Who is not remembered has done nothing.
"""

from collections import OrderedDict

_US_PER_S = 1_000_000
_REMEMBERED = 10_000


class Paces:
    """At most 10,000 of them; beyond, those who did something longest ago are forgotten first.

    Times are microseconds of one monotonic clock.
    """

    def __init__(self, most: int, period_s: int) -> None:
        """Allow each `most` in `period_s`."""
        self.most = most
        self._interval_us = -(-period_s * _US_PER_S // most)
        self._tats_us: OrderedDict[str, int] = OrderedDict()

    def __len__(self) -> int:
        """Return how many are remembered."""
        return len(self._tats_us)

    def debt_us(self, who: str, now_us: int) -> int:
        """Return how long until nothing of what somebody did counts any more."""
        tat_us = self._tats_us.get(who)
        if tat_us is None:
            return 0
        if tat_us <= now_us:
            del self._tats_us[who]
            return 0
        return tat_us - now_us

    def wait_us(self, debt_us: int) -> int:
        """Return how long somebody with this debt has to wait; 0: not at all."""
        return max(0, debt_us - (self.most - 1) * self._interval_us)

    def used(self, debt_us: int) -> int:
        """Return how many count of somebody with this debt."""
        return -(-debt_us // self._interval_us)

    def count(self, who: str, now_us: int) -> None:
        """Count one."""
        self._tats_us[who] = max(self._tats_us.get(who, 0), now_us) + self._interval_us
        self._tats_us.move_to_end(who)
        if len(self._tats_us) > _REMEMBERED:
            self._tats_us.popitem(last=False)
