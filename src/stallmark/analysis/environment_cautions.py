"""Cautions that come from the system under test. From its storage and the data on it: the array, time above the device,
a short history. From its server, and from counts of I/O that its device did not confirm."""

from collections.abc import Callable, Collection, Iterator, Sequence
from dataclasses import dataclass
from typing import Literal

from stallmark.analysis.compare.settings import drifts, folders_on_one_disk, one_pool, probe_on_other_device, probes_of
from stallmark.analysis.finding import Finding, Kind, caution
from stallmark.analysis.metrics import group, step_names
from stallmark.analysis.probe_comparison import DRIFTED
from stallmark.analysis.read.server_io import AUTOVACUUM
from stallmark.analysis.read.server_state import LogState, ServerState
from stallmark.analysis.read.server_summary import IoSummary, combine_io
from stallmark.analysis.run import RunSummary
from stallmark.analysis.step_summary import StepSummary
from stallmark.format import difference
from stallmark.record.devices import dram_of, flash_of, is_data_emulated
from stallmark.record.manifest import Manifest
from stallmark.record.manifest.course import Server
from stallmark.record.manifest.storage import IoLimit, Role
from stallmark.record.manifest.workload import TradeHistory
from stallmark.stats.thresholds import (
    ABOVE,
    AUTOVACUUM_READS,
    AUTOVACUUM_WRITES,
    COUNTS_AGREE,
    DEEP_BYTES,
    DEEP_CUSTOMERS,
    DEVICE_FREE,
    FOREIGN_FLOOR_PER_S,
    NODES_APART,
    PROBE_SMALL_BYTES,
    SHALLOW_DAYS,
)

# The caution on steps whose time in storage was above the device: before an I/O reached the device's own counters.


class AboveKind(Kind):
    ABOVE = "io_above_device"


def above_device(runs: Sequence[RunSummary]) -> list[Finding]:
    """Return a caution for each set of limits on the server's I/O under which steps waited above the device: first the
    one under which they waited most."""
    return sorted(_by_limits(runs), key=lambda finding: -max(finding.facts["share"]))


def _by_limits(runs: Sequence[RunSummary]) -> Iterator[Finding]:
    steps = [step for run in runs for step in run.steps]
    for same in group(runs, _limits):
        waited = [step for run in same for step in run.steps if _waited_above(step)]
        if not waited:
            continue
        shares = [step.budget.above_share for step in waited if step.budget]
        yield caution(
            AboveKind.ABOVE,
            steps=step_names(waited, steps),
            share=[min(shares), max(shares)],
            limits=[limit.model_dump() for limit in _limits(same[0])],
        )


def _limits(run: RunSummary) -> tuple[IoLimit, ...]:
    roles: tuple[Role, ...] = ("data", "wal")
    return tuple(dict.fromkeys(limit for role in roles for limit in run.manifest.devices.for_role(role).limits))


def _waited_above(step: StepSummary) -> bool:
    budget = step.budget
    return budget is not None and budget.storage_share > DEVICE_FREE and budget.above_share > ABOVE


# The caution on a brokerage whose history of trades is too short to judge memory or flash by.

Varied = Literal["memory", "flash"]


class HistoryKind(Kind):
    SHALLOW = "shallow_history"


def shallow_histories(manifests: Sequence[Manifest]) -> Iterator[Finding]:
    """Yield a caution for each scale on which memory or flash was varied and the history is too short for it."""
    for same in group(manifests, lambda manifest: manifest.workload.history):
        if shallow := shallow_history(same[0].workload.history, _varied_layers(same), same[0].server.product):
            yield shallow


def shallow_history(history: TradeHistory | None, varied: Sequence[Varied], product: str) -> Finding | None:
    """Return the caution, or None if the history is deep enough, or nothing is `varied` that is judged by it."""
    if history is None or history.days >= SHALLOW_DAYS or not varied:
        return None
    return caution(
        HistoryKind.SHALLOW,
        customers=history.customers,
        days=history.days,
        trades_per_account=history.trades_per_account,
        varied=list(varied),
        least_days=SHALLOW_DAYS,
        with_customers=DEEP_CUSTOMERS,
        least_bytes=DEEP_BYTES.get(product),
    )


def _varied_layers(manifests: Sequence[Manifest]) -> list[Varied]:
    first, *others = manifests
    # Of a memory curve there may be one size so far.
    memory = isinstance(first.scenario.buffer_pool, dict) or not all(one_pool(first, other) for other in others)
    flash = len({tuple(flash_of(manifest)) for manifest in manifests}) > 1
    return [*(["memory"] if memory else []), *(["flash"] if flash else [])]  # type: ignore[list-item]


# Cautions that come from the storage itself: the active set, flash, and changes of storage during an experiment.


class ArrayKind(Kind):
    ACTIVE = "active_set"
    SIZE_UNKNOWN = "array_size_unknown"
    FLASH_WARMING = "flash_warming_up"
    SMALL_PROBE = "probe_fits_into_an_array"
    NOT_PRECONDITIONED = "not_preconditioned"
    DRIFTED = "storage_changed"


def array_cautions(runs: Sequence[RunSummary]) -> Iterator[Finding]:
    yield from _active(runs)
    yield from _unknown_array_sizes(runs)
    yield from _warming(runs)
    yield from _small_probes(runs)
    yield from folders_on_one_disk(runs)
    for run in runs:
        if mixed := probe_on_other_device(run):
            yield mixed
        conditioned = run.manifest.precondition
        if conditioned and not conditioned.steady:
            rounds_ms = conditioned.rounds_ms
            yield caution(
                ArrayKind.NOT_PRECONDITIONED,
                run=run.title,
                file_bytes=conditioned.size_bytes,
                rounds=len(rounds_ms),
                write_ms=[rounds_ms[0], rounds_ms[-1]],
            )
    for same in group(runs, lambda run: run.manifest.variant.name):
        for between, drift in drifts(same):
            if drift.verdict == DRIFTED:
                yield caution(ArrayKind.DRIFTED, between=list(between), how=drift.finding)


def _unknown_array_sizes(runs: Sequence[RunSummary]) -> Iterator[Finding]:
    """Warn where hooks reconfigure real arrays between variants, and no size of DRAM or flash is known."""
    arrays = [run.manifest for run in runs if not is_data_emulated(run.manifest)]
    if any(array.hook for array in arrays) and not any(dram_of(array) or flash_of(array) for array in arrays):
        yield caution(ArrayKind.SIZE_UNKNOWN)


def _warming(runs: Sequence[RunSummary]) -> Iterator[Finding]:
    steps = [step for run in runs for step in run.steps]
    if warming := [step for step in steps if step.flash_warming]:
        yield caution(ArrayKind.FLASH_WARMING, steps=step_names(warming, steps))


def _small_probes(runs: Sequence[RunSummary]) -> Iterator[Finding]:
    """Warn of small files if the array's memory is unknown; else each comparison of probes states what memory may
    hide."""
    unknown = [run for run in runs if dram_of(run.manifest) is None]
    sizes = [probe.file_bytes for run in unknown for probe in probes_of(run).values() if not probe.emulated]
    if sizes and min(sizes) < PROBE_SMALL_BYTES:
        yield caution(ArrayKind.SMALL_PROBE, file_bytes=min(sizes))


def _active(runs: Sequence[RunSummary]) -> Iterator[Finding]:
    steps = [step for run in runs for step in run.steps]
    warned = [(warning, step) for step in steps if step.storage.active for warning in step.storage.active.warnings]
    for warning in dict.fromkeys(warning_ for warning_, _ in warned):
        yield caution(
            ArrayKind.ACTIVE,
            steps=step_names([step for other, step in warned if other == warning], steps),
            warning=warning,
        )


# The server's counts of I/O against the device's own.


@dataclass(frozen=True)
class Pair:
    """The same I/O, as the server and as the device counted it."""

    files: str  # "data", "WAL" or "data + WAL"
    server: IoSummary
    device: IoSummary

    def rates(self, value: Callable[[IoSummary], float | None]) -> "Rates":
        """Return an amount of both per second, as their samples may span different seconds."""
        server, device = (
            amount / io.seconds if (amount := value(io)) is not None and io.seconds else None
            for io in (self.server, self.device)
        )
        apart = difference(server, device)
        within = COUNTS_AGREE + (self.server.uncertainty or 0.0) + (self.device.uncertainty or 0.0)
        return Rates(server, device, apart, apart is None or abs(apart) <= within)


@dataclass(frozen=True)
class Rates:
    """A rate as both sides counted it. `apart`: device ÷ server, or None if one is unknown."""

    server: float | None
    device: float | None
    apart: float | None
    agree: bool


def pairs(run: RunSummary, step: StepSummary) -> Iterator[Pair]:
    """Yield the rates that both counted in a step of `run`; a device with data and WAL is compared with both."""
    devices, io = run.manifest.devices, step.storage
    shared = io.wal_device is None and devices.data is not None
    if shared and io.wal and devices.data == devices.wal and io.data and io.data_device:
        yield Pair("data + WAL", combine_io(io.data, io.wal), io.data_device)
        return
    if io.data and io.data_device:
        yield Pair("data", io.data, io.data_device)
    if io.wal and io.wal_device:
        yield Pair("WAL", io.wal, io.wal_device)


# Cautions that come from the server itself: its files grew, its memory or locks were contended, its log is kept,
# it vacuumed.

RECOVERY = "database recovery model"
KEPT = "database log kept for backup"
AUTO_CLOSE = "database auto close"
"""The server's settings, by their names in the manifest."""
AZURE = "SQL Azure"
"""The edition of the cloud's servers, as it stands in their version."""


class ServerKind(Kind):
    FILES_GREW = "files_grew_while_measured"
    GRANTS_PENDING = "queries_waited_for_memory"
    DEADLOCKS = "deadlocks_while_measured"
    NODES_UNEVEN = "numa_nodes_uneven"
    REPLICA_BEHIND = "synchronous_replica_was_not_synchronized"
    LOG_KEPT = "log_kept_until_backed_up"
    AUTO_CLOSE = "database_closes_when_unused"
    STATISTICS_UPDATED = "statistics_updated_while_measured"
    AUTOVACUUM = "autovacuum_while_measured"


def server_cautions(runs: Sequence[RunSummary]) -> Iterator[Finding]:
    steps = [step for run in runs for step in run.steps]
    grown = [(step, file) for step in steps for file in step.server.files if file.growths and file.kind != "foreign"]
    if grown:
        files = list(dict.fromkeys(file.name for _, file in grown))
        times = sum(file.growths for _, file in grown)
        yield caution(
            ServerKind.FILES_GREW, steps=_names({step.key for step, _ in grown}, steps), files=files, times=times
        )
    if affected := _nonzero_states(steps, lambda state: state.grants_pending):
        yield caution(ServerKind.GRANTS_PENDING, steps=_names(affected, steps), most=max(affected.values()))
    if affected := _nonzero_states(steps, lambda state: state.deadlocks):
        yield caution(ServerKind.DEADLOCKS, steps=_names(affected, steps), deadlocks=sum(affected.values()))
    if affected := _nonzero_states(steps, _nodes_apart):
        yield caution(ServerKind.NODES_UNEVEN, steps=_names(affected, steps), share=min(affected.values()))
    if affected := _nonzero_states(steps, _unsynchronized_share):
        yield caution(ServerKind.REPLICA_BEHIND, steps=_names(affected, steps), share=max(affected.values()))
    updated = {step.key: step.server.state.statistics_updated for step in steps if step.server.state}
    if names := sorted({name for tables in updated.values() for name in tables}):
        step_keys = _names({key for key, tables in updated.items() if tables}, steps)
        yield caution(ServerKind.STATISTICS_UPDATED, steps=step_keys, statistics=names)
    if vacuumed := {step.key: shares for step in steps if (shares := _autovacuum(step))}:
        reads, writes = (max(counts) for counts in zip(*vacuumed.values(), strict=True))
        yield caution(ServerKind.AUTOVACUUM, steps=_names(vacuumed, steps), read_share=reads, write_share=writes)
    # Runs of several servers may differ in the recovery model.
    kept = [(run, log) for run in runs if (log := _kept_log(run.manifest.server))]
    for same in group(kept, lambda pair: pair[1]):
        states = [step.server.state for run, _ in same for step in run.steps if step.server.state]
        _, (database, recovery) = same[0]
        used = [(state.logs.get(database, LogState()) if database else state.log).used_share for state in states]
        yield caution(
            ServerKind.LOG_KEPT,
            database=database,
            recovery=recovery,
            used_share=max((share for share in used if share is not None), default=None),
        )
    closing = {database for run in runs for database in _closing(run.manifest.server)}
    if closing:
        yield caution(ServerKind.AUTO_CLOSE, databases=sorted(closing - {None}))


def _closing(server: Server) -> Iterator[str | None]:
    """Yield the databases that close once no session is in them; None for the only one or the first."""
    for key, value in server.settings.items():
        database, _, setting = key.rpartition(": ")
        if setting == AUTO_CLOSE and value in ("True", "1"):
            yield database or None


def _unsynchronized_share(state: ServerState) -> float | None:
    """Return the share of the interval in which a synchronous replica was not synchronized, so that commits did not
    wait."""
    return max((1 - replica.synchronized_share for replica in state.replicas if replica.synchronous), default=None)


def _autovacuum(step: StepSummary) -> tuple[float, float] | None:
    """Return autovacuum's shares of the reads and writes of data files if one is too large, else None. Of few I/Os
    those of a moment make the share."""
    io = step.storage.data
    worker = next((process for process in step.server.processes or [] if process.process == AUTOVACUUM), None)
    if io is None or worker is None:
        return None
    reads, writes = worker.read_share or 0.0, worker.write_share or 0.0
    least = FOREIGN_FLOOR_PER_S * io.seconds
    much = (io.reads > least and reads > AUTOVACUUM_READS) or (io.writes > least and writes > AUTOVACUUM_WRITES)
    return (reads, writes) if much else None


def _kept_log(server: Server) -> tuple[str | None, str] | None:
    """Return the database whose log is kept until a backup of the log, and its recovery model; None for the database if
    it is the only one or the first.

    Before its first full backup no log is kept; Azure backs up by itself, every few minutes.
    """
    if AZURE in server.version:
        return None
    sources = ((server.settings, RECOVERY), (server.momentary, KEPT))
    others = {
        key.removesuffix(f": {name}") for settings, name in sources for key in settings if key.endswith(f": {name}")
    }
    for database in (None, *sorted(others)):
        recovery, kept = (settings.get(f"{database}: {name}", settings.get(name)) for settings, name in sources)
        if recovery not in (None, "SIMPLE") and kept != "0":
            return database, recovery
    return None


def _nonzero_states(steps: Sequence[StepSummary], figure: Callable[[ServerState], float | None]) -> dict[str, float]:
    """Return a figure of the server's state by the key of the step, for steps with a known value other than 0."""
    return {step.key: value for step in steps if step.server.state and (value := figure(step.server.state))}


def _nodes_apart(state: ServerState) -> float | None:
    """Return the least page life of a NUMA node as a share of the longest, or None if they are similar."""
    lives = state.node_life_s.values()
    share = min(lives) / max(lives) if lives and max(lives) else 1.0
    return share if share < NODES_APART else None


def _names(keys: Collection[str], among: Sequence[StepSummary]) -> list[str] | None:
    """Return the names of the steps with these keys, or None if these are all steps."""
    return step_names([step for step in among if step.key in keys], among)
