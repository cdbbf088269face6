"""What the disk's sync costs: the same loads with every store on a disk in memory.

Nothing else differs: the stores sync as they always do, which costs nothing there.
"""

from collections.abc import Callable
from pathlib import Path

from bench.figures import Figures
from bench.parts.latency import HALF_CLIENTS, half_of_the_maximum
from bench.plan import Plan
from bench.quantiles import latencies
from bench.stage import stage

_MEMORY = Path("/dev/shm")  # noqa: S108 # where Linux has such a disk; the stack has its own folder


def measure(figures: Figures, plan: Plan, tell: Callable[[str], None]) -> None:
    """Measure throughput and latency on a stack of its own, under the loads of the other one."""
    if not _MEMORY.is_dir():
        tell(f"no {_MEMORY} here, so not without the disk's sync")
        return
    rate_per_s = half_of_the_maximum(figures)
    with stage(tell, _MEMORY / "quotagate-bench") as standing:
        load = standing.gateway(32, plan.long_s, warm_up_s=plan.warm_up_s)
        most = standing.use(load).measured
        load = standing.gateway(HALF_CLIENTS, plan.long_s, rate_per_s=rate_per_s)
        half = latencies(standing.use(load).measured.ok_us)
    figures.add("unsynced_rps_32", most.ok_per_s, "/s", "without the disk's sync, 32 clients")
    figures.add_ratio("unsynced_to_synced", "unsynced_rps_32", "gateway_rps_32", "to with it")
    for name, value_ms in (("p50", half.p50_ms), ("p95", half.p95_ms), ("p99", half.p99_ms)):
        added_ms = value_ms - figures[f"direct_{name}_ms_half"]
        words = f"{name} that the gateway adds without it, {rate_per_s:,.0f} requests/s"
        figures.add(f"unsynced_added_{name}_ms_half", added_ms, "ms", words)
