"""Build a workload's database: created, continued where a build stopped, or reused as it is."""

import shlex
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any, Protocol

import pyarrow as pa

from stallmark import format
from stallmark.engines import sql_file
from stallmark.engines.base import Engine
from stallmark.errors import CallFailed, StallmarkError
from stallmark.loaders import Batch, BatchShare, Loader, LoadPlan, Scale, checked_seed, ledger, loader_for, worker
from stallmark.loaders.ledger import Identity
from stallmark.schema import deploy, parts_of, versions_in
from stallmark.schema.ddl import Ddl, ddl_of
from stallmark.schema.deploy import OWN_TABLES, Deployable, things_of_others

# Measure how compressible a loaded database is: compressible data flatters storage that compresses inline.


PAGES = 512  # sampled
SECTOR = 512  # bytes


def measure_compressibility(engine: Engine, schemas: Sequence[str]) -> float | None:
    """Return the LZ4 compression ratio of a sample of 8 KiB pages of the schemas' tables and indexes.

    Each page is compressed by itself, to no less than a sector. None if the server shows no pages (SQL Server
    does not), or not to this user."""
    if engine.dialect != "postgresql":
        return None
    text = sql_file.read(__package__, "sampled_pages.postgresql")
    engine.checkpoint()
    try:
        pages = [bytes(page) for (page,) in engine.query(text, (list(schemas), PAGES)) if page]
    except CallFailed:
        return None
    return round(ratio(pages), 2) if pages else None


def ratio(pages: list[bytes]) -> float:
    return sum(map(len, pages)) / sum(map(_packed_bytes, pages))


def _packed_bytes(page: bytes) -> int:
    return max(SECTOR, min(len(page), len(pa.compress(page, codec="lz4_raw", asbytes=True))))


class Buildable(Deployable, Protocol):
    """The part of a workload that a build needs (`transactions.workload.Workload` has it)."""

    @property
    def name(self) -> str: ...
    @property
    def data_version(self) -> int: ...
    @property
    def setup(self) -> str: ...
    @property
    def is_given(self) -> bool: ...


@dataclass(frozen=True)
class BuildProgress:
    """The progress of a build. After the load only `phase` and `done` change."""

    phase: str
    rows: int
    rows_total: int
    """The rows in the database once this build has loaded its part."""
    bytes: int
    """The bytes sent to the server."""
    done: float = 0.0
    """The share of the phase that is done."""


@dataclass(frozen=True)
class BuildResult:
    outcome: str  # created, continued, reused
    complete: bool  # false when other parts are still to be loaded
    rows: int  # loaded by this build
    seconds: float
    caution: str | None = None  # why it took longer than this engine needs


@dataclass(frozen=True)
class Recognition:
    """The state of the wanted database: absent, half-loaded or complete."""

    state: str
    batches: int
    batches_total: int

    def __str__(self) -> str:
        if self.state == "half-loaded":
            return (
                f"half-loaded: {self.batches:,} of {self.batches_total:,} batches are in; "
                "the same build again completes it"
            )
        return self.state


def recognise(engine: Engine, workload: Buildable, scale: Scale, seed: int) -> Recognition:
    """Compare the database with what is asked for.

    Raises StallmarkError, naming the difference, when it holds anything else.
    """
    loader = loader_for(workload.name)
    wanted = _identity(workload, loader, scale, seed)
    total = len(LoadPlan(loader.groups(wanted.scale)).batches())
    entries = ledger.read(engine)
    if entries is None:
        _refuse_foreign_things(engine, workload)
        return Recognition("absent", 0, total)
    if differences := entries.identity.differences(wanted):
        data = engine.directories().get("data")
        if entries.identity.is_of_another_version(wanted):
            remove = f"db remove {shlex.quote(str(data.parent))}" if data else "db remove --yes --server URL"
            raise StallmarkError(
                f"The database was built by {_versions(entries.identity, wanted)}: `stallmark {remove}` "
                "removes it, and then the same command builds it again."
            )
        drop = f"remove {data.parent}" if data else "drop this one"
        asking = "Ask for what it holds, name" if entries.identity.version == wanted.version else "Name"
        raise StallmarkError(
            f"The database holds another one than asked for: {'; '.join(differences)}. "
            f"{asking} another database, or {drop}."
        )
    return Recognition("complete" if entries.complete else "half-loaded", len(ledger.batches(engine)), total)


def _versions(stored: Identity, wanted: Identity) -> str:
    """Return the versions of the first workload whose differ: "data version 2 of the brokerage, and this Stallmark has
    3"."""
    parts = parts_of(stored.workload)
    # A number this large is the hash of a user's setup.sql, in which no part has a version of its own.
    if max(stored.version, wanted.version) >= 100 ** len(parts):
        return "another setup.sql than the folder has now"
    versions = zip(parts, *(versions_in(identity.version, len(parts)) for identity in (stored, wanted)), strict=True)
    name, theirs, ours = next(version for version in versions if version[1] != version[2])
    return f"data version {theirs} of the {name}, and this Stallmark has {ours}"


def foreign_object(engine: Engine, workload: Buildable) -> str | None:
    """Return one thing in the database that belongs neither to the workload nor to the ledger, as schema.name.

    None if this login sees nothing of the kind.
    """
    return next(iter(things_of_others(engine.schemas_in_use(), engine.dialect, workload)), None)


def expected_bytes(dialect: str, workload: Buildable, scale: Scale) -> int:
    """Estimate what the tables and their keys will take once they are loaded."""
    loader = loader_for(workload.name)
    plan = LoadPlan(loader.groups(loader.scale(scale)))
    return plan.estimate(workload.metadata, dialect).data_bytes


def build(
    engine: Engine,
    workload: Buildable,
    scale: Scale,
    seed: int,
    *,
    workers: int,
    part: BatchShare | None = None,
    to_be_copied: bool = False,
    arrange: Callable[[Ddl], Ddl] = lambda ddl: ddl,
    progress: Callable[[BuildProgress], Any] = lambda _: None,
) -> BuildResult:
    """Build the requested database, or raise StallmarkError with the reason.

    The missing batches (of `part`) are loaded by `workers` processes; the build that finds all batches loaded also
    makes keys, procedures and statistics. Reasons to fail are another database, too small a disk (with space for a copy
    if the database is `to_be_copied`), or a failed batch. The build may be killed at any moment and called again.
    `arrange` places tables and keys on the server.
    """
    if workers < 1:
        raise StallmarkError(f"A build needs at least one loader process, not {workers}.")
    started = time.monotonic()
    loader = loader_for(workload.name)
    identity = _identity(workload, loader, scale, seed)
    plan = LoadPlan(loader.groups(identity.scale))
    wanted = plan.batches(part)
    last = BuildProgress("load", 0, sum(plan.rows.values()), 0)

    def follow(now: BuildProgress) -> None:
        nonlocal last
        last = now
        progress(now)

    def waiting() -> None:
        follow(replace(last, phase="waiting for another build"))

    with deploy.failing_in_words(engine, "Preparing the database"), deploy.exclusive(engine, waiting):
        recognition = recognise(engine, workload, scale, seed)
        engine.note_content({"workload": identity.workload, "scale": dict(identity.scale), "seed": identity.seed})
        if recognition.state == "complete":
            return BuildResult("reused", True, 0, time.monotonic() - started)
        loader.ready()
        if reason := engine.unfit():
            raise StallmarkError(reason)
        check_space(engine, workload, plan, recognition, to_be_copied, workers)
        ddl = arrange(ddl_of(workload.metadata))
        _prepare(engine, ddl, identity, recognition)
    rows, limited = _load(engine, workload, identity, plan, workers, wanted, follow)
    with deploy.failing_in_words(engine, "Finishing the database"), deploy.exclusive(engine, waiting):
        complete = _finish(engine, workload, ddl, plan, workers, follow)
    outcome = "created" if recognition.state == "absent" else "continued"
    caution = f"Bulk copy was not used: {limited}" if limited else None
    return BuildResult(outcome, complete, rows, time.monotonic() - started, caution)


def _prepare(engine: Engine, ddl: Ddl, identity: Identity, recognition: Recognition) -> None:
    deploy.create_tables(engine, OWN_TABLES)
    if recognition.state == "absent":
        if engine.backup:
            # The copy is of another database than the one that begins here.
            engine.backup.drop()
        ledger.write(engine, identity)
    deploy.create_tables(engine, ddl.tables)


def _load(
    engine: Engine,
    workload: Buildable,
    identity: Identity,
    plan: LoadPlan,
    workers: int,
    wanted: Sequence[Batch],
    progress: Callable[[BuildProgress], Any],
) -> tuple[int, str | None]:
    """Load what is missing; return the rows, and why they were written slowly, if they were."""
    done = ledger.batches(engine)
    missing = [batch for batch in wanted if batch not in done]
    before = sum(rows for rows, _ in done.values())
    sent = sum(sent for _, sent in done.values())
    rows, limited = 0, None
    total = before + plan.rows_in(missing)
    progress(BuildProgress("load", before, total, sent))
    for loaded in worker.load_batches(engine, workload.name, identity.seed, identity.scale, missing, workers):
        rows += loaded.rows
        sent += loaded.bytes
        limited = limited or loaded.limited
        progress(BuildProgress("load", before + rows, total, sent))
    return rows, limited


def _finish(
    engine: Engine,
    workload: Buildable,
    ddl: Ddl,
    plan: LoadPlan,
    workers: int,
    progress: Callable[[BuildProgress], Any],
) -> bool:
    """Make keys, procedures and statistics if all batches are loaded; return True if they are."""
    loaded = ledger.batches(engine)
    if not set(plan.batches()) <= loaded.keys():
        return False
    entry = ledger.read(engine)
    if not (entry and entry.complete):  # another part may have made them just before
        total = sum(plan.rows.values())
        sent = sum(size for _, size in loaded.values())
        setup = workload.setup if engine.is_local else ""  # a user's own server has its data already
        procedures = "\nGO\n".join(filter(None, (setup, workload.procedures(engine.dialect))))
        deploy.finish(
            engine,
            ddl,
            procedures,
            rows=plan.rows,
            workers=workers,
            step=lambda phase, done: progress(BuildProgress(phase, total, total, sent, done)),
        )
        ledger.note_complete(engine, measure_compressibility(engine, deploy.schemas_of(workload.metadata)))
    return True


def _identity(workload: Buildable, loader: Loader, scale: Scale, seed: int) -> Identity:
    decided_by = checked_seed(seed) if loader.seeded else 0
    return Identity(workload.name, workload.data_version, loader.scale(scale), decided_by, dict(loader.options))


def _refuse_foreign_things(engine: Engine, workload: Buildable) -> None:
    used = engine.schemas_in_use()
    for schema in deploy.schemas_of(workload.metadata):
        if names := used.get(schema):
            raise StallmarkError(
                f"The database has things in schema {schema!r} that Stallmark did not make ({names[0]}, …): "
                "name another database, or drop that schema yourself."
            )


def check_space(
    engine: Engine, workload: Buildable, plan: LoadPlan, recognition: Recognition, to_be_copied: bool, workers: int
) -> None:
    """Refuse a load that is too large for the disk; accept it if the server does not report free space."""
    free = engine.free_bytes()
    if free is None:
        return
    sizes = plan.estimate(workload.metadata, engine.dialect, workers)
    needed, when = sizes.build_bytes, "while it is built"
    if to_be_copied and engine.backup:
        both = sizes.loaded_bytes + engine.backup.copy_bytes(sizes.loaded_bytes)
        if both > needed:
            needed, when = both, "with the copy that every run starts from"
    missing = needed - sizes.heap_bytes * recognition.batches // max(1, recognition.batches_total)
    if missing > free:
        raise StallmarkError(
            f"The disk is too small: the database needs about {format.size(missing)} {when}, "
            f"{format.size(free)} are free. "
            "Choose a smaller scale, free some space, or place the data on another disk."
        )
