#!/usr/bin/env bash
# The data that load tools write by default compress, and how far depends on the size of their I/O: fio's writes of
# 4 KiB, one at a time, shrink to a seventh in an array that compresses in units of 32 KiB, those of 32 KiB or more not
# at all. fio fills a buffer once with random bytes for each I/O in flight and then changes some of them, which defeats
# deduplication and not compression: neighbouring blocks are nearly the same. So small writes seem cheap, and the space
# and the flash cache behind an array large; the same test at queue depth 32 is another one. sysbench's fileio writes
# nothing but zeros, in its files and while it runs, which arrays, ZFS and thin volumes do not store at all.
# fio's refill_buffers=1 writes data that do not compress.
#
# What was written is compressed with LZ4 in units, each no larger than it was, as arrays do.
# Run with fio 3.33-3 and sysbench 1.0.20+ds-5 of Debian 12, and lz4 4.4.5 of PyPI, 2026-11-29:
#   fio, 4 KiB: 1.1 to 1 in units of 4 KiB, 2.0 of 8 KiB, 6.7 of 32 KiB
#   fio, 8 KiB: 1.1 to 1 in units of 4 KiB, 1.1 of 8 KiB, 3.8 of 32 KiB
#   fio, 8 KiB, 32 in flight: 1.1 to 1 in units of 4 KiB, 1.1 of 8 KiB, 1.1 of 32 KiB
#   fio, 8 KiB, refill_buffers: 1.0 to 1 in units of 4 KiB, 1.0 of 8 KiB, 1.0 of 32 KiB
#   sysbench fileio rndwr: every byte 0
# Source: HOWTO of fio, "scramble_buffers" (it is against deduplication; how far data then compress is not told), and
# sysbench's issue 132 (buffers are zeros). Needs apt-get.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
# Everything of apt's is in the folder: its lists, its packages, and a system on which nothing is installed.
apt() {
    apt-get -qq -o Debug::NoLocking=1 -o APT::Sandbox::User=root -o Dir::State::status="$folder/none" \
        -o Dir::State::lists="$folder/lists" -o Dir::Cache="$folder" -o Dir::Cache::archives="$folder/debs" "$@" >/dev/null
}
mkdir -p "$folder/debs/partial" "$folder/lists/partial" "$folder/root" "$folder/files" "$folder/sysbench"
: >"$folder/none"
apt update
apt --no-install-recommends --download-only -y install fio=3.33-3 sysbench=1.0.20+ds-5
for deb in "$folder"/debs/*.deb; do
    case ${deb##*/} in libc6_* | libgcc* | libc-bin*) ;; *) dpkg -x "$deb" "$folder/root" ;; esac
done
lib=lib/$(uname -m)-linux-gnu
run() { LD_LIBRARY_PATH="$folder/root/$lib:$folder/root/usr/$lib" timeout 60 "$folder/root/usr/bin/$@"; }
python3 -m venv "$folder/venv"
"$folder/venv/bin/pip" install --quiet --disable-pip-version-check lz4==4.4.5

# Writes a file with fio and prints how far it compresses.
written() {
    local title=$1
    shift
    run fio --name=write --filename="$folder/files/data" --size=32M --rw=write --output=/dev/null "$@"
    "$folder/venv/bin/python" - "$title" "$folder/files/data" <<'PYTHON'
import sys

import lz4.block

data = open(sys.argv[2], "rb").read()
ratios = {}
for size in (4096, 8192, 32768):
    units = (data[begin : begin + size] for begin in range(0, len(data), size))
    ratios[size] = len(data) / sum(min(size, len(lz4.block.compress(unit, store_size=False))) for unit in units)
four, eight, most = ratios.values()
print(f"{sys.argv[1]}: {four:.1f} to 1 in units of 4 KiB, {eight:.1f} of 8 KiB, {most:.1f} of 32 KiB")
expected = {"fio, 4 KiB": (1, 2, 6.7), "fio, 8 KiB": (1, 1, 3.8)}.get(sys.argv[1], (1, 1, 1))
sys.exit(any(abs(ratio / wanted - 1) > 0.2 for ratio, wanted in zip(ratios.values(), expected)))
PYTHON
    rm "$folder/files/data"
}
status=0
written "fio, 4 KiB" --bs=4k || status=1
written "fio, 8 KiB" --bs=8k || status=1
written "fio, 8 KiB, 32 in flight" --bs=8k --ioengine=libaio --iodepth=32 || status=1
written "fio, 8 KiB, refill_buffers" --bs=8k --refill_buffers=1 || status=1
cd "$folder/sysbench"
options=(fileio --file-total-size=32M --file-num=4)
run sysbench "${options[@]}" prepare >/dev/null
before=$(stat --format=%Y%y test_file.*)
run sysbench "${options[@]}" --file-test-mode=rndwr --events=10000 --time=0 run >/dev/null
[ "$before" != "$(stat --format=%Y%y test_file.*)" ] || { echo "Nothing was written."; status=1; }
if [ "$(cat test_file.* | tr -d '\0' | wc -c)" = 0 ]; then
    echo "sysbench fileio rndwr: every byte 0"
else
    echo "sysbench fileio rndwr: other bytes too"
    status=1
fi
[ $status = 0 ] || echo "This has changed."
exit $status
