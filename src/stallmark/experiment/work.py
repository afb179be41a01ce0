"""The work of a run: its loads, for the driver and for the manifest."""

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import msgspec

from stallmark.analysis.rules import parse_threshold
from stallmark.driver.load import LoadSpec, Timeline, background_sessions, executor_counts
from stallmark.driver.pacing import Arrivals
from stallmark.driver.searched_load import SearchPlan, TransactionLimit
from stallmark.engines.base import Engine
from stallmark.record.manifest import Manifest
from stallmark.record.manifest.workload import PHASES, Follows, Queries, Search, Step, application
from stallmark.record.manifest.workload import Load as RecordedLoad
from stallmark.record.manifest.workload import Statement as RecordedStatement
from stallmark.record.manifest.workload import Transaction as RecordedTransaction
from stallmark.record.manifest.workload import Workload as RecordedWorkload
from stallmark.redact import sql_without_secrets
from stallmark.scenarios.load import Load, RawLoad, StreamsLoad, UsersLoad, transactions_of
from stallmark.scenarios.load import objective as described_slo
from stallmark.scenarios.model import QueryScenario, Scenario, TimedScenario, Variant, WorkloadChoice
from stallmark.scenarios.timed import PlannedStep
from stallmark.stats.thresholds import PERCENTILES
from stallmark.transactions import find_workload
from stallmark.transactions.workload import Transaction, Workload

# The users of a variant's loads, as the driver is told of them.

MostUsers = Callable[[int], int]
"""A function that returns the most users that there may be, of all loads together, if so many are planned."""


def as_planned(users: int) -> int:
    """Return the same number: nobody changes it by hand."""
    return users


def load_specs(
    scenario: TimedScenario, variant: Variant, repeat: int = 1, most_users: MostUsers = as_planned
) -> list[LoadSpec]:
    """Return the loads of a variant that have users, prepared for the most that there may be; each cell of one is a
    load of its own."""
    steps, seed = scenario.steps_of(variant), scenario.contents.seed
    planned = max(step.users for step in scenario.timeline(variant).steps)
    larger = max(1.0, most_users(planned) / planned) if planned else 1.0
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
            at_most=math.ceil(load.most_users * larger),
            seed=seed,
            call_timeout_s=load.call_timeout,
            arrivals=load.arrival_plan().times(first),
            background_per_user=load.background_per_user(),
            locality=load.locality,
            repeat=repeat,
            cells=scenario.most_cells,
            definition=find_workload(choice.name).definition,  # type: ignore[arg-type]
            application="stallmark-user" if isinstance(scenario, Scenario) else application("users", name),
        )
        for cell in range(1, scenario.most_cells + 1):
            here = (n if cell <= (step.cells or 1) else 0 for n, step in zip(running, steps, strict=True))
            specs.append(msgspec.structs.replace(spec, cell=cell, users=tuple(here)))
    return specs


def with_databases(specs: Sequence[LoadSpec], engine: Engine) -> list[LoadSpec]:
    """Return the loads with the database that each has of its own, where they have one."""
    if not engine.by_workload:
        return list(specs)
    names = {workload: database.database_name() for workload, database in engine.by_workload.items()}
    return [msgspec.structs.replace(spec, database=names[spec.workload]) for spec in specs]


def search_plan(scenario: TimedScenario, variant: Variant) -> SearchPlan | None:
    """Return the plan of the search for a ceiling, or None."""
    if not (searched := scenario.searched_of(variant)):
        return None
    return SearchPlan(
        searched.load,
        searched.search.spec(),
        described_slo(searched.slo).read_ms,
        tuple(
            TransactionLimit(rule.transaction, rule.metric, 1 - PERCENTILES[rule.metric], rule.limit)
            for rule in map(parse_threshold, transactions_of(searched.slo))
        ),
        scenario.ramp,
        scenario.longest_warm_up_s,
        scenario.measure,
        searched.rates,
    )


def most_sessions(
    scenario: TimedScenario, machines: int = 1, most_users: MostUsers = as_planned
) -> tuple[int, int, int]:
    """Return the `sessions` of the variant that has most of them together."""
    return max((sessions(scenario, planned, machines, most_users) for planned in scenario.variants), key=sum)


def sessions(
    scenario: TimedScenario, variant: Variant, machines: int, most_users: MostUsers = as_planned
) -> tuple[int, int, int]:
    """Return the most users, background sessions and streams of queries that a variant's runs have at once."""
    specs = load_specs(scenario, variant, most_users=most_users)
    steps, loads = scenario.steps_of(variant), scenario.loads_of(variant)
    background = sum(background_sessions(specs, [executor_counts(specs, machines)] * machines).values())
    searched = [load for load in loads.values() if isinstance(load, UsersLoad) and load.search]
    more = sum(load.most_users - load.counts[0] for load in searched)
    users = max(step.users for step in scenario.timeline(variant).steps) + more
    streams = max(
        sum(count for name, count in step.counts.items() if isinstance(loads[name], StreamsLoad)) for step in steps
    )
    return max(users, most_users(users)), background, streams


MOST_TEXT = 1_000
"""Maximum characters of a statement's text in the manifest. The scenario in the manifest has the whole text."""

# The work of a run in the manifest's words: what its loads do and when, or what its streams of queries are asked.


@dataclass(frozen=True)
class Work:
    """The work of a run: what its users or its streams of queries are to do. A phase of queries becomes a step when it
    has ended."""

    workload: RecordedWorkload
    steps: tuple[Step, ...] = ()
    queries: Queries | None = None
    loads: tuple[RecordedLoad, ...] = ()
    search: Search | None = None


def work_of_loads(scenario: TimedScenario, variant: Variant, dialect: str, most_users: MostUsers = as_planned) -> Work:
    """Describe the loads of a variant on a server of that dialect, and when each of them runs."""
    steps = scenario.steps_of(variant)
    specs = load_specs(scenario, variant, most_users=most_users)
    background = background_sessions(specs, [executor_counts(specs)])
    loads = [
        _load(scenario, name, load, steps, background.get(name, 0), dialect)
        for name, load in scenario.loads_of(variant).items()
    ]
    timeline = scenario.timeline(variant)
    if isinstance(scenario, Scenario):
        [described], [load] = loads, scenario.loads_of(variant).values()
        assert described.workload
        return Work(described.workload, steps_of(timeline, load.arrival_plan()), search=_search(scenario, variant))
    return Work(
        _workload_facts(scenario.contents, scenario.contents.scale),
        tuple(
            step.changed(
                alone=planned.alone,
                cells=planned.cells,
                # Of users in an open loop nobody knows whether they wait for an arrival or are held up.
                arrivals=next(
                    (
                        load.arrivals
                        for load in loads
                        if load.kind == "users" and load.counts[index] and load.arrivals != "closed"
                    ),
                    "closed",
                ),
                streams=sum(load.counts[index] for load in loads if load.kind == "streams"),
            )
            for index, (step, planned) in enumerate(zip(steps_of(timeline, Arrivals()), steps, strict=True))
        ),
        loads=tuple(loads),
        search=_search(scenario, variant),
    )


def _search(scenario: TimedScenario, variant: Variant) -> Search | None:
    if not (searched := scenario.searched_of(variant)):
        return None
    search = searched.search
    return Search(load=searched.load, of=search.of, low=search.from_, high=search.to, tolerance=search.tolerance)


def _workload_facts(choice: WorkloadChoice, scale: Mapping[str, int | float]) -> RecordedWorkload:
    """Return the facts of a chosen workload that do not depend on its load."""
    workload = find_workload(choice.name)
    return RecordedWorkload(
        name=choice.name,
        scale=dict(scale),
        seed=choice.seed,
        version=workload.version,
        derived_from=workload.derived_from,
    )


def _load(
    scenario: TimedScenario, name: str, load: Load, steps: Sequence[PlannedStep], background_sessions: int, dialect: str
) -> RecordedLoad:
    common: dict[str, Any] = {
        "name": name,
        "counts": tuple(step.counts.get(name, 0) for step in steps),
        "cells": scenario.most_cells,
        "service_level": described_slo(slo) if (slo := load.slo or scenario.slo) else None,
    }
    if isinstance(load, RawLoad):
        return RecordedLoad(kind="raw", raw=load.plan(), **common)
    arrivals, choice = load.arrival_plan(), load.choice(scenario.contents.seed)
    common |= {"arrivals": arrivals.kind, "rate": arrivals.rate}
    scale = dict(scenario.scale_of(choice))
    if isinstance(load, StreamsLoad):
        return RecordedLoad(kind="streams", workload=_workload_facts(choice, scale), timeout_s=load.timeout, **common)
    workload = find_workload(choice.name)
    return RecordedLoad(
        kind="users",
        think_ms=arrivals.think_ms,
        timeout_s=load.call_timeout,
        thresholds=tuple(load.thresholds),
        workload=_workload_facts(choice, scale).changed(
            mix=choice.mix,
            locality=choice.locality,
            transactions=tuple(_transactions(workload, choice.deck())),
            statements=tuple(
                RecordedStatement(
                    name=name, transaction=transaction, line=line, text=sql_without_secrets(text)[:MOST_TEXT]
                )
                for name, transaction, line, text, _ in workload.statements(dialect)
            ),
            primary=workload.users.primary.name if workload.users.primary else None,
            nominal_rate=workload.users.nominal_rate(scale),
            background_sessions=background_sessions,
        ),
        **common,
    )


def on_machines(manifest: Manifest, sessions: Mapping[str, int]) -> dict[str, Any]:
    """Return the changes of a manifest by load machines: the background sessions of each load, by name."""
    if not manifest.loads:
        return {"workload": manifest.workload.changed(background_sessions=sum(sessions.values()))}
    return {
        "loads": tuple(
            load.changed(workload=load.workload.changed(background_sessions=sessions[load.name]))
            if load.workload and load.name in sessions
            else load
            for load in manifest.loads
        )
    }


def work_of_queries(scenario: QueryScenario, dops: Sequence[int | None]) -> Work:
    """Describe what streams do. `dops`: those that queries are to have, None as the server is set."""
    choice, asked = scenario.workload, scenario.queries
    return Work(
        _workload_facts(choice, choice.scale),
        queries=Queries(
            run=asked.run,
            phases=tuple(asked.phases),
            streams=scenario.streams if "throughput" in asked.phases else None,
            refresh=asked.refreshes,
            dops=tuple(dops),
            timeout_s=asked.timeout,
        ),
    )


def phase_step(name: str, streams: int, began_s: float, ended_s: float) -> Step:
    """Describe a phase that has ended as a step: with the seconds over which the server's counters are taken."""
    return Step(name=PHASES[name], phase=name, users=streams, begin_s=began_s, measure_s=began_s, end_s=ended_s)


def _transactions(workload: Workload, deck: Mapping[str, int]) -> Iterator[RecordedTransaction]:
    """Describe the transactions of a run. For transactions caused by others, `cards` is their number per deck."""

    def record_transaction(kind: type[Transaction], **more: Any) -> RecordedTransaction:
        return RecordedTransaction(name=kind.name, limit_s=kind.limit_s, reads_only=kind.reads_only, **more)

    for kind in workload.users.deck:
        yield record_transaction(kind, source="users", cards=deck[kind.name])
    for kind, (kind_of_user, share) in workload.background.followers.items():
        follows = Follows(transaction=kind_of_user.name, each=share)
        yield record_transaction(
            kind, source="followers", cards=round(deck[kind_of_user.name] * share, 2), follows=follows
        )
    for kind, every_s in workload.background.timers.items():
        yield record_transaction(kind, source="timer", every_s=every_s)
    for kind, per_s in workload.background.rates.items():
        yield record_transaction(kind, source="rate", every_s=1 / per_s)


def steps_of(timeline: Timeline, arrivals: Arrivals) -> tuple[Step, ...]:
    """Describe the steps of a timeline whose users all start their transactions so."""
    return tuple(
        Step(
            name=step.name,
            users=step.users,
            begin_s=step.begin_s,
            measure_s=step.measure_s,
            end_s=step.end_s,
            arrivals=arrivals.kind,
            rate=arrivals.rate,
            think_ms=arrivals.think_ms,
        )
        for step in timeline.steps
    )
