"""The settings of a scripted SQL Server: sp_configure, RECONFIGURE, and the counters of its memory."""

from collections.abc import Callable

from support.tds.answers import Count, Error, Rows
from support.tds.datatypes import BIGINT, BIT, INT, nvarchar
from support.tds.script import Script
from support.tds.tokens import Column

CAP, FLOOR, ADVANCED = "max server memory (MB)", "min server memory (MB)", "show advanced options"
PARALLELISM, FILLFACTOR = "cost threshold for parallelism", "fill factor (%)"
UNLIMITED = 2147483647


class Settings:
    """sp_configure and RECONFIGURE, as the responder's answers."""

    def __init__(self, script: Script):
        self.values = {CAP: UNLIMITED, FLOOR: 0, ADVANCED: 0, PARALLELISM: 5, FILLFACTOR: 0}
        self.in_use = self.values | {FLOOR: 16}
        self.total_kb = [4 << 20]
        self.refuses = False
        self.disabled = False  # the performance counters
        self.takes = True
        self.meanwhile: Callable[[], object] = lambda: None  # called whenever something is to be set
        name = Column("name", nvarchar(128))
        script.sql("HAS_PERMS_BY_NAME", Rows([Column("may", INT)], [(1,)]))
        described = [name, Column("value", BIGINT), Column("in_use", BIGINT), Column("is_dynamic", BIT)]
        script.sql("is_dynamic", lambda _: [Rows(described, self.options())])
        script.sql("sp_configure", self.configure)
        script.sql("dm_os_performance_counters", self.counters)
        script.sql("dm_os_sys_info", self.committed)
        self.counter_columns = [name, Column("cntr_value", BIGINT)]

    def options(self) -> list[tuple]:
        return [(name, self.values[name], self.in_use[name], name != FILLFACTOR) for name in self.values]

    def configure(self, request) -> list:
        self.meanwhile()
        if self.refuses:
            return [Error(15247, "User does not have permission to perform this action.", severity=16)]
        _, name, rest = request.text.split("'", 2)
        self.values[name] = int(rest.strip(", ").split(";")[0])
        if self.takes and "RECONFIGURE" in rest:
            self.in_use |= {name: self.values[name] for name in self.values if name not in (FLOOR, FILLFACTOR)}
        return [Count(0)]

    def counters(self, _) -> list:
        total = self.total_kb.pop(0) if len(self.total_kb) > 1 else self.total_kb[0]
        target = min(self.values[CAP] * 1024, 8 << 20)
        rows = [("Target Server Memory (KB)", target), ("Total Server Memory (KB)", total)]
        return [Rows(self.counter_columns, [] if self.disabled else rows)]

    def committed(self, _) -> list:
        if self.refuses:
            return [Error(300, "VIEW SERVER STATE permission was denied.", severity=14)]
        columns = [Column("committed_target_kb", BIGINT), Column("committed_kb", BIGINT)]
        return [Rows(columns, [(min(self.values[CAP] * 1024, 8 << 20), self.total_kb[0])])]
