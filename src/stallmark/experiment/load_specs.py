"""The users of a variant's loads, as the driver is told of them."""

from collections.abc import Sequence

import msgspec

from stallmark.analysis.read.driver_tables import PERCENTILES
from stallmark.analysis.thresholds import parse_threshold
from stallmark.driver.load import LoadSpec, background_sessions, executors
from stallmark.driver.searched_load import SearchPlan, TransactionLimit
from stallmark.engines.base import Engine
from stallmark.record.manifest.workload import application
from stallmark.scenarios.load import StreamsLoad, UsersLoad, described, transactions_of
from stallmark.scenarios.model import Scenario, TimedScenario, Variant


def load_specs(scenario: TimedScenario, variant: Variant, repeat: int = 1) -> list[LoadSpec]:
    """Return the loads of a variant that have users; each cell of one is a load of its own."""
    steps, seed = scenario.steps_of(variant), scenario.contents.seed
    searched = scenario.searched_of(variant)
    first = searched.times if searched else 1.0
    specs = []
    for name, load in scenario.loads_of(variant).items():
        if not isinstance(load, UsersLoad):
            continue
        choice = load.choice(seed)
        running = [step.counts.get(name, 0) // (step.cells or 1) for step in steps]
        spec = LoadSpec(
            name=name,
            workload=choice.name,
            scale=dict(scenario.scale_of(choice)),
            deck=choice.deck(),
            users=tuple(running),
            at_most=load.most_users,
            seed=seed,
            call_timeout_s=load.call_timeout,
            arrivals=load.arrival_plan().times(first),
            background_per_user=load.background_per_user(),
            locality=load.locality,
            repeat=repeat,
            cells=scenario.most_cells,
            application="stallmark-user" if isinstance(scenario, Scenario) else application("users", name),
        )
        for cell in range(1, scenario.most_cells + 1):
            here = (n if cell <= (step.cells or 1) else 0 for n, step in zip(running, steps, strict=True))
            specs.append(msgspec.structs.replace(spec, cell=cell, users=tuple(here)))
    return specs


def placed(specs: Sequence[LoadSpec], engine: Engine) -> list[LoadSpec]:
    """Return the loads with the database that each has of its own, where they have one."""
    if not engine.by_workload:
        return list(specs)
    names = {workload: one.database_name() for workload, one in engine.by_workload.items()}
    return [msgspec.structs.replace(one, database=names[one.workload]) for one in specs]


def search_plan(scenario: TimedScenario, variant: Variant) -> SearchPlan | None:
    """Return the plan of the search for a ceiling; None where there is none."""
    if not (searched := scenario.searched_of(variant)):
        return None
    return SearchPlan(
        searched.load,
        searched.search.asked(),
        described(searched.slo).read_ms,
        tuple(
            TransactionLimit(rule.transaction, rule.metric, 1 - PERCENTILES[rule.metric], rule.limit)
            for rule in map(parse_threshold, transactions_of(searched.slo))
        ),
        scenario.ramp,
        scenario.longest_warm_up_s,
        scenario.measure,
        searched.rates,
    )


def most_sessions(scenario: TimedScenario, machines: int = 1) -> tuple[int, int, int]:
    """Return the `sessions` of the variant that has most of them together."""
    return max((sessions(scenario, one, machines) for one in scenario.variants), key=sum)


def sessions(scenario: TimedScenario, variant: Variant, machines: int) -> tuple[int, int, int]:
    """Return the most users, background sessions and streams of queries that a variant's runs have at once."""
    specs, steps, loads = load_specs(scenario, variant), scenario.steps_of(variant), scenario.loads_of(variant)
    background = sum(background_sessions(specs, [executors(specs, machines)] * machines).values())
    searched = [load for load in loads.values() if isinstance(load, UsersLoad) and load.search]
    more = sum(load.most_users - load.counts[0] for load in searched)
    users = max(step.users for step in scenario.timeline(variant).steps) + more
    streams = max(
        sum(count for name, count in step.counts.items() if isinstance(loads[name], StreamsLoad)) for step in steps
    )
    return users, background, streams
