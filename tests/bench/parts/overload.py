"""Three times as much as the gateway can: it refuses quickly, and is itself again at once."""

from bench import meters
from bench.figures import Figures
from bench.plan import Plan
from bench.quantiles import latencies
from bench.stage import Stage

_TIMES = 3
_CONNECTIONS = 1_000
_UNAVAILABLE = 503


def measure(stage: Stage, figures: Figures, plan: Plan) -> None:
    """Send requests at three times the rate, whatever comes back, and look at each kind."""
    before_mib = sum(meters.read(stage.stack).memory_mib.values())
    rate_per_s = figures["gateway_rps_256"] * _TIMES
    load = stage.gateway(_CONNECTIONS, plan.long_s, rate_per_s=rate_per_s)
    measured = stage.use(load).measured
    figures.add("overload_offered_rps", rate_per_s, "/s", f"offered: {_TIMES} times the capacity")
    figures.add("overload_ok_rps", measured.ok_per_s, "/s", "answered with 200")
    refused = measured.statuses.get(_UNAVAILABLE, 0)
    figures.add("overload_503_rps", refused / measured.elapsed_s, "/s", "refused with 503")
    others = measured.answered - measured.ok - refused
    figures.add("overload_other", others + measured.failures, "", "other answers, and broken ones")
    figures.add("overload_late", measured.late, "", "not answered when the time was over")
    for name, times_us, words in (
        ("ok", measured.ok_us, "answers with 200"),
        ("refused", measured.other_us, "refusals"),
    ):
        if times_us:
            found = latencies(times_us)
            figures.add(f"overload_{name}_p50_ms", found.p50_ms, "ms", f"p50 of {words}")
            figures.add(f"overload_{name}_p99_ms", found.p99_ms, "ms", f"p99 of {words}")
    after = stage.use(stage.gateway(32, plan.short_s, warm_up_s=0.5)).measured
    figures.add("recovered_rps_32", after.ok_per_s, "/s", "half a second later, 32 clients")
    figures.add_ratio("recovered", "recovered_rps_32", "gateway_rps_32", "to what it was before")
    after_mib = sum(meters.read(stage.stack).memory_mib.values())
    figures.add("overload_memory_mib", after_mib - before_mib, "MiB", "more memory than before")
