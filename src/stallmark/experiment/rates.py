"""The rates by which an experiment's time is estimated before its first run; how fast the data of a workload are built
and checked is the workload's own fact.

Measured with the embedded PostgreSQL 18.4 on two cores of a virtual machine (x86-64, Debian 12, a disk that reads 390
and writes 740 MB/s) which others used as well. So builds and copies are by their CPU time, spread over two cores, and
what belongs to a run is half of what it took at a load of 13. Bytes are those of the tables with their keys
(`loaders.load.expected_bytes`). What this machine's earlier experiments took corrects all of them (pace.py).
"""

MIB = 1024**2

BEGIN_S = 3.0
"""A server is made and started before a load."""
COPY_BYTES_PER_S = 200 * MIB
"""A database is copied, with the log that belongs to it, or brought back from the copy."""
PREFILL_BYTES_PER_S = 400 * MIB
RUN_S = 7.0
"""A server starts with its cap, users begin and end, and the record is closed."""
REPORT_S = 5.0
"""The report is written when all runs are made."""
WRITE_BYTES_PER_S = 300 * MIB
"""The file of a probe is written."""
STEP_S = 1.0
"""A step of a probe begins."""
QUERY_BYTES_PER_S = 400 * MIB
"""A query of the warehouse, as if it went once over all its data, in memory."""
QUERY_READ_BYTES_PER_S = 100 * MIB
"""Added for the data that the buffer pool does not hold, on a real disk."""
QUERY_EMULATED_BYTES_PER_S = 14 * MIB
"""The same on emulated arrays, fast and slow alike, as power-memory-storage was measured."""
