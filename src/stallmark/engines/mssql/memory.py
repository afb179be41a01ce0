"""The server's memory: capped and given back, and its buffer pool emptied or filled before a run.

The cap is set, waited for, and restored in any case. Before the first change the original values go into a journal,
which is removed when they are back. A Stallmark that was killed leaves it behind, and the next one that works on the
same server gives them back first. So that two runs never restore each other's settings, a run holds a lock on the
server. A setting without a journal is the owner's, and is restored at the end.
"""

import time
from collections.abc import Callable, Collection
from contextlib import suppress
from typing import Any, NamedTuple

from stallmark.engines import sql_file
from stallmark.engines.abilities import Caches, Memory, Prefill
from stallmark.engines.mssql import lock
from stallmark.engines.mssql.odbc import api, failed, is_gone, rows
from stallmark.engines.mssql.odbc import name as quoted
from stallmark.engines.mssql.server import SQL_SERVER_2022, Server, auto_close_advice
from stallmark.engines.mssql.settings import PERFORMANCE
from stallmark.engines.mssql.variant_settings import MssqlJournal
from stallmark.errors import CallFailed, ErrorClass, NoConnection, NotGivenBack, RunLockTaken, StallmarkError
from stallmark.stopping import undisturbed

MIB = 1024**2
REACHED_WITHIN_S = 300
MORE_FOR_A_GIB_S = 5  # longest wait for memory to be given back
CLOSE_ENOUGH = 1.05  # Total over Target Server Memory
BACK_WITHIN_S = 120  # a server that restarts
TRY_AGAIN_AFTER_S = 2

_CAP, _FLOOR, _ADVANCED = "max server memory (MB)", "min server memory (MB)", "show advanced options"

_OPTIONS = """\
SELECT name, CAST(value AS bigint) AS value, CAST(value_in_use AS bigint) AS in_use, is_dynamic
  FROM sys.configurations
"""

_COUNTERS = """\
SELECT RTRIM(counter_name), cntr_value
  FROM sys.dm_os_performance_counters
 WHERE counter_name IN ('Target Server Memory (KB)', 'Total Server Memory (KB)')
"""
_PHYSICAL = "SELECT physical_memory_kb FROM sys.dm_os_sys_info"
_COMMITTED = """\
SELECT committed_target_kb, committed_kb
  FROM sys.dm_os_sys_info
"""
_PERMITTED = "SELECT HAS_PERMS_BY_NAME(NULL, NULL, 'ALTER SETTINGS')"


class Capped(NamedTuple):
    """The change of this run in words, for when the server cannot be asked any more. `on`: the server's own name."""

    on: str
    problem: str
    remedy: str

    @classmethod
    def from_setting(cls, megabytes: int, server: Server, journal: MssqlJournal) -> "Capped":
        statements, name = "; ".join(_statements(journal.read())), server.name()
        where = "" if journal.is_on_server else " from this machine"
        return cls(
            name,
            f"`{_CAP}` of {server.address.server} ({name}) is still capped at {megabytes}",
            f"the next run against this server{where} gives it back, or run {statements}; then {journal.removal_hint}",
        )

    def undo_hint(self, reason: str) -> str:
        return f"{self.problem} ({reason}): {self.remedy}."

    @property
    def unless_undone(self) -> str:
        return (
            f"Another run has begun on this server, and should have given back the memory first. If {self.problem} "
            f"once that one has ended, {self.remedy}."
        )


class MssqlMemory(Memory):
    smallest_bytes = 128 * MIB  # the least that sp_configure takes, for the whole server
    scarce_bytes = 2048 * MIB  # below, most of it is not for pages of data, and 2017 and later fail for want of it

    def __init__(self, server: Server, may_drop: Callable[[], bool] = lambda: False):
        """`may_drop`: whether the owner of the server allows its caches to be emptied."""
        self._server = server
        self._may_drop = may_drop
        self._capped: Capped | None = None

    @property
    def largest_bytes(self) -> int | None:  # type: ignore[override]
        try:
            [(kilobytes,)] = self._server.query(_PHYSICAL)
        except CallFailed:  # needs VIEW SERVER STATE
            return None
        return kilobytes * 1024

    def refusal(self) -> str | None:
        server = self._server
        if server.is_babelfish:
            return f"{server.identity().product} has no `max server memory`"
        if reason := server.service.no_cap_reason:
            return reason
        [(permitted,)] = server.query(_PERMITTED)
        if not permitted:
            return "this login may not change `max server memory`: GRANT ALTER SETTINGS TO it, or use sysadmin"
        return None

    def cap(self, size_bytes: int) -> int:
        """Set the cap and wait until the server has come down to it; return the bytes it may hold then.

        Raise StallmarkError when it has not after five minutes, and seconds more for each GiB that it had to give back.
        """
        if self._capped and (elsewhere := self._leads_elsewhere(self._capped)):
            raise StallmarkError(f"{elsewhere[0].upper()}{elsewhere[1:]}: the run ends, because it is another server.")
        megabytes = size_bytes // MIB
        known, journal = options(self._server), self._journal()
        refuse_pending(known, journal.read(), _CAP)
        if megabytes < (least := known[_FLOOR].value):
            raise StallmarkError(
                f"A cap of {megabytes:,} MB is below the server's `{_FLOOR}`, which is {least:,}: choose a larger one, "
                f"or EXEC sp_configure '{_FLOOR}', 0; RECONFIGURE."
            )
        journal.note({name: known[name].value for name in (_CAP, _ADVANCED)})
        self._capped = Capped.from_setting(megabytes, self._server, journal)
        too_much = max(0, _counters(self._server).get("Total Server Memory (KB)", 0) - size_bytes)
        if too_much > size_bytes and self._may_drop():
            self._drop_clean_buffers()
        _configure(self._server, {_ADVANCED: 1, _CAP: megabytes})
        within_s = REACHED_WITHIN_S + MORE_FOR_A_GIB_S * too_much // 1024**3
        deadline = time.monotonic() + within_s
        while True:
            counters = _counters(self._server)
            total, target = counters.get("Total Server Memory (KB)"), counters.get("Target Server Memory (KB)")
            if total is None or target is None:
                raise StallmarkError(
                    "The server does not report its memory usage: GRANT "
                    f"{PERFORMANCE.name(self._server)} to this login, without which no cap can be trusted."
                )
            if total <= CLOSE_ENOUGH * min(target, size_bytes):
                return min(target, size_bytes)
            if time.monotonic() > deadline:
                raise StallmarkError(
                    f"The server still holds {total // MIB:,} MiB {within_s // 60} minutes after "
                    f"`{_CAP}` was set to {megabytes:,}: something keeps memory from it (locked pages, other "
                    "databases)."
                )
            time.sleep(1)

    def give_back(self) -> None:
        """Restore what the journal holds for this server, if it holds anything. Raise NotGivenBack, also if the
        connection leads to another server than the one that was capped."""
        if self._capped and (elsewhere := self._leads_elsewhere(self._capped)):
            raise NotGivenBack(self._capped.undo_hint(f"{elsewhere}; connect to {self._capped.on} itself"))
        journal = self._journal()
        if original := journal.read():
            by_hand = journal.removal_hint
            try:
                refuse_pending(options(self._server), original, _CAP)
                _configure(self._server, original)
            except (CallFailed, StallmarkError) as error:
                reason = error.message if isinstance(error, CallFailed) else str(error).rstrip(".")
                wanted = " and ".join(f"'{name}' to {value}" for name, value in original.items())
                raise NotGivenBack(
                    f"The server's memory settings could not be given back, which the next run tries again. {reason}. "
                    f"Or set {wanted} with sp_configure yourself, then {by_hand}."
                ) from error
            journal.remove()
        self._capped = None

    def give_back_at_the_end(self, check: Callable[[], None]) -> None:
        """Restore what this run has changed; wait for a server that restarts.

        `check` the lock of the run: without it another run may have begun, whose cap is not ours to undo. Raise
        NotGivenBack when it is not restored.
        """
        deadline = time.monotonic() + BACK_WITHIN_S
        try:
            while capped := self._capped:
                try:
                    with undisturbed():  # a moment; cut by Ctrl-C it would leave the server as it is
                        self._give_back_under_lock(check)
                except (CallFailed, StallmarkError) as error:
                    if not _may_pass(error.__cause__ or error):
                        raise NotGivenBack(str(error)) from None
                    if time.monotonic() > deadline:
                        taken = isinstance(error, RunLockTaken)
                        raise NotGivenBack(
                            capped.unless_undone if taken else capped.undo_hint(str(error).rstrip("."))
                        ) from None
                    time.sleep(TRY_AGAIN_AFTER_S)
        except KeyboardInterrupt as stopped:
            if capped := self._capped:
                stopped.add_note(capped.undo_hint("the wait for the server was stopped"))
            raise

    def original(self) -> dict[str, str]:
        """Return, while a cap is set, the setting before it, which comes back at the end. For the manifest."""
        journal = self._journal()
        if not (original := journal.read()):
            return {}
        text = str(original[_CAP])
        if not journal.is_on_server:
            text += " (noted on the driving machine alone: if this run is killed, only one from there gives it back)"
        return {f"{_CAP}, found and given back at the end": text}

    def _give_back_under_lock(self, check: Callable[[], None]) -> None:
        try:
            check()
        except StallmarkError:
            with lock.hold(self._server):
                self.give_back()
        else:
            self.give_back()

    def _drop_clean_buffers(self) -> None:
        """Let go of most of the pool at once, of which the cap would take the larger part page by page."""
        with suppress(CallFailed):  # not every login may; then it takes longer
            self._server.execute("CHECKPOINT; DBCC DROPCLEANBUFFERS WITH NO_INFOMSGS")

    def _leads_elsewhere(self, capped: Capped) -> str | None:
        """Return, as a clause, that the connection leads to another server by now; None if it does not."""
        # Idle connections may be from before a restart.
        self._server.close_idle()
        name = self._server.name()
        return None if name == capped.on else f"the connection leads to {name} since, as after a failover"

    def _journal(self) -> MssqlJournal:
        return MssqlJournal(self._server, "memory")


def target_bytes(server: Server) -> int | None:
    """Return the Target Server Memory, which the server may hold and will under load; None if it is not reported."""
    return _counters(server).get("Target Server Memory (KB)")


def _may_pass(error: BaseException) -> bool:
    """Return True if waiting may help: the server is away, or holds our lock for a dead session."""
    if isinstance(error, CallFailed):
        return error.kind in (ErrorClass.CONNECTION_LOST, ErrorClass.TIMEOUT)
    return isinstance(error, NoConnection | RunLockTaken)


class Option(NamedTuple):
    """A row of sys.configurations."""

    value: int  # configured value
    in_use: int  # since the last RECONFIGURE or start
    is_dynamic: bool

    @property
    def is_pending(self) -> bool:
        """Return True if RECONFIGURE would install the value. Other options wait for the next start."""
        return self.is_dynamic and self.value != self.in_use


_SAME = {_CAP: (0, 2147483647), _FLOOR: (0, 8, 16)}
"""Values of an option that mean the same to the server: it shows one as configured and another in use."""


def options(server: Server) -> dict[str, Option]:
    """Return the options of sp_configure. Raise StallmarkError if this login does not see those of memory."""
    known = {name: Option(value, in_use, bool(dynamic)) for name, value, in_use, dynamic in server.query(_OPTIONS)}
    if missing := [name for name in (_CAP, _FLOOR, _ADVANCED) if name not in known]:
        raise StallmarkError(
            f"The server does not show this login its option `{missing[0]}` (sys.configurations): GRANT VIEW SERVER "
            "STATE TO it."
        )
    return known


def refuse_pending(known: dict[str, Option], ours: Collection[str], setting: str) -> None:
    """Refuse to change a setting while others are pending: RECONFIGURE would install them all, including other
    people's."""
    pending = {
        name: option
        for name, option in known.items()
        if option.is_pending and name not in ours and not {option.value, option.in_use} <= {*_SAME.get(name, ())}
    }
    if pending:
        options_text = ", ".join(
            f"'{name}' is configured as {option.value} and still {option.in_use} in use"
            for name, option in pending.items()
        )
        raise StallmarkError(
            f"Someone has changed options of the server without RECONFIGURE ({options_text}), and setting `{setting}` "
            "would install them too: RECONFIGURE, or set them back with sp_configure, first."
        )


def _configure(server: Server, values: dict[str, int]) -> None:
    for statement in _statements(values):
        server.execute(statement)
    in_use = options(server)[_CAP].in_use
    if in_use != values[_CAP] and not {in_use, values[_CAP]} <= {*_SAME[_CAP]}:
        raise StallmarkError(
            f"`{_CAP}` was set to {values[_CAP]} and the server still uses {in_use}: RECONFIGURE had no effect."
        )


def _statements(values: dict[str, int]) -> list[str]:
    return statements(_CAP, values[_CAP], values[_ADVANCED])


def statements(name: str, value: int, advanced: int) -> list[str]:
    """Return the statements that set an option. Advanced ones must be shown meanwhile; then they are as `advanced`
    says."""
    steps = [(_ADVANCED, 1), (name, value), (_ADVANCED, advanced)]
    return [f"EXEC sp_configure '{option}', {int(number)}; RECONFIGURE" for option, number in steps]


def advanced_before(server: Server) -> int:
    """Return the value of `show advanced options`, or its value before the memory was capped: 1 if they are shown."""
    noted = MssqlJournal(server, "memory").read()
    return int(noted[_ADVANCED] if _ADVANCED in noted else options(server)[_ADVANCED].value)


def _counters(server: Server) -> dict[str, int]:
    """Return Total and Target Server Memory in bytes; nothing if this login may not see them. Where counters are
    disabled, and have no rows, they are what the server reports it has committed, which is nearly the same.
    """
    try:
        counters = dict(server.query(_COUNTERS))
        if not counters:
            for target, committed in server.query(_COMMITTED)[:1]:
                counters = {"Target Server Memory (KB)": target, "Total Server Memory (KB)": committed}
    except CallFailed:
        return {}
    return {name: kilobytes * 1024 for name, kilobytes in counters.items() if kilobytes is not None}


# The buffer pool, emptied or filled before a run.

# What makes the server read every page of rows, and every segment of a columnstore, whose rows it counts without.
_ROWS = "COUNT_BIG(*)"
_SEGMENTS = "CHECKSUM_AGG(BINARY_CHECKSUM(*))"
_OTHERS = """\
SELECT name, HAS_DBACCESS(name) AS may
  FROM sys.databases
 WHERE state = 0 AND is_read_only = 0 AND database_id <> DB_ID()
"""
_MAY_DROP = "SELECT IS_SRVROLEMEMBER('sysadmin') AS may"
# Whoever made the server has the right without the role.
_MAY_DROP_ON_AZURE = """\
SELECT CASE WHEN IS_SRVROLEMEMBER('##MS_ServerStateManager##') = 1
              OR HAS_PERMS_BY_NAME(NULL, NULL, 'ALTER SERVER STATE') = 1 THEN 1 ELSE 0 END AS may
"""
_SYSADMIN = "the role sysadmin"
_MAY_DROP_SINCE_2022 = "SELECT HAS_PERMS_BY_NAME(NULL, NULL, 'ALTER SERVER STATE') AS may"


class MssqlCaches(Caches):
    def __init__(self, server: Server):
        self._server = server

    def refusal(self) -> str | None:
        server = self._server
        if server.is_babelfish:
            return f"{server.identity().product} has no DBCC DROPCLEANBUFFERS"
        question, needed = self._right()
        [(may,)] = server.query(question)
        if not may:
            nobody = needed == _SYSADMIN and not server.service.gives_roles
            whom = f"{server.service.name} gives to nobody" if nobody else "this login does not have"
            return f"emptying the caches needs {needed}, which {whom}"
        if not self.allowed:
            whose = (
                "of every database of the same elastic pool, and may empty those of others with the service objectives "
                "Basic, S0 and S1"
                if server.is_azure_database
                else "of everybody on the server"
            )
            return f"that empties the caches {whose}: add --drop-caches if nobody else needs them"
        return None

    def _right(self) -> tuple[str, str]:
        """Return the query that shows whether this login may, and what it needs."""
        if self._server.is_azure_database:
            return _MAY_DROP_ON_AZURE, "the server role ##MS_ServerStateManager##"
        if self._server.has_version(SQL_SERVER_2022):
            return _MAY_DROP_SINCE_2022, "the right ALTER SERVER STATE"
        return _MAY_DROP, _SYSADMIN

    def empty(self) -> list[str]:
        """Write out dirty pages, database by database, and empty the buffer pool; return the databases that were
        skipped.
        """
        dirty = []
        with self._server.cursor() as cursor:
            rows(cursor.execute("CHECKPOINT"))
            if not self._server.is_azure_database:  # other databases are not on this server
                dirty = _write_out_others(cursor)
            try:
                rows(cursor.execute("DBCC DROPCLEANBUFFERS WITH NO_INFOMSGS"))
            except api().Error as error:
                raise StallmarkError(
                    f"The server refused to empty its caches, which a cold start needs ({failed(error).message}): use "
                    "a login that may, or leave out `start_cache: cold`."
                ) from None
        if not dirty:
            return []
        return [
            "The cache was not emptied of the changed pages of other databases, in which CHECKPOINT failed: "
            f"{', '.join(dirty)}."
        ]


def _write_out_others(cursor: Any) -> list[str]:
    """Return the databases in which it failed, with the reasons. A closed database of others, or a replica, does not
    count.
    """
    dirty = []
    for name, may_enter in rows(cursor.execute(_OTHERS)):
        if not may_enter:
            dirty.append(f"{name} (this login may not enter it)")
            continue
        try:
            rows(cursor.execute(f"USE {quoted(name)}; CHECKPOINT"))
        except api().Error as error:
            failure = failed(error)
            if is_gone(failure):
                raise
            dirty.append(f"{name} ({failure.message})")
    return dirty


class MssqlPrefill(Prefill):
    def __init__(self, server: Server):
        self._server = server

    def refusal(self) -> str | None:
        if self._server.is_babelfish:
            return "Babelfish does not tell how large its indexes are"
        return auto_close_advice(self._server)

    def fill(self, *schemas: str) -> int:
        """Scan every index, schema by schema, the smallest first; return the bytes that were read or found."""
        total = 0
        for schema in schemas:
            with self._server.cursor() as cursor:
                indexes = cursor.execute(sql_file.statement(__name__, "indexes"), schema).fetchall()
                for table, index, pages, is_columnstore, long_texts in indexes:
                    read = [_SEGMENTS if is_columnstore else _ROWS]
                    read += [f"SUM(CAST({long_texts} AS bigint))"] * bool(long_texts)
                    cursor.execute(f"SELECT {', '.join(read)} FROM {table} WITH (INDEX({index}), TABLOCK)").fetchall()
                    total += pages * 8192
        return total
