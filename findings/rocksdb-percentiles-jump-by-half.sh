#!/usr/bin/env bash
# RocksDB shows the same p50 for storage that takes 54 ms and for storage that takes 65, and half as much again for
# storage that takes 80. Its statistics count each time in one of a row of ranges, each half as wide again as the one
# before, such as 50 to 75 and 75 to 110 ms, and take the times within a range for evenly spread. But reads of a device
# are nearly alike: most are in one range, and then the p50 is near the range's middle and the p95 near its end, neither
# of them a time that many reads took. So storage that becomes a fifth slower changes no percentile, or makes them jump
# by half, and two devices that differ by a hair on either side of such a bound differ by that. It holds for each of its
# histograms, of gets, flushes, stalls, and so for what TiKV and db_bench show of them. SUM / COUNT, in the same line,
# is exact.
#
# Of 60 reads of a block 54 wait in a library for the device's time, three for 200 ms, and three, found in memory, not
# at all.
# Run with rocksdict 0.3.29 of PyPI (RocksDB 9.8.4), on Debian 12, 2026-11-30:
#   device of 54 ms: p50 54.2 ms, p95 59.5, mean 59.5; RocksDB: p50 62.5 ms, p95 75.0, mean 59.5
#   device of 65 ms: p50 65.2 ms, p95 71.0, mean 69.2; RocksDB: p50 62.5 ms, p95 75.0, mean 69.2
#   device of 80 ms: p50 80.2 ms, p95 87.3, mean 82.8; RocksDB: p50 92.5 ms, p95 110.0, mean 82.7
# Source: monitoring/histogram.cc of RocksDB 9.8.4 (HistogramBucketMapper and HistogramStat::Percentile), the same in
# August 2026; its wiki, "Statistics" (nothing on it). Needs a C compiler.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT

python3 -m venv "$folder/venv"
"$folder/venv/bin/pip" install --quiet --disable-pip-version-check rocksdict==0.3.29
cat >"$folder/slow.c" <<'C'
#define _GNU_SOURCE
#include <dlfcn.h>
#include <stdlib.h>
#include <unistd.h>

static void wait_for_device(void) {
    static int reads;
    const char *time_us = getenv("DEVICE_US");
    if (time_us) usleep(++reads % 20 == 0 ? 200000 : reads % 20 == 1 ? 0 : atoi(time_us));
}

ssize_t pread(int file, void *buffer, size_t size, off_t offset) {
    ssize_t (*next)(int, void *, size_t, off_t) = dlsym(RTLD_NEXT, "pread");
    wait_for_device();
    return next(file, buffer, size, offset);
}

ssize_t pread64(int file, void *buffer, size_t size, off_t offset) {
    ssize_t (*next)(int, void *, size_t, off_t) = dlsym(RTLD_NEXT, "pread64");
    wait_for_device();
    return next(file, buffer, size, offset);
}
C
cc -O1 -shared -fPIC -o "$folder/slow.so" "$folder/slow.c" -ldl
cat >"$folder/reads.py" <<'PYTHON'
import os
import re
import sys
import time

from rocksdict import BlockBasedOptions, Options, Rdict


def run(device_ms):
    """Return p50, p95 and mean in ms: of the times that the client measured, and by RocksDB's statistics."""
    options = Options(raw_mode=True)
    options.enable_statistics()
    blocks = BlockBasedOptions()
    blocks.disable_cache()
    options.set_block_based_table_factory(blocks)
    store = Rdict(f"{sys.argv[1]}/{device_ms}", options)
    keys = [b"%03d" % number for number in range(60)]
    for key in keys:
        store[key] = os.urandom(4000)
    store.flush()
    times = []
    os.environ["DEVICE_US"] = str(device_ms * 1000)
    for key in keys:
        start = time.perf_counter()
        store[key]
        times.append((time.perf_counter() - start) * 1000)
    del os.environ["DEVICE_US"]
    statistics = re.search(
        r"db\.get\.micros P50 : (\S+) P95 : (\S+) .* COUNT : (\d+) SUM : (\d+)", options.get_statistics()
    )
    p50, p95, count, total = map(float, statistics.groups())
    store.close()
    times.sort()
    return times[30], times[56], sum(times) / len(times), p50 / 1000, p95 / 1000, total / count / 1000


medians = {}
for device_ms in (54, 65, 80):
    own_p50, own_p95, own_mean, p50, p95, mean = run(device_ms)
    print(f"device of {device_ms} ms: p50 {own_p50:.1f} ms, p95 {own_p95:.1f}, mean {own_mean:.1f};", end=" ")
    print(f"RocksDB: p50 {p50:.1f} ms, p95 {p95:.1f}, mean {mean:.1f}")
    medians[device_ms] = own_p50, p50
own_54, own_65, own_80 = (own for own, _ in medians.values())
p50_54, p50_65, p50_80 = (p50 for _, p50 in medians.values())
as_seen = own_65 > 1.1 * own_54 and own_80 < 1.35 * own_65
as_seen &= abs(p50_65 / p50_54 - 1) < 0.05 and p50_80 > 1.4 * p50_65
sys.exit(0 if as_seen else "This has changed.")
PYTHON
LD_PRELOAD="$folder/slow.so" "$folder/venv/bin/python" "$folder/reads.py" "$folder"
