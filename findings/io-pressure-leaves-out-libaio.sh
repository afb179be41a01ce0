#!/usr/bin/env bash
# A process that does nothing but wait for its device by libaio has no I/O pressure: io.pressure has 0.0 % of the time
# for 700 MiB/s with four reads under way, where pread had 66 to 97 % in several runs and io_uring 37 to 83 % at the
# same speed. Linux counts a task as stalled by I/O if it sleeps in a wait that is marked so, and io_getevents sleeps
# as for a socket. By the source the same mark makes iowait of /proc/stat, the wa of top, and the delays of taskstats;
# nor is its state D, which b of vmstat and the load average count. So Oracle, the writes and reads ahead of InnoDB,
# the disks of QEMU with aio=native, and the tests of fio that stand for them, seem to need nothing of the storage that
# they saturate: an alert on pressure is quiet, and a server that goes from libaio to io_uring or pread is stalled from
# one day to the next without a slower read. Waits for io_uring are not in D either: they are in the pressure and in
# iowait, but not in b and the load. fio's own figures, its speed and the reads under way, are much the same for all
# three.
#
# fio reads blocks of 1 MiB with direct I/O for four seconds, four at a time, in a cgroup of its own; its threads'
# states are looked at twenty times a second.
# Run with fio 3.33-3 of Debian 12 on ext4, Linux 6.18, 2026-11-30:
#   psync: 677 MiB/s, 4.0 reads under way; stalled by I/O for 85.0% of the time; a thread in D in 91% of the looks
#   libaio: 688 MiB/s, 3.9 reads under way; stalled by I/O for 0.0% of the time; a thread in D in 1% of the looks
#   io_uring: 693 MiB/s, 3.9 reads under way; stalled by I/O for 48.7% of the time; a thread in D in 0% of the looks
# Source: kernel/sched/core.c and psi.c of Linux (in_iowait, which io_schedule sets), fs/aio.c (read_events sleeps
# without it) and io_uring (io_cqring_wait sets it while I/O is pending); Documentation/accounting/psi.rst, which has
# nothing on it. Needs apt-get, a file system with direct I/O, and a cgroup v2 in which a group can be made: as root, or
# in systemd-run --user --scope.
set -euo pipefail
folder=$(mktemp -d)
group=$(awk '$3 == "cgroup2" { print $2; exit }' /proc/mounts)$(sed -n 's/^0:://p' /proc/self/cgroup)
group=${group%/}/libaio-$$
trap 'rmdir "$group" 2>/dev/null || true; rm -rf "$folder"' EXIT
mkdir "$group"
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
cat >"$folder/engines.py" <<'PYTHON'
import json
import os
import subprocess
import sys
import time
from pathlib import Path

folder, group = sys.argv[1:]
fio = [f"{folder}/root/usr/bin/fio", "--name=test", f"--filename={folder}/data", "--size=64M", "--bs=1M", "--direct=1"]
fio += ["--rw=randread", "--thread", "--group_reporting", "--output-format=json", "--time_based", "--runtime=4"]


def stalled_s():
    """The time in which any task of the group was stalled by I/O."""
    some, _ = Path(group, "io.pressure").read_text().splitlines()
    return int(some.rpartition("=")[2]) / 1e6


def states(process):
    """The states of the process's threads."""
    for stat in Path(f"/proc/{process.pid}/task").glob("*/stat"):
        try:
            yield stat.read_text().rpartition(")")[2].split()[0]
        except OSError:
            continue  # the thread has ended


def run(engine, *options):
    """Run fio; return its result, the share of time stalled by I/O, and the share of looks with a thread in D."""
    before, looks = stalled_s(), []
    with open(f"{folder}/output", "w") as output:
        process = subprocess.Popen([*fio, f"--ioengine={engine}", *options], stdout=output, stderr=subprocess.DEVNULL)
        Path(group, "cgroup.procs").write_text(str(process.pid))
        while process.poll() is None:
            looks.append("D" in states(process))
            time.sleep(0.05)
    if process.returncode:
        return None, 0, 0
    text = Path(f"{folder}/output").read_text()
    [job] = json.loads(text[text.index("{") :])["jobs"]
    return job["read"], (stalled_s() - before) / (job["read"]["runtime"] / 1000), sum(looks) / len(looks)


Path(folder, "data").write_bytes(os.urandom(2**26))
os.sync()
as_seen, pressures, speeds = True, {}, []
for engine, *options in (("psync", "--numjobs=4"), ("libaio", "--iodepth=4"), ("io_uring", "--iodepth=4")):
    reads, pressure, waiting = run(engine, *options)
    if reads is None:
        print(f"{engine}: not permitted here")
        continue
    pressures[engine] = pressure
    speeds.append(reads["bw"])
    under_way = reads["iops"] * reads["clat_ns"]["mean"] / 1e9
    print(
        f"{engine}: {reads['bw'] / 1024:.0f} MiB/s, {under_way:.1f} reads under way; stalled by I/O for "
        f"{pressure:.1%} of the time; a thread in D in {waiting:.0%} of the looks"
    )
    as_seen &= under_way > 2 and (waiting > 0.3) == (engine == "psync")
as_seen &= min(speeds) > max(speeds) / 3 and pressures["libaio"] < 0.05 and all(
    pressure > 0.15 for engine, pressure in pressures.items() if engine != "libaio"
)
sys.exit(0 if as_seen else "This has changed.")
PYTHON
python3 "$folder/engines.py" "$folder" "$group"
