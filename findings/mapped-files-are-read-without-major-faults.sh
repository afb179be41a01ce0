#!/usr/bin/env bash
# A scan of an LMDB of 327 MiB that is in no cache has 3 major faults, for 83,802 pages that the device reads; with the
# option readahead=False it has one for each page, for the same bytes. Linux counts as major the fault that asks for a
# page, not the faults that wait for one that is on its way: what it reads ahead of a mapped file is minor faults, with
# read_ahead_kb of 128 too, where the scan has 33 major faults and waits 1,993 times. And a fault at random may read
# 128 KiB around its page. So majflt of /proc/PID/stat, which pidstat and ps show, and by the source pgmajfault of
# /proc/vmstat, which sar shows, and of cgroups, which are the reads of an engine that maps its files and the sign that
# memory is short, are no pages, no I/Os, no bytes and no waits: a server busy with its device seems to have all in
# memory, and after a change of readahead, or of the device's read_ahead_kb, to lack it. read_bytes of /proc/PID/io and
# ru_inblock have the bytes.
#
# A database of 250,000 values of 1,000 bytes is put out of the cache by posix_fadvise, and read.
# Run with lmdb 3.0.0 of PyPI on ext4, Linux 6.18, 2026-11-30:
#   read_ahead_kb 8192, the database has 327 MiB in 83,802 pages
#   readahead=True, scan: 3 major faults, 881 minor; 5 waits; the device read 327 MiB
#   readahead=True, 1,000 keys: 57 major faults, 1,194 minor; 61 waits; the device read 327 MiB
#   readahead=False, scan: 83,771 major faults, 2 minor; 28,691 waits; the device read 327 MiB
#   readahead=False, 1,000 keys: 1,397 major faults, 3 minor; 958 waits; the device read 5 MiB
# and on a device with read_ahead_kb 128, the default of Linux:
#   readahead=True, scan: 33 major faults, 2,721 minor; 1,993 waits; the device read 327 MiB
#   readahead=True, 1,000 keys: 1,120 major faults, 143 minor; 1,120 waits; the device read 133 MiB
#   readahead=False, scan: 83,779 major faults, 2 minor; 83,777 waits; the device read 327 MiB
#   readahead=False, 1,000 keys: 1,397 major faults, 3 minor; 1,397 waits; the device read 5 MiB
# Source: mm/filemap.c of Linux (filemap_fault: major is what finds no page; do_async_mmap_readahead),
# mm/memory.c (mm_account_fault); getrusage(2), ru_majflt ("page faults serviced that required I/O"). Waits are its
# voluntary context switches. Needs a temporary folder on a device.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT

python3 -m venv "$folder/venv"
"$folder/venv/bin/pip" install --quiet --disable-pip-version-check lmdb==3.0.0
cat >"$folder/reads.py" <<'PYTHON'
import os
import random
import resource
import sys
from pathlib import Path

import lmdb

KEYS = 250_000
folder = f"{sys.argv[1]}/data"


def key(number):
    return b"%012d" % number


value = os.urandom(1000)
database = lmdb.open(folder, map_size=2**30)
for first in range(0, KEYS, 10_000):
    with database.begin(write=True) as transaction:
        for number in range(first, first + 10_000):
            transaction.put(key(number), value, append=True)
database.close()
path = Path(folder, "data.mdb")
size, page = path.stat().st_size, resource.getpagesize()
device = os.stat(folder).st_dev
disk = Path(f"/sys/dev/block/{os.major(device)}:{os.minor(device)}").resolve()
ahead = next((at / "queue/read_ahead_kb" for at in (disk, disk.parent) if (at / "queue").exists()), None)
print(f"read_ahead_kb {ahead.read_text().strip() if ahead else 'unknown'},", end=" ")
print(f"the database has {size / 2**20:.0f} MiB in {size // page:,} pages")


def major_faults():
    """The major faults of the process by /proc, which are the tenth figure after its name and state."""
    return int(Path("/proc/self/stat").read_text().rpartition(")")[2].split()[9])


def read_bytes():
    lines = Path("/proc/self/io").read_text().splitlines()
    return next(int(line.split()[1]) for line in lines if line.startswith("read_bytes"))


def read(readahead, what):
    """Read all values or those of 1,000 keys; return major faults, the device's bytes, and if others count the same."""
    with path.open() as file:
        os.fsync(file.fileno())
        os.posix_fadvise(file.fileno(), 0, 0, os.POSIX_FADV_DONTNEED)
    database = lmdb.open(folder, map_size=2**30, readonly=True, readahead=readahead)
    faults_before, bytes_before = major_faults(), read_bytes()
    before = resource.getrusage(resource.RUSAGE_SELF)
    with database.begin(buffers=True) as transaction:
        if what == "scan":
            for _, value in transaction.cursor():
                value[0]
        else:
            for number in random.Random(1).sample(range(KEYS), 1000):
                transaction.get(key(number))[0]
    after = resource.getrusage(resource.RUSAGE_SELF)
    faults, device_bytes = major_faults() - faults_before, read_bytes() - bytes_before
    database.close()
    major, minor, waits = (
        getattr(after, field) - getattr(before, field) for field in ("ru_majflt", "ru_minflt", "ru_nvcsw")
    )
    print(f"readahead={readahead}, {what}: {major:,} major faults, {minor:,} minor;", end=" ")
    print(f"{waits:,} waits; the device read {device_bytes / 2**20:.0f} MiB")
    same = abs(faults - major) < 5 and 0.95 < (after.ru_inblock - before.ru_inblock) * 512 / device_bytes < 1.05
    return major, device_bytes, same


scan, scan_bytes, scan_same = read(True, "scan")
keys, keys_bytes, keys_same = read(True, "1,000 keys")
page_scan, page_scan_bytes, page_scan_same = read(False, "scan")
_, page_keys_bytes, page_keys_same = read(False, "1,000 keys")
as_seen = (
    all((scan_same, keys_same, page_scan_same, page_keys_same))
    and min(scan_bytes, page_scan_bytes) > 0.95 * size
    and scan * page < 0.05 * scan_bytes
    and page_scan * page > 0.95 * page_scan_bytes
    and keys * page < 0.1 * keys_bytes
    and keys_bytes > 5 * page_keys_bytes
)
sys.exit(0 if as_seen else "This has changed.")
PYTHON
"$folder/venv/bin/python" "$folder/reads.py" "$folder"
