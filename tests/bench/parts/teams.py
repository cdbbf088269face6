"""How the throughput holds with many teams, and with one that does everything."""

from bench.figures import Figures
from bench.plan import Plan
from bench.stage import Stage


def measure(stage: Stage, figures: Figures, plan: Plan) -> None:
    """Measure one hot team, then each number of teams; each request is of any of them."""
    hot = stage.use(stage.gateway(32, plan.long_s, teams=stage.teams[:1])).measured
    figures.add("gateway_rps_1_team", hot.ok_per_s, "/s", "one hot team, 32 clients")
    figures.add_ratio("hot_team_to_ten", "gateway_rps_1_team", "gateway_rps_32", "to ten teams")
    for count in plan.teams:
        many = stage.open_many(count)
        # A thousand are known to the caches soon; of 100,000 nearly every request meets a team
        # that is in no cache: key, tier and balance come from the database.
        load = stage.gateway(32, plan.long_s, teams=many, warm_up_s=plan.warm_up_s)
        measured = stage.use(load).measured
        name = f"gateway_rps_{count}_teams"
        figures.add(name, measured.ok_per_s, "/s", f"{count:,} teams, 32 clients")
        figures.add_ratio(f"{count}_teams_to_ten", name, "gateway_rps_32", "to ten teams")
        words = measured.not_ok_in_words
        figures.add(f"gateway_not_ok_{count}_teams", measured.not_ok, "", words)
