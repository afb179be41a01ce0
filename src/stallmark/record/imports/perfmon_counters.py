"""The counters of Windows and SQL Server that a profile has a use for, and the column each goes to.

Names are English: a Windows of another language writes its own for disks and processors, never for SQL Server.
"""

import re

PATH = re.compile(r"\\\\(?P<host>[^\\]+)\\(?P<object>[^\\(]+)(?:\((?P<instance>.*)\))?\\(?P<counter>[^\\]+)")
_KIB, _PAGE, _TO_MS = 1024.0, 8192.0, 1000.0
DISK = {
    "disk reads/sec": ("reads", 1.0),
    "disk writes/sec": ("writes", 1.0),
    "disk read bytes/sec": ("read_bytes", 1.0),
    "disk write bytes/sec": ("write_bytes", 1.0),
    "avg. disk sec/read": ("read_ms", _TO_MS),
    "avg. disk sec/write": ("write_ms", _TO_MS),
}
"""By counter of LogicalDisk and PhysicalDisk: the means are per I/O."""
SQL = {
    ("sql statistics", "batch requests/sec"): ("batches", 1.0),
    ("memory manager", "target server memory (kb)"): ("memory_target_bytes", _KIB),
    ("memory manager", "stolen server memory (kb)"): ("stolen_bytes", _KIB),
    ("buffer manager", "stolen pages"): ("stolen_bytes", _PAGE),  # up to SQL Server 2008 R2
    ("buffer manager", "database pages"): ("database_pages_bytes", _PAGE),
    ("memory manager", "database cache memory (kb)"): ("database_pages_bytes", _KIB),
    ("buffer manager", "target pages"): ("memory_target_bytes", _PAGE),
    ("buffer manager", "page life expectancy"): ("page_life_expectancy_s", 1.0),
    ("buffer manager", "lazy writes/sec"): ("background_pages", 1.0),
    ("buffer manager", "page reads/sec"): ("pages_read", 1.0),
    ("buffer manager", "readahead pages/sec"): ("readahead_pages", 1.0),
    ("buffer manager", "page lookups/sec"): ("page_lookups", 1.0),
    ("general statistics", "user connections"): ("connections", 1.0),
}
"""By object and counter. Where two counters are of one column, the first that a file has counts."""
CHECKPOINTS = ("checkpoint pages/sec", "background writer pages/sec")
"""Counters of the buffer manager: their sum is what checkpoints write, direct and indirect ones."""
DATABASES = {"log flushes/sec": "log_flushes", "log bytes flushed/sec": "log_bytes", "transactions/sec": "transactions"}
"""Counters that every database has, each with its column."""
SYSTEM_DATABASES = frozenset(
    {
        *("master", "tempdb", "model", "msdb", "mssqlsystemresource"),
        *("model_msdb", "model_replicatedmaster"),  # from 2022 on
        "rdsadmin",  # of RDS, on every server
    }
)
