#!/usr/bin/env bash
# What a process reads and writes by asynchronous I/O is not in rchar, wchar, syscr and syscw of /proc/PID/io: by libaio
# and by io_uring they stay near 0 for 64 MiB that went to the device, where pread and pwrite are counted to the byte.
# The kernel adds to them in the system calls of read and write alone. MySQL's InnoDB and Oracle use libaio for their
# data files, and PostgreSQL 18 reads by io_uring if it is told to: the busiest process of a machine seems to do
# nothing, a backup by cp the most, and the I/Os of a server fall to none with a change of io_method. psutil's
# read_count, read_chars and their likes are these fields, in a list of processes by I/O and in I/Os per process.
# read_bytes and write_bytes of the same file count what went to the device, in bytes; no field counts these I/Os.
#
# A file of 64 MiB, each block of 8 KiB read or written once with direct I/O; the fields are read when fio has ended.
# Run with fio 3.33-3 of Debian 12 on ext4, Linux 6.18, 2026-11-30:
#   psync: 64 MiB in 8,192 I/Os; rchar + wchar 64.1 MiB, syscr + syscw 8452, read_bytes + write_bytes 64 MiB
#   libaio: 64 MiB in 8,192 I/Os; rchar + wchar 0.1 MiB, syscr + syscw 258, read_bytes + write_bytes 64 MiB
#   io_uring: 64 MiB in 8,192 I/Os; rchar + wchar 0.1 MiB, syscr + syscw 256, read_bytes + write_bytes 64 MiB
# Source: fs/read_write.c of Linux (vfs_read and vfs_write count; fs/aio.c and io_uring/rw.c go past them),
# proc_pid_io(5), and documentation of psutil, Process.io_counters. Needs apt-get, and a file system with direct I/O,
# such as ext4 and XFS.
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
cat >"$folder/engines.py" <<'PYTHON'
import json
import os
import subprocess
import sys
from pathlib import Path

folder = sys.argv[1]
fio = [f"{folder}/root/usr/bin/fio", "--name=test", f"--filename={folder}/data", "--size=64M", "--bs=8k", "--direct=1"]
fio += ["--rw=randrw", "--thread", "--overwrite=1", "--iodepth=4", "--output-format=json"]

CHARS, DEVICE = ("rchar", "wchar"), ("read_bytes", "write_bytes")


def run(engine):
    """Run fio, and return its MiB read and written, and the fields of its /proc/PID/io."""
    with open(f"{folder}/output", "w") as output:
        process = subprocess.Popen([*fio, f"--ioengine={engine}"], stdout=output, stderr=subprocess.DEVNULL)
        # The process has ended and is not forgotten yet, so that its counts are complete.
        os.waitid(os.P_PID, process.pid, os.WEXITED | os.WNOWAIT)
        lines = Path(f"/proc/{process.pid}/io").read_text().splitlines()
    if process.wait():
        return None, {}
    counted = {name: int(value) for name, value in (line.split(": ") for line in lines)}
    text = Path(f"{folder}/output").read_text()
    [job] = json.loads(text[text.index("{") :])["jobs"]
    return sum(job[way]["io_bytes"] for way in ("read", "write")) / 2**20, counted


run("psync")  # makes the file
as_seen = True
for engine in ("psync", "libaio", "io_uring"):
    real, counted = run(engine)
    if real is None:
        print(f"{engine}: not permitted here")
        continue
    chars, device = (sum(counted[name] for name in names) / 2**20 for names in (CHARS, DEVICE))
    calls = counted["syscr"] + counted["syscw"]
    print(
        f"{engine}: {real:.0f} MiB in 8,192 I/Os; rchar + wchar {chars:.1f} MiB, syscr + syscw {calls}, "
        f"read_bytes + write_bytes {device:.0f} MiB"
    )
    counts = engine == "psync"
    as_seen &= real == 64 and abs(device - 64) < 3 and (chars > 64) == counts and (calls > 8192) == counts
    as_seen &= counts or chars < 2
sys.exit(0 if as_seen else "This has changed.")
PYTHON
python3 "$folder/engines.py" "$folder"
