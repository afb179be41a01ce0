#!/usr/bin/env bash
# autocannon shows half of the real latencies as soon as it is given a rate: a server that answers every request after
# 50 ms has a p50 of 29 ms and a minimum of 1 ms. Its correction for coordinated omission is on by default with
# overallRate and connectionRate. It enters the requests that a late answer kept from being sent, but takes the interval
# between them as 1 ms at any rate, so that each answer of 50 ms is entered as 50, 49, 48 … 1 ms. That happens to all
# answers: none is late here. So a median at a fixed rate cannot be compared with one without, and the same service
# looks twice as fast in the test that was meant to be strict. The slower the answers, the more weight they have: one
# of a second counts for twenty of 50 ms. ignoreCoordinatedOmission gives what was measured, not corrected at all.
#
# Ten connections here, and a server that answers after 50 ms. A rate of 100/s is half of what they could do.
# Run with autocannon 9.0.0 of npm, on Debian 12 with Node.js 20, 2026-11-29:
#   no rate: p50 56 ms, minimum 50 ms, 1 latency for each answer
#   100/s: p50 29 ms, minimum 1 ms, 56 latencies for each answer
#   100/s, ignoreCoordinatedOmission: p50 52 ms, minimum 49 ms, 1 latency for each answer
# Source: documentation of autocannon, "overallRate" and "ignoreCoordinatedOmission", and of HdrHistogram,
# recordValueWithExpectedInterval (the interval is in the unit of the values). Needs Node.js.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cd "$folder"
npm install --silent --no-audit --no-fund autocannon@9.0.0 >/dev/null
cat >rates.mjs <<'JAVASCRIPT'
import http from "node:http";
import autocannon from "autocannon";

const server = http.createServer((request, response) => setTimeout(() => response.end("row"), 50)).listen(0, "127.0.0.1");
await new Promise((resolve) => server.once("listening", resolve));
const url = `http://127.0.0.1:${server.address().port}`;
const tests = {
  "no rate": {},
  "100/s": { overallRate: 100 },
  "100/s, ignoreCoordinatedOmission": { overallRate: 100, ignoreCoordinatedOmission: true },
};
let asSeen = true;
for (const [title, options] of Object.entries(tests)) {
  const { latency, requests } = await autocannon({ url, connections: 10, duration: 5, ...options });
  const each = latency.totalCount / requests.total;
  const count = each === 1 ? "1 latency" : `${Math.round(each)} latencies`;
  console.log(`${title}: p50 ${latency.p50} ms, minimum ${latency.min} ms, ${count} for each answer`);
  const halved = latency.p50 < 40 && latency.min < 5 && each > 40;
  const real = latency.p50 >= 45 && latency.min >= 45 && each === 1;
  asSeen &&= title === "100/s" ? halved : real;
}
server.close();
if (!asSeen) {
  console.log("This has changed.");
  process.exit(1);
}
JAVASCRIPT
node rates.mjs
