"""The preflight: refusals and advice, from a scenario, server and machine, before anything is loaded or measured."""

import math
import os
from collections.abc import Iterator
from pathlib import Path

from stallmark.analysis.environment_cautions import Varied, shallow_history
from stallmark.analysis.finding import Finding
from stallmark.collectors import ON_REQUEST, collectors_for
from stallmark.engines import copied
from stallmark.engines.abilities import Ability, Missing, required
from stallmark.engines.base import Engine
from stallmark.errors import StallmarkError
from stallmark.experiment import LoadByHand, loads_beside, storage_work
from stallmark.experiment.work import MostUsers, as_planned, most_sessions, search_plan
from stallmark.loaders.databases import foreign_object
from stallmark.loaders.ledger import Entry
from stallmark.loaders.load import expected_bytes
from stallmark.processes import most_open_files
from stallmark.record.files import refuse_unwritable
from stallmark.scenarios.load import RawLoad, UsersLoad
from stallmark.scenarios.model import AnyScenario, QueryScenario, TimedScenario
from stallmark.scenarios.variant import OwnReset, Variant
from stallmark.transactions import find_workload

_AT_MOST = 1.25  # times the estimated size: a database is larger by no more once it is loaded

_OWN_FILES = 100  # an executor's files other than the connections of its users and background sessions


def refuse_what_cannot_be(
    scenario: AnyScenario,
    engine: Engine,
    out: Path,
    machines: int = 1,
    by_hand: LoadByHand | None = None,
    *,
    goes_by: str | None = None,
) -> None:
    """Raise StallmarkError for whatever can be known to fail before the first byte is loaded. `machines`: how many
    machines the load comes from; `by_hand`: how it is changed meanwhile; `goes_by`: a figure of the server's I/O that
    decides how it goes on, beside those that the scenario names."""
    _refuse_what_the_engine_cannot(scenario, engine)
    if isinstance(scenario.reset, OwnReset):
        _refuse_own_reset(scenario, scenario.reset, engine)
    if scenario.restart:
        if reason := engine.no_restart_reason:
            raise StallmarkError(f"{scenario.name} has `restart`, but {reason}: leave it out.")
        storage_work.refuse_impossible_hook("restart", scenario.restart)
    if scenario.at_end:
        storage_work.refuse_impossible_hook("at_end", scenario.at_end)
    refuse_restoring_others(scenario, engine)
    refuse_pool_sizes(scenario, engine)
    refuse_places(scenario, engine)
    if isinstance(scenario, TimedScenario):
        _refuse_raw(scenario, engine)
        most_users = by_hand.most_users if by_hand else as_planned
        _refuse_more_users_than_sessions(scenario, engine, machines, most_users)
        # With load machines the connections, and the limit of open files, are theirs.
        if machines == 1:
            _refuse_more_users_than_files(scenario, most_users)
        _refuse_unseen_io(scenario, engine, goes_by or _io_needed(scenario))
    if isinstance(scenario, QueryScenario):
        _refuse_streams(scenario, engine)
        _refuse_cores(scenario, engine)
    refuse_unwritable(out, "name another folder for the records with --out")
    _refuse_settings(scenario, engine)


def advice(scenario: AnyScenario, machines: int) -> list[str]:
    """Return advice on a scenario that can run but will not show what it asks for, as sentences; the record keeps it.

    `machines`: how many machines the load comes from.
    """
    if not isinstance(scenario, TimedScenario):
        return []
    return list(dict.fromkeys(text for load in users_loads(scenario) for text in _advice_on(load, machines)))


def _refuse_raw(scenario: TimedScenario, engine: Engine) -> None:
    """Refuse raw loads that cannot run: those of the variant that has most, as its files are there at once."""
    for variant in scenario.variants:
        plans = {
            name: (load.plan(), scenario.most_cells)
            for name, load in scenario.loads_of(variant).items()
            if isinstance(load, RawLoad)
        }
        loads_beside.refuse_impossible(plans, engine, scenario.emulates(variant))


def users_loads(scenario: TimedScenario) -> list[UsersLoad]:
    """Return all loads of any variant that have users."""
    loads = {name: load for variant in scenario.variants for name, load in scenario.loads_of(variant).items()}
    return [load for load in loads.values() if isinstance(load, UsersLoad)]


def _advice_on(load: UsersLoad, machines: int) -> Iterator[str]:
    choice = load.choice()
    if contention := find_workload(choice.name).users.contention(choice.scale, load.most_users):
        yield contention
    if choice.locality and machines < 2:
        yield (
            f"locality {choice.locality:g} has no effect: the load comes from one machine, which has all customers; "
            "several machines (--expect-workers 2 or more) each have a part of them."
        )


def advice_on_pools(scenario: AnyScenario, engine: Engine, loaded_bytes: int | None) -> list[str]:
    """Return the same for buffer pools that the server takes, and barely works with."""
    scarce_bytes = engine.memory.scarce_bytes if engine.memory else 0
    pools = [(variant.name, scenario.pool_of(variant)) for variant in scenario.sized()]
    scarce = [name for name, pool in pools if pool and pool.resolve(loaded_bytes or 0) < scarce_bytes]
    if not scarce:
        return []
    return [
        f"{', '.join(map(repr, scarce))}: a cap below {scarce_bytes // 1024**2:,} MiB is of the whole server, which "
        "needs most of it for itself: few pages of data fit, and calls may fail for want of memory (701, 802)."
    ]


def caution_on_history(scenario: AnyScenario, engine: Engine) -> Finding | None:
    """Return the caution of the report on a history too short for what the variants differ in. The record needs no note
    of it: the report has it from the scale."""
    variants = scenario.variants
    varied: list[Varied] = []
    if scenario.curve or len(set(map(scenario.pool_of, variants))) > 1:
        varied.append("memory")
    if len({_flash(scenario, variant) for variant in variants}) > 1:
        varied.append("flash")
    return shallow_history(scenario.contents.history, varied, engine.identity().product)


def _flash(scenario: AnyScenario, variant: Variant) -> tuple[int | None, ...]:
    """Return the sizes of the cache and the tier before the data's disks; shares as of some database."""
    if model := (scenario.emulated_arrays_of(variant) or {}).get("data"):
        return tuple(part.size if part else None for part in (model.cache, model.tier))
    array = scenario.array_of(variant)
    return (array.flash_cache, array.flash_tier) if array else (None, None)


def refuse_pool_sizes(scenario: AnyScenario, engine: Engine, loaded_bytes: int | None = None) -> None:
    """Refuse buffer pools below what the server needs, and above the memory of its machine. While `loaded_bytes` is not
    known, a share of the data is refused where it will surely be too small."""
    smallest_bytes = engine.memory.smallest_bytes if engine.memory else 0
    largest_bytes = engine.memory.largest_bytes if engine.memory else None
    for variant in scenario.sized():
        pool = scenario.pool_of(variant)
        if pool is None:
            continue
        is_estimated = pool.share is not None and loaded_bytes is None
        expected = _expected_bytes(scenario, engine) if is_estimated else 0
        if expected is None:
            continue
        data_bytes = round(_AT_MOST * expected) if is_estimated else loaded_bytes or 0
        if (size := pool.resolve(data_bytes)) < smallest_bytes:
            least = smallest_bytes // 1024**2
            sized = " Scenarios that end in -sqlserver have its sizes." if engine.dialect == "mssql" else ""
            raise StallmarkError(
                f"Variant {variant.name!r}: a buffer pool of {pool} ({'at most ' * is_estimated}{size // 1024**2} MiB) "
                f"is below the minimum of {least} MiB: raise buffer_pool to {least}MiB or more, or choose a larger "
                f"scale.{sized}"
            )
        # The estimate is an upper bound: a share of it that is too large may still be a pool that fits.
        if largest_bytes is not None and size > largest_bytes and not is_estimated:
            raise StallmarkError(
                f"Variant {variant.name!r}: a buffer pool of {pool} ({size // 1024**2:,} MiB) is more than the "
                f"{largest_bytes // 1024**2:,} MiB of memory that the server's machine has: lower buffer_pool, or "
                "choose a smaller scale."
            )


def refuse_places(scenario: AnyScenario, engine: Engine, loaded_bytes: int | None = None) -> None:
    """Refuse folders of variants that are not there or have no room; a size that is not known yet is estimated."""
    size_bytes = (_expected_bytes(scenario, engine) or 0) if loaded_bytes is None else loaded_bytes
    for variant in scenario.variants:
        if variant.place:
            try:
                required(copied(engine)[0].backup).refuse_folders(variant.place.folders(), size_bytes)
            except StallmarkError as error:
                raise StallmarkError(f"Variant {variant.name!r}: {error}") from None


def _expected_bytes(scenario: AnyScenario, engine: Engine) -> int | None:
    """Return the estimated size of the data; None if a part is a user's own, whose size is known once it is there."""
    workload = find_workload(scenario.contents.name)
    if any(part.is_given for part in workload.parts):
        return None
    return expected_bytes(engine.dialect, workload, scenario.contents.scale)


def refuse_impossible_devices(scenario: AnyScenario, loaded_bytes: int | None) -> None:
    """Refuse emulated flash, sized as a share of the data, that no array can have."""
    for variant in scenario.variants:
        try:
            scenario.emulated_arrays_of(variant, loaded_bytes)
        except StallmarkError as error:
            raise StallmarkError(f"Variant {variant.name!r}: {error}") from None


def refuse_driven(scenario: AnyScenario, engine: Engine, loaded: Entry) -> None:
    """Refuse a database that transactions have changed since it was loaded, where no copy from before is kept."""
    if loaded.driven:
        data = engine.directories().get("data")
        raise StallmarkError(
            f"Load has been driven against {scenario.contents} since it was loaded, and no copy from before is kept, "
            f"so `reset: restore` has nothing to start from: {f'remove {data.parent}' if data else 'drop it'} to have "
            "it loaded again, or use `reset: continue`."
        )


def refuse_restoring_others(scenario: AnyScenario, engine: Engine) -> None:
    """Refuse to restore a database that also holds what others have made: their changes would be lost.

    The embedded database is nobody else's.
    """
    if scenario.reset != "restore" or engine.is_local:
        return
    if other := foreign_object(engine, find_workload(scenario.contents.name)):
        raise StallmarkError(
            f"{scenario.name} asks for `reset: restore`, but the database holds {other}, which Stallmark did not make: "
            "every restore would take back what others have changed since. Name a database of its own, or use `reset: "
            "continue`."
        )


def _refuse_what_the_engine_cannot(scenario: AnyScenario, engine: Engine) -> None:
    variants = scenario.variants
    asked: list[tuple[str, Ability | Missing, bool]] = [
        ("buffer_pool", engine.memory, any(map(scenario.pool_of, scenario.sized()))),
        ("start_cache: cold", engine.caches, scenario.start_cache == "cold"),
        ("start_cache: prefilled", engine.prefill, scenario.start_cache == "prefilled"),
        *(("reset: restore", database.backup, scenario.reset == "restore") for database in engine.databases()),
        ("emulated_array", engine.devices, any(map(scenario.emulates, variants))),
        ("observe: io_trace", engine.tracing, "io_trace" in scenario.observe),
    ]
    for key, setting in engine.variant_settings.items():
        asked.append((key, setting, any(scenario.setting_for(variant, key) is not None for variant in variants)))
    for kind in {variant.during.kind for variant in variants if variant.during}:
        asked.append((f"during: {kind}", engine.maintenance[kind], True))
    if isinstance(scenario, QueryScenario) and any(variant.during for variant in variants):
        raise StallmarkError(f"{scenario.name} runs queries, and `during` is beside users: leave it out.")
    if engine.by_workload:
        _refuse_of_one_database(scenario)
    has_users_own = any(part.is_given for part in find_workload(scenario.contents.name).parts)
    if has_users_own and not engine.is_local and scenario.reset == "restore":
        raise StallmarkError(
            f"{scenario.name} asks for `reset: restore`, but the database is yours, and Stallmark keeps no copy: "
            "write `reset: {restore: FILE}` with your backup, or `reset: continue`."
        )
    for key, ability, wanted in asked:
        if wanted and (reason := ability.refusal()):
            raise StallmarkError(f"{scenario.name} asks for `{key}`, but {reason}.")
    if scenario.backup and not (engine.backup and engine.backup.options):
        raise StallmarkError(
            f"{scenario.name} has options for SQL Server's `backup`, but this is not a SQL Server: remove them, or "
            "name a SQL Server with --server."
        )
    for name in scenario.observe:
        if name not in ON_REQUEST.get(engine.dialect, {}):
            raise StallmarkError(
                f"{scenario.name} asks for `observe: {name}`, which only SQL Server has: remove it, or name such a "
                "server with --server."
            )


def _refuse_settings(scenario: AnyScenario, engine: Engine) -> None:
    """Refuse settings that the server would not take: only it knows. The last, as one of ours is restarted for it."""
    for variant in scenario.variants:
        for key, setting in engine.variant_settings.items():
            wanted = scenario.setting_for(variant, key)
            if setting and wanted is not None:
                try:
                    setting.check(wanted)
                except StallmarkError as error:
                    raise StallmarkError(f"Variant {variant.name!r}: {error}") from None


def _refuse_own_reset(scenario: AnyScenario, reset: OwnReset, engine: Engine) -> None:
    """Refuse a backup or a command that cannot bring back the user's database."""
    if not any(part.is_given for part in find_workload(scenario.contents.name).parts):
        raise StallmarkError(
            f"{scenario.name} asks for `reset: {{…}}`, which is of a database of your own: write `reset: restore`."
        )
    if engine.by_workload:
        raise StallmarkError(
            f"{scenario.name} has several databases, and `reset` restores one: write `reset: continue`."
        )
    if not reset.restore:
        storage_work.refuse_impossible_hook("reset", reset)
        return
    backup = required(engine.user_backup)
    if not engine.is_shared:
        raise StallmarkError(
            f"{scenario.name} replaces the content of {engine.database_name()} by that of {reset.restore}, whose rows "
            "are not Stallmark's: add --shared if that may be."
        )
    if reason := backup.refusal():
        raise StallmarkError(f"{scenario.name} asks for `reset: {{restore: …}}`, but {reason}.")
    backup.refuse(reset.restore)
    refuse_sessions_of_others(engine)


def refuse_sessions_of_others(engine: Engine) -> None:
    """Refuse to restore a database that others are in: a restore would end their sessions, or wait for them."""
    if others := engine.other_sessions():
        raise StallmarkError(
            f"{others[0]} is in the database {engine.database_name()}, which is to be restored before every run: end "
            "it, or write `reset: continue`."
        )


def _refuse_of_one_database(scenario: AnyScenario) -> None:
    """Refuse what works on one database where each workload has one."""
    asked = {
        "start_cache: prefilled": scenario.start_cache == "prefilled",
        "row_versioning": any(variant.row_versioning is not None for variant in scenario.variants),
        "during": any(variant.during for variant in scenario.variants),
    }
    for key, wanted in asked.items():
        if wanted:
            raise StallmarkError(
                f"{scenario.name} asks for `{key}`, which is of one database, and its workloads have one each "
                "(`databases`): leave one of the two out."
            )


def _refuse_more_users_than_sessions(
    scenario: TimedScenario, engine: Engine, machines: int, most_users: MostUsers
) -> None:
    if (most := engine.most_users()) is None:
        return
    users, background, streams = most_sessions(scenario, machines, most_users)
    if users + background + streams <= most:
        return
    all_background = [find_workload(load.workload).background for load in users_loads(scenario)]
    executed_by = dict.fromkeys(work.executed_by for work in all_background if work.sessions_per_user)
    others = f" and {background:,} sessions of {' and '.join(executed_by)}" if background else ""
    others += f" and {streams:,} streams of queries" if streams else ""
    fewer = "ask for fewer" if most_users is as_planned else "ask for fewer (--most-users)"
    raise StallmarkError(
        f"{scenario.name} asks for {users:,} users{others}, but the server takes {most:,} beside our own sessions: "
        f"{fewer}, or {_remedy_for_sessions(engine)}."
    )


def _remedy_for_sessions(engine: Engine) -> str:
    if engine.is_local:
        return "name a server elsewhere with --server (half of this machine's memory is for sessions here)"
    return f"raise {engine.users_limited_by()}"


def _refuse_more_users_than_files(scenario: TimedScenario, most_users: MostUsers) -> None:
    """Refuse more users than this machine's executors may have connections: each counts as an open file."""
    most = most_open_files()
    users, background, _ = most_sessions(scenario, most_users=most_users)
    if most is None or math.ceil((users + background) / (cores := os.cpu_count() or 1)) + _OWN_FILES <= most:
        return
    raise StallmarkError(
        f"{scenario.name} asks for {users + background:,} connections from this machine, and each of its {cores:,} "
        f"executors may have {most:,} files open: raise that limit (ulimit -Hn), ask for fewer users, or take several "
        "load machines (--expect-workers)."
    )


def _refuse_unseen_io(scenario: TimedScenario, engine: Engine, needed: str | None) -> None:
    """Refuse a scenario that depends on I/O counters which the server does not report: it would give no answer."""
    if not needed:
        return
    [server_io] = (collector for collector in collectors_for(engine) if collector.name == "server_io")
    if reason := server_io.unavailable():
        raise StallmarkError(f"{scenario.name} depends on {needed}, which is unknown here. {reason}")


def _io_needed(scenario: TimedScenario) -> str | None:
    """Return the metric of the server's I/O on which the course of a run depends, or None."""
    plans = [search_plan(scenario, variant) for variant in scenario.variants]
    if any(plan and plan.read_ms is not None for plan in plans):
        return "the time of reads (slo)"
    return None


def _refuse_streams(scenario: QueryScenario, engine: Engine) -> None:
    """Refuse more streams than the server has sessions for. A refresh stream takes two: its state, and its writer."""
    most = engine.most_users()
    if "throughput" in scenario.queries.phases and most is not None and scenario.streams + 2 > most:
        raise StallmarkError(
            f"{scenario.name} asks for {scenario.streams:,} streams and one that refreshes, but the server takes "
            f"{most:,} sessions beside our own: ask for fewer, or {_remedy_for_sessions(engine)}."
        )


def _refuse_cores(scenario: QueryScenario, engine: Engine) -> None:
    """Refuse degrees of parallelism above the server's cores, and `all` where the number of cores is not known."""
    cores = engine.cores()
    for dop in scenario.queries.dop or ():
        if dop == "all" and cores is None:
            raise StallmarkError(
                f"{scenario.name} asks for `dop: all`, but the server does not report its cores: write the number."
            )
        if dop != "all" and cores is not None and dop > cores:
            raise StallmarkError(
                f"{scenario.name} asks for `dop: {dop}`, but the server has {cores} core{'s' * (cores != 1)}: ask for "
                "no more, or write all."
            )
