#!/usr/bin/env bash
# fio's random reads hit a cache far less often than a database's: through a cache of half the file 16 % of them find
# their block, where a database that reads at random finds 50 %. By default fio reads each block once before it reads
# any again, so a block that was just read is the last to come back, which is the worst for a cache that keeps what was
# read lately. The caches of arrays, of hypervisors and of the system are judged far too low by such a test. Mixed tests
# share the order: within a pass no read ever finds a block that the test wrote. norandommap=1 is what a database does.
# And all runs of a job read the same blocks in the same order (randrepeat=1): who repeats a short test measures the
# cache after all, which holds what the run before it read.
#
# The order is taken from fio's own log of its I/Os, and is read through caches that drop what was read longest ago.
# Run with fio 3.33-3 of Debian 12, 8-KiB blocks, a file of 1,024, 2026-11-29:
#   by default: 16% found by a cache of half the file, 68% by one of 90%
#   norandommap: 50% found by a cache of half the file, 89% by one of 90%
#   a second run by default: the same blocks in the same order
#   randrw by default: 0 reads of a block that was written in the same pass
# Source: HOWTO of fio, "norandommap" and "randrepeat" (what is read, not what it does to a cache). Needs apt-get.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
# Everything of apt's is in the folder: its lists, its packages, and a system on which nothing is installed.
apt() {
    apt-get -qq -o Debug::NoLocking=1 -o APT::Sandbox::User=root -o Dir::State::status="$folder/none" \
        -o Dir::State::lists="$folder/lists" -o Dir::Cache="$folder" -o Dir::Cache::archives="$folder/debs" "$@" >/dev/null
}
mkdir -p "$folder/debs/partial" "$folder/lists/partial" "$folder/root"
: >"$folder/none"
apt update
apt --no-install-recommends --download-only -y install fio=3.33-3
for deb in "$folder"/debs/*.deb; do
    case ${deb##*/} in libc6_* | libgcc* | libc-bin*) ;; *) dpkg -x "$deb" "$folder/root" ;; esac
done
lib=lib/$(uname -m)-linux-gnu

# Writes the log of a run to a file.
issue() {
    local log=$1
    shift
    (cd "$folder" && LD_LIBRARY_PATH="$folder/root/$lib:$folder/root/usr/$lib" timeout 60 \
        "$folder/root/usr/bin/fio" --name=reads --filename=data --size=8M --bs=8k --ioengine=psync --rate_iops=5000 \
        --time_based --runtime=4 --write_iolog="$log" --output=/dev/null --rw=randread "$@")
}
issue default.log
issue again.log
issue norandommap.log --norandommap=1
issue mixed.log --rw=randrw
cat >"$folder/caches.py" <<'PYTHON'
import sys
from collections import OrderedDict

BLOCKS = 1024


def ios(name):
    """Return what a run issued, in order: operation and block."""
    lines = [line.split() for line in open(f"{sys.argv[1]}/{name}.log")]
    return [(words[2], int(words[3]) // 8192) for words in lines if len(words) == 5]


def hit_share(blocks, size):
    """Return the share of reads that find their block in a cache of a size, after one pass over the file."""
    cache, hits = OrderedDict(), 0
    for place, block in enumerate(blocks):
        if block in cache:
            hits += place >= BLOCKS
            cache.move_to_end(block)
        else:
            cache[block] = True
            if len(cache) > size:
                cache.popitem(last=False)
    return hits / (len(blocks) - BLOCKS)


shares = {}
for name, title in (("default", "by default"), ("norandommap", "norandommap")):
    blocks = [block for _, block in ios(name)]
    shares[name] = half, most = hit_share(blocks, BLOCKS // 2), hit_share(blocks, BLOCKS * 9 // 10)
    print(f"{title}: {half:.0%} found by a cache of half the file, {most:.0%} by one of 90%")
first, second = ios("default"), ios("again")
both = min(len(first), len(second))
same = first[:both] == second[:both]
print(f"a second run by default: {'the same blocks in the same order' if same else 'other blocks'}")
written, read_back = set(), 0
for operation, block in ios("mixed")[:BLOCKS]:
    if operation == "write":
        written.add(block)
    read_back += operation == "read" and block in written
print(f"randrw by default: {read_back} reads of a block that was written in the same pass")
as_seen = shares["default"][0] < 0.25 and shares["default"][1] < 0.8 and len(written) > 300
as_seen &= 0.4 < shares["norandommap"][0] < 0.6 and same and read_back == 0
sys.exit(0 if as_seen else "This has changed.")
PYTHON
python3 "$folder/caches.py" "$folder"
