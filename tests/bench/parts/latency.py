"""What the gateway adds to one request: at one client, and at half of what it can do."""

from bench.figures import Figures
from bench.plan import Plan
from bench.quantiles import Latencies, latencies
from bench.stage import Stage, Used

HALF_CLIENTS = 256
_HALF_OF_THE_TARGET_PER_S = 500.0


def measure(stage: Stage, figures: Figures, plan: Plan) -> None:
    """Measure latencies beside those of the same request sent straight to the fake provider."""
    one = latencies(stage.use(stage.direct(1, plan.short_s)).measured.ok_us)
    _add(figures, "direct", "1", one, "fake provider alone, one client")
    ours = latencies(stage.use(stage.gateway(1, plan.short_s)).measured.ok_us)
    _add(figures, "gateway", "1", ours, "through the gateway, one client")
    for share in ("p50", "p95", "p99"):
        _add_difference(figures, share, "1")
    half = _at_rate(stage, figures, plan, "half", half_of_the_maximum(figures))
    late_ms = latencies(half.measured.lateness_us).p99_ms
    figures.add("half_lateness_p99_ms", late_ms, "ms", "p99 of the generator's own lateness")
    figures.add("gateway_not_ok_half", half.measured.not_ok, "", half.measured.not_ok_in_words)
    # Half of what a gateway should do at least: a faster one is not measured under more load.
    _at_rate(stage, figures, plan, "500", _HALF_OF_THE_TARGET_PER_S)


def half_of_the_maximum(figures: Figures) -> float:
    """Return half of the requests a second that 32 clients got."""
    return max(1.0, figures["gateway_rps_32"] / 2)


def _at_rate(stage: Stage, figures: Figures, plan: Plan, load: str, rate_per_s: float) -> Used:
    """Measure evenly spaced arrivals that wait for nobody: a slow answer delays no later one."""
    words = f"{rate_per_s:,.0f} requests/s"
    alone = stage.use(stage.direct(HALF_CLIENTS, plan.long_s, rate_per_s=rate_per_s))
    _add(figures, "direct", load, latencies(alone.measured.ok_us), f"alone, {words}")
    ours = stage.use(stage.gateway(HALF_CLIENTS, plan.long_s, rate_per_s=rate_per_s))
    _add(figures, "gateway", load, latencies(ours.measured.ok_us), f"gateway, {words}")
    for share in ("p50", "p95", "p99"):
        _add_difference(figures, share, load)
    return ours


def _add(figures: Figures, who: str, load: str, found: Latencies, meaning: str) -> None:
    for name, value in (("p50", found.p50_ms), ("p95", found.p95_ms), ("p99", found.p99_ms)):
        figures.add(f"{who}_{name}_ms_{load}", value, "ms", f"{name} {meaning}")


def _add_difference(figures: Figures, share: str, load: str) -> None:
    added_ms = figures[f"gateway_{share}_ms_{load}"] - figures[f"direct_{share}_ms_{load}"]
    figures.add(f"added_{share}_ms_{load}", added_ms, "ms", f"{share} that the gateway adds")
