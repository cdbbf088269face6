"""Whether memory stays what it is under a steady load."""

import time
from collections.abc import Mapping, Sequence

from bench import meters
from bench.figures import Figures
from bench.load import Running
from bench.parts.latency import half_of_the_maximum
from bench.plan import Plan
from bench.stage import Stage

_EVERY_S = 2.0
_S_PER_MIN = 60
_SERVICES = ("edge-proxy", "admission", "settlement", "tier-cache", "control-plane")


def measure(stage: Stage, figures: Figures, plan: Plan) -> None:
    """Hold half of the load; compare each service's memory in the second and the last quarter."""
    rate_per_s = half_of_the_maximum(figures)
    load = stage.gateway(256, plan.soak_s, rate_per_s=rate_per_s, warm_up_s=plan.warm_up_s)
    running = Running(load)
    readings = []
    ends_s = time.monotonic() + plan.soak_s
    while time.monotonic() < ends_s:
        readings.append(meters.read(stage.stack).memory_mib)
        time.sleep(_EVERY_S)
    measured = running.result()
    figures.add("soak_ok_rps", measured.ok_per_s, "/s", f"steady for {plan.soak_s:.0f} s")
    figures.add("soak_not_ok", measured.not_ok, "", measured.not_ok_in_words)
    for name in _SERVICES:
        growth = _growth_mib_per_min(readings, name, plan.soak_s)
        figures.add(
            f"soak_growth_mib_per_min_{name.replace('-', '_')}", growth, "MiB", f"growth of {name}"
        )


def _growth_mib_per_min(
    readings: Sequence[Mapping[str, float]], name: str, duration_s: float
) -> float:
    """Return the growth between the middles of the second and the last quarter."""
    quarter = max(1, len(readings) // 4)
    second = [reading[name] for reading in readings[quarter : 2 * quarter] or readings[:1]]
    last = [reading[name] for reading in readings[-quarter:]]
    grown_mib = sum(last) / len(last) - sum(second) / len(second)
    return grown_mib / (duration_s / 2 / _S_PER_MIN)
