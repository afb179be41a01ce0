#!/usr/bin/env bash
# SQLite reads large values from the file with every query, however large its cache is, and counts a cache that finds
# everything: 400 documents of 40 kB, in a cache with room for six times as many, are 3,600 reads of a page each, again
# and again, at a hit ratio of 100 %. Since 3.45 (Debian 12 has 3.40, Debian 13 has 3.46) what of a value does not fit
# its row's page is read past the cache, and does not come into it; reads of it are neither hits nor misses for
# sqlite3_db_status and the shell's .stats. Up to 3.44 the second query read nothing. So with an update of a library a
# service reads its documents, images or vectors from storage for ever, in as many dependent reads of 4 KiB as they have
# pages; cache_size, once sized by their bytes, is of use for keys and small columns alone, and the counters say that it
# is large enough. It depends on what else the connection does: as long as it has a change that is not committed, values
# come into the cache as before, and the same query in a transaction that writes reads less than one that only reads.
# The system's own cache may answer the reads, which is no better seen.
#
# The documents are read three times by one connection, with a cache of 100 MB, and twice more after a change that is
# not committed; the last time of each is counted, by syscr of the process.
# Run with apsw 3.44.2.0 and 3.54.1.0, whose wheels have these versions of SQLite, on Debian 12, 2026-11-30:
#   SQLite 3.44.2, only reading: 3 reads, 4002 hits, 0 misses
#   SQLite 3.44.2, with a change: 2 reads, 3992 hits, 0 misses
#   SQLite 3.54.1, only reading: 3603 reads, 402 hits, 0 misses
#   SQLite 3.54.1, with a change: 2 reads, 3992 hits, 0 misses
# Source: accessPayload in btree.c and sqlite3PagerDirectReadOk in pager.c of SQLite; its release notes of 3.45.0 and
# "Compile-time Options", SQLITE_DIRECT_OVERFLOW_READ (nothing under cache_size, SQLITE_DBSTATUS_CACHE_MISS and .stats).
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT

cat >"$folder/values.py" <<'PYTHON'
import sys
from pathlib import Path

import apsw

HITS, MISSES = apsw.SQLITE_DBSTATUS_CACHE_HIT, apsw.SQLITE_DBSTATUS_CACHE_MISS
connection = apsw.Connection(sys.argv[1])
connection.execute("CREATE TABLE documents (id INTEGER PRIMARY KEY, text BLOB)")
connection.executemany("INSERT INTO documents VALUES (?, ?)", ((key, bytes(40_000)) for key in range(400)))
connection.close()


def count_reads():
    return int(Path("/proc/self/io").read_text().split("syscr: ")[1].split()[0])


connection = apsw.Connection(sys.argv[1])
connection.execute("PRAGMA cache_size = -100000")


def read_documents(times):
    """Read all documents some times, and return what the last time has read of the file and missed in the cache."""
    for _ in range(times):
        for status in (HITS, MISSES):
            connection.status(status, True)
        before = count_reads()
        for _ in connection.execute("SELECT text FROM documents"):
            pass
        reads = count_reads() - before
    hits, misses = (connection.status(status)[0] for status in (HITS, MISSES))
    print(f"{reads} reads, {hits} hits, {misses} misses")
    return reads, misses


version = apsw.sqlite_lib_version()
print(f"SQLite {version}, only reading:", end=" ")
reads, misses = read_documents(3)
as_seen = misses == 0 and (reads > 3000 if version.startswith("3.54") else reads < 20)
connection.execute("BEGIN; UPDATE documents SET text = 'changed' WHERE id = 0")
print(f"SQLite {version}, with a change:", end=" ")
reads, misses = read_documents(2)
sys.exit(0 if as_seen and reads < 20 and misses == 0 else "This has changed.")
PYTHON
python3 -m venv "$folder/venv"
for version in 3.44.2.0 3.54.1.0; do
    "$folder/venv/bin/pip" install --quiet --disable-pip-version-check apsw==$version
    "$folder/venv/bin/python" "$folder/values.py" "$folder/$version"
done
