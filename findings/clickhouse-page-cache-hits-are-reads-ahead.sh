#!/usr/bin/env bash
# ClickHouse shows most of a scan as hits of the page cache when all of it came from the device:
# ThreadPoolReaderPageCacheHitBytes has 99 % of a table whose files were in no cache, 44 % where the kernel reads ahead
# 128 KiB, and 100 % once they are in it. Its default way of reading asks first for what the kernel has without a wait,
# 128 KiB at a time, and calls that a hit; only the rest is a miss, read by another thread. But the kernel has
# meanwhile begun to read ahead of a scan, at the first miss and then at the hits themselves, so a hit is what came in
# time. The share is that of read_ahead_kb, not of memory: it should go up too, which was not run, with a faster device
# and with a slower query, and it says of a table that no memory holds that more memory has little to win. A limit of
# bandwidth that spares the hits, as proposed for ClickHouse in pull request 118495, would spare the device's own
# reads. What the device read is OSReadBytes, beside them in system.events.
#
# The files of a table are put out of the cache by posix_fadvise, and the same query is run twice.
# Run with chdb-core-lite 26.5.0 (ClickHouse 26.5.1.1) on ext4, Linux 6.18, 2026-11-30:
#   the table has 91.9 MiB, read_ahead_kb of the device is 8192
#   first run: 745 hits, 8 misses; hits have 98.9% of the bytes; the device read 91.9 MiB, OSReadBytes 91.9
#   second run: 738 hits, 0 misses; hits have 100.0% of the bytes; the device read 0.0 MiB, OSReadBytes 0.0
# and on a device with read_ahead_kb 128, the default of Linux:
#   first run: 337 hits, 415 misses; hits have 43.9% of the bytes; the device read 91.9 MiB, OSReadBytes 91.9
#   second run: 738 hits, 0 misses; hits have 100.0% of the bytes; the device read 0.0 MiB, OSReadBytes 0.0
# Source: submit in src/Disks/IO/ThreadPoolReader.cpp of ClickHouse (preadv2 with RWF_NOWAIT) and filemap_get_pages in
# mm/filemap.c of Linux (what reads ahead also without a wait); its settings local_filesystem_read_method, by default
# pread_threadpool, and max_read_buffer_size_local_fs. Needs a temporary folder on a device.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT

python3 -m venv "$folder/venv"
"$folder/venv/bin/pip" install --quiet --disable-pip-version-check --no-deps --no-compile \
    chdb-core-lite==26.5.0 pyarrow==26.0.1
cat >"$folder/scans.py" <<'PYTHON'
import os
import sys
from pathlib import Path

from chdb import session

folder = sys.argv[1]
clickhouse = session.Session(f"{folder}/data")


def rows(query):
    return [line.split("\t") for line in str(clickhouse.query(query, "TSV")).splitlines()]


def count():
    """The counters of the server, and the bytes that devices read for it."""
    counts = {name: int(value) for name, value in rows("SELECT event, value FROM system.events")}
    lines = Path("/proc/self/io").read_text().splitlines()
    return counts | {"device": next(int(line.split()[1]) for line in lines if line.startswith("read_bytes"))}


clickhouse.query("CREATE DATABASE d")
clickhouse.query("CREATE TABLE d.t (a UInt64, b UInt64) ENGINE = MergeTree ORDER BY tuple()")
clickhouse.query("INSERT INTO d.t SELECT number, rand64(number) FROM numbers(8000000)")
clickhouse.query("OPTIMIZE TABLE d.t FINAL")
[[part]] = rows("SELECT path FROM system.parts WHERE table = 't' AND active")
files = list(Path(part).glob("*.bin"))
for path in files:
    with path.open() as file:
        os.fsync(file.fileno())
        os.posix_fadvise(file.fileno(), 0, 0, os.POSIX_FADV_DONTNEED)
size = sum(path.stat().st_size for path in files)
device = os.stat(part).st_dev
disk = Path(f"/sys/dev/block/{os.major(device)}:{os.minor(device)}").resolve()
ahead = next((at / "queue/read_ahead_kb" for at in (disk, disk.parent) if (at / "queue").exists()), None)
print(f"the table has {size / 2**20:.1f} MiB,", end=" ")
print(f"read_ahead_kb of the device is {ahead.read_text().strip() if ahead else 'unknown'}")
as_seen = True
for run in ("first", "second"):
    before = count()
    clickhouse.query("SELECT sum(a), sum(b) FROM d.t")
    after = count()
    hits, misses, hit_bytes, miss_bytes, os_bytes, device_bytes = (
        after.get(name, 0) - before.get(name, 0)
        for name in (
            "ThreadPoolReaderPageCacheHit",
            "ThreadPoolReaderPageCacheMiss",
            "ThreadPoolReaderPageCacheHitBytes",
            "ThreadPoolReaderPageCacheMissBytes",
            "OSReadBytes",
            "device",
        )
    )
    share = hit_bytes / (hit_bytes + miss_bytes)
    print(f"{run} run: {hits} hits, {misses} misses; hits have {share:.1%} of the bytes;", end=" ")
    print(f"the device read {device_bytes / 2**20:.1f} MiB, OSReadBytes {os_bytes / 2**20:.1f}")
    if run == "first":
        as_seen &= min(device_bytes, os_bytes) > 0.95 * size and share > 0.2
    else:
        as_seen &= max(device_bytes, os_bytes) < 0.1 * size and share > 0.95
sys.exit(0 if as_seen else "This has changed.")
PYTHON
"$folder/venv/bin/python" "$folder/scans.py" "$folder"
