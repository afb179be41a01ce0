"""The databases of what is asked for, recognised and built: one, or one for each of several workloads."""

import time
from collections.abc import Callable, Iterator
from functools import partial
from typing import Any, Protocol

from stallmark.engines.base import Engine
from stallmark.loaders import BatchShare, LoadPlan, Scale, ledger, load, loader_for
from stallmark.loaders.ledger import Entry
from stallmark.loaders.load import Buildable, BuildProgress, BuildResult, Recognition
from stallmark.schema import deploy
from stallmark.schema.ddl import Ddl


class BuildableParts(Buildable, Protocol):
    """A workload, or several: `parts` are those that may have a database each."""

    @property
    def parts(self) -> tuple[Buildable, ...]: ...


def databases(engine: Engine, workload: BuildableParts, scale: Scale) -> Iterator[tuple[Engine, Buildable, Scale]]:
    """Yield each database that Stallmark builds, with the workload that it is to hold, and in which scale."""
    if not engine.by_workload:
        if engine.is_local or not workload.is_given:
            yield engine, workload, scale
        return
    for part in workload.parts:
        database = engine.database_of(part.name)
        if engine.is_local or not part.is_given:
            yield database, part, loader_for(part.name).select_scale(scale)


def read_entry(engine: Engine, workload: BuildableParts) -> Entry:
    """Return the entry of all databases as loaded, once all are complete; that of a user's own database has its present
    size."""
    built = [database for database, _, _ in databases(engine, workload, {})]
    entries = [entry for database in built if (entry := ledger.read(database))]
    given = [part for part in workload.parts if engine.database_of(part.name) not in built]
    sizes = {database: database.bytes_used() for database in engine.databases() if database not in built}
    # Several workloads may share a database, whose size counts once.
    for part in given:
        size = sizes.pop(engine.database_of(part.name), 0)
        entries.append(ledger.user_data_entry(part.name, part.data_version, size))
    return ledger.merge_entries(entries, apart=bool(engine.by_workload))


def recognise(engine: Engine, workload: BuildableParts, scale: Scale, seed: int) -> Recognition:
    """Compare the databases with what is asked for; raise StallmarkError as `load.recognise` does."""
    recognitions = [load.recognise(*database_args, seed) for database_args in databases(engine, workload, scale)]
    states = {recognition.state for recognition in recognitions} or {"complete"}
    state = states.pop() if len(states) == 1 else "half-loaded"
    return Recognition(
        state,
        sum(recognition.batches for recognition in recognitions),
        sum(recognition.batches_total for recognition in recognitions),
    )


def missing(engine: Engine, workload: BuildableParts, scale: Scale, seed: int) -> float:
    """Return the share of what is wanted that is still to be loaded. Raise StallmarkError as `recognise` does."""
    with deploy.failing_in_words(engine, "Looking at the database"):
        recognition = recognise(engine, workload, scale, seed)
    return 0.0 if recognition.state == "complete" else 1 - recognition.batches / max(1, recognition.batches_total)


def foreign_object(engine: Engine, workload: BuildableParts) -> str | None:
    """Return one thing in any of the databases that is not ours, as `load.foreign_object` does."""
    foreign = (load.foreign_object(database, part) for database, part, _ in databases(engine, workload, {}))
    return next(filter(None, foreign), None)


def build(
    engine: Engine,
    workload: BuildableParts,
    scale: Scale,
    seed: int,
    *,
    workers: int,
    part: BatchShare | None = None,
    to_be_copied: bool = False,
    arrange: Callable[[str, Ddl], Ddl] = lambda _, ddl: ddl,
    progress: Callable[[BuildProgress], Any] = lambda _: None,
) -> BuildResult:
    """Build the databases one after the other, each as `load.build` does. `arrange` gets the workload whose tables it
    places. A `part` is a share of all databases' batches: the first databases may have too few for the last parts.
    Progress is shown for one database after the other.

    Raise StallmarkError as `load.build` does; too little space for all databases is reported before the first is begun.
    """
    build_one = partial(load.build, workers=workers, to_be_copied=to_be_copied)
    if not list(databases(engine, workload, scale)):  # a user's own database elsewhere
        return BuildResult("reused", True, 0, 0.0)
    if not engine.by_workload:
        arranged = partial(arrange, workload.name)
        return build_one(engine, workload, scale, seed, part=part, arrange=arranged, progress=progress)
    began, whole = time.monotonic(), _plan(workload, scale)
    whole.batches(part)
    with deploy.failing_in_words(engine, "Preparing the databases"):
        recognition = recognise(engine, workload, scale, seed)
        load.check_space(engine, workload, whole, recognition, to_be_copied, workers)
    results: list[BuildResult] = []
    for database, part_workload, own in databases(engine, workload, scale):
        share = part and part.share_of(len(_plan(part_workload, own).batches()))
        if part and not share:
            complete = load.recognise(database, part_workload, own, seed).state == "complete"
            results.append(BuildResult("reused", complete, 0, 0.0))
            continue
        arranged = partial(arrange, part_workload.name)
        results.append(build_one(database, part_workload, own, seed, part=share, arrange=arranged, progress=progress))
    outcomes = {result.outcome for result in results}
    cautions = dict.fromkeys(result.caution for result in results if result.caution)
    return BuildResult(
        outcomes.pop() if len(outcomes) == 1 else "continued",
        all(result.complete for result in results),
        sum(result.rows for result in results),
        time.monotonic() - began,
        " ".join(cautions) or None,
    )


def _plan(workload: Buildable, scale: Scale) -> LoadPlan:
    loader = loader_for(workload.name)
    return LoadPlan(loader.groups(loader.scale(scale)))
