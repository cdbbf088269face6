"""Requests per second at 32 and 256 clients, and what they cost each process."""

from collections.abc import Mapping

from bench.figures import Figures
from bench.load import Load, run
from bench.meters import read
from bench.plan import Plan
from bench.stage import Stage
from bench.stub import stub
from msgspec import structs

SERVICES = (
    "edge-proxy",
    "admission",
    "settlement",
    "tier-cache",
    "control-plane",
    "nats",
    "valkey",
    "postgres",
    "fake-provider",
)


def measure(stage: Stage, figures: Figures, plan: Plan) -> None:
    """Measure the load generator, the fake provider, and the gateway before it."""
    _generator(stage, figures, plan)
    direct = stage.use(stage.direct(32, plan.short_s))
    figures.add("direct_rps_32", direct.measured.ok_per_s, "/s", "fake provider alone, 32 clients")
    used = stage.use(stage.gateway(32, plan.long_s, warm_up_s=plan.warm_up_s))
    measured = used.measured
    figures.add("gateway_rps_32", measured.ok_per_s, "/s", "through the gateway, 32 clients")
    _cpu(figures, used.cpu_s, measured.answered, measured.elapsed_s)
    figures.add(
        "generator_cpu_ms",
        measured.cpu_s / max(1, measured.answered) * 1_000,
        "ms",
        "CPU of the load generator for each request",
    )
    figures.add("generator_cpu_share", measured.cpu_share, "core", "of one core, meanwhile")
    figures.add("gateway_not_ok_32", measured.not_ok, "", measured.not_ok_in_words)
    many = stage.use(stage.gateway(256, plan.long_s)).measured
    figures.add("gateway_rps_256", many.ok_per_s, "/s", "the same, 256 clients")
    figures.add("gateway_not_ok_256", many.not_ok, "", many.not_ok_in_words)
    _memory(stage, figures)
    figures.add_ratio(
        "direct_to_gateway", "direct_rps_32", "gateway_rps_32", "so many times more without us"
    )


def _generator(stage: Stage, figures: Figures, plan: Plan) -> None:
    """Measure how much the generator could send: several times more, or it measures itself."""
    with stub() as port:
        load = stage.direct(32, plan.short_s)
        ceiling = run(_at(load, port))
    figures.add(
        "generator_rps_32", ceiling.ok_per_s, "/s", "load generator on a server that does nothing"
    )


def _at(load: Load, port: int) -> Load:
    return structs.replace(load, ports=(port,))


def _cpu(figures: Figures, used_s: Mapping[str, float], answered: int, elapsed_s: float) -> None:
    for name in SERVICES:
        figures.add(
            f"cpu_ms_{name.replace('-', '_')}",
            used_s.get(name, 0) / max(1, answered) * 1_000,
            "ms",
            f"CPU of {name} for each request, {used_s.get(name, 0) / elapsed_s:.0%} of a core",
        )
    ours = sum(used_s.get(name, 0) for name in SERVICES if name != "fake-provider")
    figures.add("cpu_ms_all", ours / max(1, answered) * 1_000, "ms", "all but the fake provider")


def _memory(stage: Stage, figures: Figures) -> None:
    for name, mib in read(stage.stack).memory_mib.items():
        figures.add(f"memory_mib_{name.replace('-', '_')}", mib, "MiB", f"memory of {name}")
