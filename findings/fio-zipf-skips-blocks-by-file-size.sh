#!/usr/bin/env bash
# fio's zipf and pareto never read 70 % of a file of 100 MiB, in blocks of 8 KiB, and every block of one of 128 MiB.
# What they leave out depends on the size alone, 60 % of 500 MiB, 48 % of 1,000, 8 % of 50 GiB, or 49 % of 1,000 GiB in
# blocks of 16 KiB, whatever the parameter and however long the test. fio scatters the ranks of the distribution over
# the file by a multiplication, and takes the product modulo the number of blocks: if that is a power of two, each rank
# has a block of its own, and otherwise ranks share blocks, in a pattern by the number, and the others have none. So the
# same test finds all of its reads in a cache of a third of the file, or 78 %, as the file is of 100 or 128 MiB; a curve
# of hits over memory, or of tiers of storage, ends where fio's arithmetic does; and the cold half of a file, for which
# a test is made larger than memory, is not there.
#
# A file is read twenty times over by zipf:0.9, and the later half of these reads goes through a cache that drops what
# was read longest ago. The null engine is fio's own, for which it chooses blocks as for any other, and reads none.
# Run with fio 3.33-3 of Debian 12, 2026-11-30:
#   100 MiB: 70% of the blocks unread; 100% found by a cache of a third, 100% by one of a half
#   128 MiB: 1% of the blocks unread; 78% found by a cache of a third, 85% by one of a half
#   500 MiB: 60% of the blocks unread; 97% found by a cache of a third, 100% by one of a half
# Source: HOWTO of fio, "random_distribution" (nothing on it); zipf_next and pareto_next in lib/zipf.c of fio and
# __hash_u64 in its hash.h, by which the shares of other sizes were reckoned. Needs apt-get.
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
export LD_LIBRARY_PATH="$folder/root/$lib:$folder/root/usr/$lib"
cat >"$folder/blocks.py" <<'PYTHON'
import os
import subprocess
import sys
from collections import OrderedDict

BLOCK = 8192
folder = sys.argv[1]


def found_share(blocks, size):
    """Return the share of the later half of reads that a cache of that many blocks answers."""
    cache, found = OrderedDict(), 0
    for place, block in enumerate(blocks):
        if block in cache:
            found += place >= len(blocks) // 2
            cache.move_to_end(block)
        else:
            cache[block] = True
            if len(cache) > size:
                cache.popitem(last=False)
    return found / (len(blocks) - len(blocks) // 2)


as_seen = True
for mib in (100, 128, 500):
    count = mib * 2**20 // BLOCK
    log = f"{folder}/reads-{mib}"
    # The null engine reads nothing, and fio writes down what it would read.
    fio = [f"{folder}/root/usr/bin/fio", "--name=test", "--filename=file", f"--size={mib}M", f"--bs={BLOCK}"]
    fio += ["--ioengine=null", "--thread", "--rw=randread", "--random_distribution=zipf:0.9"]
    subprocess.run([*fio, f"--io_size={20 * mib}M", f"--write_iolog={log}", "--output=/dev/null"], check=True)
    with open(log) as lines:
        blocks = [int(words[3]) // BLOCK for words in map(str.split, lines) if len(words) == 5 and words[2] == "read"]
    os.remove(log)
    unread = 1 - len(set(blocks)) / count
    third, half = (found_share(blocks, count // parts) for parts in (3, 2))
    print(
        f"{mib} MiB: {unread:.0%} of the blocks unread; "
        f"{third:.0%} found by a cache of a third, {half:.0%} by one of a half"
    )
    as_seen &= unread > 0.55 and third > 0.9 and half > 0.99 if mib != 128 else unread < 0.05 and half < 0.9
sys.exit(0 if as_seen else "This has changed.")
PYTHON
python3 "$folder/blocks.py" "$folder"
