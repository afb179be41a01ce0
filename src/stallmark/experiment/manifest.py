"""The manifest of a run: everything that decides its figures, and no secret."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any

import stallmark
from stallmark.analysis.read.queries import PHASES
from stallmark.collectors.base import Collector
from stallmark.driver.timeline import Timeline
from stallmark.engines.base import Engine
from stallmark.loaders.ledger import Entry
from stallmark.record import machine
from stallmark.record.manifest import Manifest
from stallmark.record.manifest.course import Collector as RecordedCollector
from stallmark.record.manifest.part import now
from stallmark.record.manifest.scenario import Scenario as RecordedScenario
from stallmark.record.manifest.scenario import Variant as RecordedVariant
from stallmark.record.manifest.server import Database, Memory, Server
from stallmark.record.manifest.storage import Array, Device, Devices, EmulatedArray, HookResult, Precondition
from stallmark.record.manifest.workload import ConcurrentStreams, Follows, Queries, Step
from stallmark.record.manifest.workload import Transaction as RecordedTransaction
from stallmark.record.manifest.workload import Workload as RecordedWorkload
from stallmark.scenarios.model import AnyScenario, QueryScenario, Scenario, Variant
from stallmark.scenarios.service_level import described as described_slo
from stallmark.storage.describe import describe
from stallmark.transactions.workload import Transaction, Workload


@dataclass(frozen=True)
class Place:
    """The place of a run in its experiment, in the manifest's words."""

    experiment: str
    sequence: int
    repeat: int
    block: int
    again: bool = False
    resumed_after_s: float | None = None


@dataclass(frozen=True)
class Work:
    """The work of a run: what its users or its streams of queries are to do. A phase of queries becomes a step when it
    has ended."""

    workload: RecordedWorkload
    steps: tuple[Step, ...] = ()
    queries: Queries | None = None
    concurrent_streams: ConcurrentStreams | None = None


@dataclass(frozen=True)
class PreparedStorage:
    """The storage that a variant is to run on: the array as the scenario describes it, and what was done to it."""

    array: Array | None = None
    hook: HookResult | None = None
    precondition: Precondition | None = None


def manifest(
    scenario: AnyScenario,
    variant: Variant,
    *,
    place: Place,
    work: Work,
    storage: PreparedStorage,
    engine: Engine,
    memory: Memory,
    loaded: Entry,
    collectors: Sequence[Collector],
    notes: Sequence[str],
) -> Manifest:
    """Describe a run that is about to begin."""
    identity, settings = engine.identity(), engine.settings()
    return Manifest(
        kind="queries" if work.queries else "transactions",
        experiment=place.experiment,
        sequence=place.sequence,
        repeat=place.repeat,
        block=place.block,
        again=place.again,
        resumed_after_s=place.resumed_after_s,
        stallmark=stallmark.__version__,
        started=now(),
        scenario=RecordedScenario(**scenario.model_dump(mode="json")),
        variant=RecordedVariant(**variant.model_dump(mode="json")),
        server=Server(
            product=identity.product,
            version=identity.version_text,
            settings=settings.configuration,
            placement=settings.placement,
            momentary=settings.momentary,
            unreadable=settings.unreadable,
            at_own_address=machine.has_address(engine.login().host),
        ),
        memory=memory,
        database=Database(bytes_before=engine.bytes_used(), compressibility=loaded.compressibility),
        cache_start=scenario.start_cache,
        reset=scenario.reset,
        service_level=described_slo(scenario.slo) if scenario.slo else None,
        devices=devices_of(engine),
        collectors={collector.name: _describe(collector) for collector in collectors},
        machine=machine.facts(),
        workload=work.workload,
        steps=work.steps,
        queries=work.queries,
        concurrent_streams=work.concurrent_streams,
        array=storage.array,
        hook=storage.hook,
        precondition=storage.precondition,
        notes=tuple(notes),
    )


def of_load(scenario: Scenario, workload: Workload, streams: int) -> Work:
    """Describe what users do, and when, and how many `streams` of queries run at the same time."""
    timeline = scenario.timeline()
    concurrent = None
    if scenario.concurrent_streams:
        concurrent = ConcurrentStreams(streams=streams, timeout_s=scenario.concurrent_streams.timeout)
    return Work(_workload(scenario, workload, timeline), steps_of(timeline), concurrent_streams=concurrent)


def of_queries(scenario: QueryScenario, workload: Workload, dops: Sequence[int | None]) -> Work:
    """Describe what streams do. `dops`: those that queries are to have, None as the server is set."""
    choice, asked = scenario.workload, scenario.queries
    return Work(
        RecordedWorkload(name=choice.name, scale=choice.scale, seed=choice.seed, version=workload.version),
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


def _workload(scenario: Scenario, workload: Workload, timeline: Timeline) -> RecordedWorkload:
    """Describe the workload, without `opening` and `counted`: these are known only when the database is ready."""
    choice = scenario.workload
    return RecordedWorkload(
        name=choice.name,
        scale=choice.scale,
        seed=choice.seed,
        mix=choice.mix,
        locality=choice.locality,
        version=workload.version,
        transactions=tuple(_transactions(workload, choice.deck())),
        primary=workload.users.primary.name if workload.users.primary else None,
        nominal_rate=workload.users.nominal_rate(choice.scale),
        background_sessions=timeline.all_background_sessions([timeline.executors()]),
    )


def _transactions(workload: Workload, deck: Mapping[str, int]) -> Iterator[RecordedTransaction]:
    """Describe what may happen in a run. `cards` of those that others give rise to: how many come of one whole deck."""

    def described(kind: type[Transaction], **more: Any) -> RecordedTransaction:
        return RecordedTransaction(name=kind.name, limit_s=kind.limit_s, reads_only=kind.reads_only, **more)

    for kind in workload.users.deck:
        yield described(kind, source="users", cards=deck[kind.name])
    for kind, (of, each) in workload.background.followers.items():
        follows = Follows(transaction=of.name, each=each)
        yield described(kind, source="followers", cards=round(deck[of.name] * each, 2), follows=follows)
    for kind, every_s in workload.background.timers.items():
        yield described(kind, source="timer", every_s=every_s)


def steps_of(timeline: Timeline) -> tuple[Step, ...]:
    arrivals = timeline.arrivals
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


def _describe(collector: Collector) -> RecordedCollector:
    why = collector.unavailable()
    return RecordedCollector(
        title=collector.title,
        help=collector.help,
        interval_s=collector.interval_s,
        unavailable=why,
        limited=None if why else collector.limited(),
    )


def devices_of(engine: Engine) -> Devices:
    """Describe what data and log of a server of ours lie on; nothing for a server that is not ours."""
    folders = engine.directories()
    found = {name: describe(folder) for name, folder in folders.items()}
    for name, model in engine.devices.models.items():
        found[name] = Device(emulated_array=EmulatedArray(**asdict(model)))
    lay = {name: str(folder) for name, folder in folders.items()}
    built_in = {name: str(folder) for name, folder in engine.built_in().items()}
    return Devices.model_validate({"folders": lay, "built_in": built_in, **found})
