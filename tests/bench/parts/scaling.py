"""How the throughput grows with a second edge, a second admission, and both."""

from bench.figures import Figures
from bench.plan import Plan
from bench.stage import Stage

_COUNTS: tuple[tuple[str, dict[str, int], str], ...] = (
    ("1_edge_1_admission", {}, "one of each"),
    ("2_edges", {"edge-proxy": 2}, "two edges"),
    ("2_admissions", {"admission": 2}, "two admissions"),
    ("2_edges_2_admissions", {"edge-proxy": 2, "admission": 2}, "two edges and two admissions"),
)

_ONE = "gateway_rps_1_edge_1_admission"


def measure(stage: Stage, figures: Figures, plan: Plan) -> None:
    """Measure each, and go back to one of each."""
    for name, counts, words in _COUNTS:
        stage.stack.up(counts=counts)
        used = stage.use(stage.gateway(64, plan.long_s, warm_up_s=plan.warm_up_s))
        figures.add(f"gateway_rps_{name}", used.measured.ok_per_s, "/s", f"{words}, 64 clients")
        if counts:
            figures.add_ratio(
                f"{name}_to_one", f"gateway_rps_{name}", _ONE, f"{words} to one of each"
            )
    stage.stack.up()
