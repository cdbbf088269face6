"""Preflight decisions per second of one admission process, with nobody else in its way."""

import asyncio
import itertools
import resource
import time

import uvloop
from bench import meters
from bench.figures import Figures
from bench.plan import Plan
from bench.quantiles import latencies
from bench.stage import MODEL, PROVIDER, Stage
from bench.wire import Answers, Question, flood

from contracts.admission import PREFLIGHT, Decision, Deployment, PreflightReply, PreflightRequest
from contracts.contract import decode, encode
from kit.ids import new_id

_IN_FLIGHT = 128
_DEADLINE_US = 2_000_000
_WARM_UP_S = 0.5


def measure(stage: Stage, figures: Figures, plan: Plan) -> None:
    """Ask admission itself for decisions on the usual teams."""
    _asked(stage, _WARM_UP_S)
    before, own_s = meters.read(stage.stack), _own_cpu_s()
    answers = _asked(stage, plan.decisions_s)
    own_s = _own_cpu_s() - own_s
    used_s = meters.read(stage.stack).cpu_since(before)
    count = len(answers.times_us) - answers.errors
    reply = decode(answers.samples[0], PreflightReply)
    if reply.decision is not Decision.ALLOWED:
        raise RuntimeError(f"the benchmark's team was refused: {reply.decision}")
    figures.add("decisions_per_s", count / answers.elapsed_s, "/s", "one admission process")
    figures.add("decisions_not_made", answers.errors, "", "errors instead of decisions")
    found = latencies(answers.times_us)
    figures.add("decision_p50_ms", found.p50_ms, "ms", f"p50, {_IN_FLIGHT} asked at once")
    for name in ("admission", "nats", "valkey"):
        cpu_us = used_s[name] / max(1, count) * 1_000_000
        figures.add(f"decision_cpu_us_{name}", cpu_us, "µs", f"CPU of {name} for each decision")
    figures.add("decision_cpu_us_generator", own_s / max(1, count) * 1e6, "µs", "CPU of who asks")
    figures.add(
        "decisions_admission_share",
        used_s["admission"] / answers.elapsed_s,
        "core",
        "of one core that admission got: below 1 something else was the limit",
    )


def _asked(stage: Stage, duration_s: float) -> Answers:
    servers = stage.stack.servers
    login = ("operator", servers.nats_passwords["operator"])
    ends_s = time.monotonic() + duration_s
    turns = itertools.cycle(stage.teams)

    def ask() -> Question | None:
        if time.monotonic() > ends_s:
            return None
        team = next(turns)
        request = PreflightRequest(
            team_id=team.team_id,
            key_id=team.key_id,
            inference_id=new_id(),
            model=MODEL,
            deployments=(Deployment(provider=PROVIDER, model=MODEL),),
            deadline_us=time.time_ns() // 1_000 + _DEADLINE_US,
        )
        return Question(PREFLIGHT.subject, encode(request))

    with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
        return runner.run(flood(servers.nats_url, login, ask, _IN_FLIGHT))


def _own_cpu_s() -> float:
    used = resource.getrusage(resource.RUSAGE_SELF)
    return used.ru_utime + used.ru_stime
