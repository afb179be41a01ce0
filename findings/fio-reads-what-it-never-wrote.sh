#!/usr/bin/env bash
# fio's read test of a file that its write test left reads hardly anything from the storage. For a job that only writes,
# fio lays its file out by fallocate, which gives it room without data. Blocks that the test did not get to are known to
# be empty, and the file system answers reads of them by itself, direct I/O or not. After writes to a tenth of a file
# nine of ten random reads never reach the device: several times the real IOPS, and a median of 1 µs that no storage
# has. It is the usual job file: some time of writes, then some time of reads of the same file. The larger the file and
# the slower the writes, the faster are the reads. A file that the read test lays out itself is written whole.
#
# A file of 64 MiB, direct I/O of 8 KiB; what came from the device is the system's count (getrusage).
# Run with fio 3.33-3 of Debian 12 on ext4, 2026-11-30:
#   reads alone: 8192 reads, 100% of them from the device, median 38 µs
#   after writes to a tenth: 8192 reads, 10% of them from the device, median 1 µs
#   11.3 times the IOPS
# Source: HOWTO of fio, "fallocate" (by default, where the system has it; nothing on reads), and extend_file in its
# filesetup.c (for reads and for overwrite=1 alone a layout is written). Needs apt-get, and a file system with fallocate
# and direct I/O, such as ext4 and XFS.
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
cat >"$folder/phases.py" <<'PYTHON'
import json
import resource
import subprocess
import sys

folder = sys.argv[1]
fio = [f"{folder}/root/usr/bin/fio", "--output-format=json", f"--filename={folder}/data", "--size=64M", "--bs=8k"]
fio += ["--direct=1", "--ioengine=psync", "--thread"]
READS = ["--name=reads", "--stonewall", "--rw=randread"]


def run(*phases):
    """Run fio on a new file, and return the statistics of its last phase and the bytes that the device read for all."""
    subprocess.run(["rm", "-f", f"{folder}/data"], check=True)
    before = resource.getrusage(resource.RUSAGE_CHILDREN).ru_inblock
    output = subprocess.run([*fio, *phases], stdout=subprocess.PIPE, text=True, check=True, timeout=120).stdout
    device_bytes = (resource.getrusage(resource.RUSAGE_CHILDREN).ru_inblock - before) * 512
    return json.loads(output[output.index("{") :])["jobs"][-1]["read"], device_bytes


run(*READS, "--number_ios=1")  # reads fio's own program from the disk
rates, as_seen = [], True
tests = {
    "reads alone": ([], 1),
    "after writes to a tenth": (["--name=writes", "--rw=randwrite", "--number_ios=819"], 0.1),
}
for title, (writes, expected) in tests.items():
    read, device_bytes = run(*writes, *READS)
    share, median = device_bytes / read["io_bytes"], read["clat_ns"]["percentile"]["50.000000"] / 1000
    rates.append(read["iops"])
    print(f"{title}: {read['total_ios']} reads, {share:.0%} of them from the device, median {median:.0f} µs")
    as_seen &= read["total_ios"] == 8192 and abs(share - expected) < 0.06
print(f"{rates[1] / rates[0]:.1f} times the IOPS")
sys.exit(0 if as_seen and rates[1] > 1.5 * rates[0] else "This has changed.")
PYTHON
python3 "$folder/phases.py" "$folder"
