"""What the disk's sync costs: the same load on a stack whose JetStream acknowledges before it."""

from collections.abc import Callable

from bench.figures import Figures
from bench.plan import Plan
from bench.stage import stage


def measure(figures: Figures, plan: Plan, tell: Callable[[str], None]) -> None:
    """Measure the throughput at 32 clients on a stack of its own."""
    with stage(tell, synced=False) as standing:
        load = standing.gateway(32, plan.long_s, warm_up_s=plan.warm_up_s)
        measured = standing.use(load).measured
    figures.add("unsynced_rps_32", measured.ok_per_s, "/s", "without the disk's sync, 32 clients")
    figures.add_ratio("unsynced_to_synced", "unsynced_rps_32", "gateway_rps_32", "to with it")
