#!/usr/bin/env bash
# collectd has 0 ms for the reads of a disk that takes 0.4 ms for each, if it looks every second, and 1 ms if it takes
# 0.6; with its default of ten seconds the figures go in steps of 0.1 ms, and flash of 0.04 is 0. disk_time, its mean
# time of an operation, is kept as a counter of whole milliseconds, to which each look adds the mean times its
# interval. So the shorter the interval, the coarser the latency: who looks closer, for a test, has no latency of
# flash at all, and two devices of 0.4 and 0.6 ms seem as far apart as a cache and a disk. An interval without I/O
# adds nothing, that is 0 ms, and all intervals have the same weight: averaged over an hour, as RRD files and charts
# do, a device that takes 2.4 ms in one second of five has 0.4, and 2.0 if it is asked as much in each second.
# weighted_io_time of disk_io_time, by the operations of disk_ops, is the mean of any period, if only of reads and
# writes together.
#
# /proc/diskstats is made up here by a library, with as many I/Os for each look at it.
# Run with collectd 5.12.0-14 of Debian 12, 2026-11-30:
#   reads of 0.04 ms: 0.0 ms every second, 0.0 every ten
#   reads of 0.08 ms: 0.0 ms every second, 0.1 every ten
#   reads of 0.4 ms: 0.0 ms every second, 0.4 every ten
#   reads of 0.6 ms: 1.0 ms every second, 0.6 every ten
#   writes of 2.4 ms in one second of five: 2.0 ms then, 0.4 on average; weighted_io_time / operations 2.4
#   writes of 2.4 ms in each second: 2.0 ms on average
# Source: collectd's page on its disk plugin ("average time", to be taken with a grain of salt), and
# disk_calc_time_incr and disk_read of disk.c, in 5.12.0 (collectd 6, not out yet, keeps the time of all operations).
# Needs apt-get and a C compiler.
set -euo pipefail
folder=$(mktemp -d)
trap 'kill $(jobs -p) 2>/dev/null || true; wait; rm -rf "$folder"' EXIT
# Everything of apt's is in the folder: its lists, its packages, and a system on which nothing is installed.
apt() {
    apt-get -qq -o Debug::NoLocking=1 -o APT::Sandbox::User=root -o Dir::State::status="$folder/none" \
        -o Dir::State::lists="$folder/lists" -o Dir::Cache="$folder" -o Dir::Cache::archives="$folder/debs" "$@" >/dev/null
}
mkdir -p "$folder/debs/partial" "$folder/lists/partial" "$folder/root"
: >"$folder/none"
apt update
(cd "$folder" && apt download collectd-core=5.12.0-14 libcap2 libudev1)
for deb in "$folder"/*.deb; do
    dpkg -x "$deb" "$folder/root"
done
lib=lib/$(uname -m)-linux-gnu
export LD_LIBRARY_PATH="$folder/root/$lib:$folder/root/usr/$lib"
cat >"$folder/disks.c" <<'C'
#define _GNU_SOURCE
#include <dlfcn.h>
#include <stdio.h>
#include <string.h>

static void add(FILE *file, const char *name, long reads, long read_ms, long writes, long write_ms) {
    fprintf(file, "8 0 %s %ld 0 %ld %ld %ld 0 %ld %ld 0 1 %ld\n", name, reads, 16 * reads, read_ms, writes,
            16 * writes, write_ms, read_ms + write_ms);
}

FILE *fopen(const char *path, const char *mode) {
    static char text[4096];
    static long looks;
    if (strcmp(path, "/proc/diskstats")) {
        FILE *(*next)(const char *, const char *) = dlsym(RTLD_NEXT, "fopen");
        return next(path, mode);
    }
    looks++;
    FILE *file = fmemopen(text, sizeof text, "w");
    add(file, "fast", 5000 * looks, 200 * looks, 100 * looks, 100 * looks);
    add(file, "flash", 5000 * looks, 400 * looks, 100 * looks, 100 * looks);
    add(file, "array", 1000 * looks, 400 * looks, 100 * looks, 100 * looks);
    add(file, "remote", 1000 * looks, 600 * looks, 100 * looks, 100 * looks);
    add(file, "seldom", 0, 0, looks / 5 * 1000, looks / 5 * 2400);
    add(file, "often", 0, 0, looks * 1000, looks * 2400);
    fclose(file);
    return fmemopen(text, strlen(text), "r");
}

FILE *fopen64(const char *path, const char *mode) { return fopen(path, mode); }
C
cc -O1 -shared -fPIC -o "$folder/disks.so" "$folder/disks.c" -ldl

# Becomes collectd, with an interval and for some seconds.
collect() {
    cat >"$folder/$1.conf" <<CONF
Interval $1
Hostname "host"
FQDNLookup false
BaseDir "$folder"
PIDFile "$folder/$1.pid"
PluginDir "$folder/root/usr/lib/collectd"
TypesDB "$folder/root/usr/share/collectd/types.db"
LoadPlugin disk
LoadPlugin csv
<Plugin csv>
    DataDir "$folder/every-$1"
    StoreRates true
</Plugin>
CONF
    LD_PRELOAD="$folder/disks.so" exec timeout "$2" "$folder/root/usr/sbin/collectd" -f -C "$folder/$1.conf" \
        >"$folder/$1.log" 2>&1
}
collect 1 25 &
collect 10 46 &
wait
cat >"$folder/figures.py" <<'PYTHON'
import csv
import math
import pathlib
import statistics
import sys


def rates(interval, disk, kind, name):
    """Return the values of collectd, without those before its first rate."""
    values = []
    for path in sorted(pathlib.Path(sys.argv[1], f"every-{interval}", "host", f"disk-{disk}").glob(f"{kind}-20*")):
        values += [float(row[name]) for row in csv.DictReader(path.open())]
    return [value for value in values if not math.isnan(value)]


as_seen = True
for disk, true, expected in (
    ("fast", 0.04, (0, 0)),
    ("flash", 0.08, (0, 0.1)),
    ("array", 0.4, (0, 0.4)),
    ("remote", 0.6, (1, 0.6)),
):
    by_second, by_ten = (statistics.median(rates(interval, disk, "disk_time", "read")) for interval in (1, 10))
    print(f"reads of {true} ms: {by_second:.1f} ms every second, {by_ten:.1f} every ten")
    as_seen &= all(abs(time - wanted) <= 0.15 * wanted for time, wanted in zip((by_second, by_ten), expected))
times = rates(1, "seldom", "disk_time", "write")
times = times[: len(times) // 5 * 5]
waited, writes = rates(1, "seldom", "disk_io_time", "weighted_io_time"), rates(1, "seldom", "disk_ops", "write")
then, mean, real = statistics.median(filter(None, times)), statistics.mean(times), sum(waited) / sum(writes)
print(f"writes of 2.4 ms in one second of five: {then:.1f} ms then, {mean:.1f} on average;", end=" ")
print(f"weighted_io_time / operations {real:.1f}")
often = statistics.mean(rates(1, "often", "disk_time", "write"))
print(f"writes of 2.4 ms in each second: {often:.1f} ms on average")
as_seen &= abs(then - 2) < 0.3 and abs(mean - 0.4) < 0.1 and abs(real - 2.4) < 0.3 and abs(often - 2) < 0.2
sys.exit(0 if as_seen else "This has changed.")
PYTHON
python3 "$folder/figures.py" "$folder"
