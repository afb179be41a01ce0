"""Runs that searched for a ceiling, with the levels that they tried."""

from dataclasses import replace

from stallmark.analysis.run import RunSummary
from stallmark.record.manifest.workload import LevelSeen, LimitSeen, Search, Step
from support.comparisons import one_run, with_manifest

LEVELS = [(4, "held"), (8, "broke"), (6, "held"), (7, "broke"), (7, "broke"), (6, "held")]


def level(users: int, verdict: str, backlog: bool = False) -> LevelSeen:
    value = {"held": 8.0, "broke": 12.0, "undecided": None}[verdict]
    reads = LimitSeen(of="reads", limit_ms=10, limit=10, value=value, seen=900, verdict=verdict)
    return LevelSeen(level=users, tried="first", verdict=verdict, backlog=backlog, limits=(reads,))


def searched(sound: RunSummary, variant="A", repeat=1, levels=LEVELS, outcome="found", holds=6, breaks=7) -> RunSummary:
    """A run that tried these levels, at ten transactions per second for every user."""
    run, steps, planned = one_run(sound, variant, 400, 1, repeat), [], []
    for number, (users, verdict) in enumerate(levels):
        name = f"{users} users ({number})"
        times = {"begin_s": number * 10, "measure_s": number * 10 + 2, "end_s": number * 10 + 9}
        planned.append(Step(name=name, users=users, searched=level(users, verdict), **times))
        step = run.steps[0]
        throughput = replace(step.throughput, tps=users * 10.0, primary=None, primary_tps=None)
        steps.append(replace(step, key=f"{variant}{repeat}-{number}", step=name, users=users, throughput=throughput))
    search = Search(load="bank", of="users", low=4, high=64, tolerance=0.1, outcome=outcome, holds=holds, breaks=breaks)
    return with_manifest(replace(run, steps=steps), search=search, steps=planned)
