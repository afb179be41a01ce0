#!/usr/bin/env bash
# wrk shows a p75 of 55 ms for a service that gives 86 % of its answers within 2: for each slow answer it enters several
# that never were. After the run it corrects for coordinated omission, as if each connection had had to send a request
# every so often; but it has no rate, so it takes for that the mean time between a connection's requests, which is the
# mean latency. An answer of more than twice the mean is entered again with the mean taken off, and again, down to the
# mean. So wherever hits and misses of a cache, or reads and flushes, differ in speed, the slow ones fill the
# percentiles below them, and the latency shown as average is none: connections / requests per second is. The fewer the
# misses, the more are entered for each: with 2 % of them the average is four times the real one. A stall, for which
# such corrections are made, is left out: an answer that takes longer than --timeout, 2 s by default, is counted as a
# request and has no latency. All is well only if all answers are alike.
#
# Four connections, hits of 2 ms and misses of 100. The server notes its own times; the mean is by the rate.
# Run with wrk 4.1.0-3+b2 of Debian 12, 2026-11-30:
#   all answers alike: p50 2.1 ms, p75 2.2, mean 2.6, maximum 20; wrk: p50 2.3 ms, p75 2.4, mean 2.7, maximum 20
#   one of 7 a miss: p50 2.1 ms, p75 2.1, mean 16.3, maximum 105; wrk: p50 6.9 ms, p75 55.2, mean 30.8, maximum 107
#   one of 50 a miss: p50 2.1 ms, p75 2.2, mean 4.4, maximum 104; wrk: p50 2.3 ms, p75 22.2, mean 18.2, maximum 105
#   a stall of 3 s: p50 2.1 ms, p75 2.2, mean 5.3, maximum 2998; wrk: p50 2.3 ms, p75 2.3, mean 2.6, maximum 11
# Source: wrk's README (no word of a correction; its list of changes has "Improve correction of coordinated omission"),
# and main and response_complete of wrk.c and stats_correct of stats.c, in 4.1.0 as in 4.2.0. Needs apt-get.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
# Everything of apt's is in the folder: its lists, its packages, and a system on which nothing is installed.
apt() {
    apt-get -qq -o Debug::NoLocking=1 -o APT::Sandbox::User=root -o Dir::State::status="$folder/none" \
        -o Dir::State::lists="$folder/lists" -o Dir::Cache="$folder" -o Dir::Cache::archives="$folder/debs" "$@" >/dev/null
}
mkdir -p "$folder/debs/partial" "$folder/lists/partial" "$folder/root"
: >"$folder/none"
apt update
apt --no-install-recommends --download-only -y install wrk=4.1.0-3+b2
for deb in "$folder"/debs/*.deb; do
    case ${deb##*/} in libc6_* | libgcc* | libc-bin*) ;; *) dpkg -x "$deb" "$folder/root" ;; esac
done
lib=lib/$(uname -m)-linux-gnu
export LD_LIBRARY_PATH="$folder/root/$lib:$folder/root/usr/$lib"
cat >"$folder/report.lua" <<'LUA'
function done(summary, latency, requests)
    print("figures", latency:percentile(50), latency:percentile(75), latency.mean, latency.max)
    print("run", summary.requests, summary.duration)
end
LUA
cat >"$folder/service.py" <<'PYTHON'
import contextlib
import itertools
import socketserver
import subprocess
import sys
import threading
import time

CONNECTIONS, SECONDS = 4, 6
HIT, MISS = 0.002, 0.1
folder = sys.argv[1]


def run(delay):
    """Return the server's own times in ms, the mean by the rate and wrk's figures in us."""
    times, numbers, start = [], itertools.count(1), time.monotonic()

    class Service(socketserver.StreamRequestHandler):
        def answer(self):
            begin = time.monotonic()
            time.sleep(delay(next(numbers), begin - start))
            times.append((time.monotonic() - begin) * 1000)
            self.wfile.write(b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok")

        def handle(self):
            with contextlib.suppress(ConnectionError):  # wrk ends in the middle of requests
                for line in self.rfile:
                    if line == b"\r\n":
                        self.answer()

    with socketserver.ThreadingTCPServer(("127.0.0.1", 0), Service) as server:
        threading.Thread(target=server.serve_forever).start()
        address = f"http://127.0.0.1:{server.server_address[1]}/"
        options = ["-t1", f"-c{CONNECTIONS}", f"-d{SECONDS}", "-s", f"{folder}/report.lua", address]
        wrk = subprocess.run([f"{folder}/root/usr/bin/wrk", *options], stdout=subprocess.PIPE, text=True, check=True)
        server.shutdown()
    lines = dict(line.split(maxsplit=1) for line in wrk.stdout.splitlines() if line.startswith(("figures", "run")))
    figures, (requests, duration) = (map(float, lines[name].split()) for name in ("figures", "run"))
    return sorted(times), CONNECTIONS * duration / requests, *figures


as_seen = True
for title, delay in (
    ("all answers alike", lambda number, second: HIT),
    ("one of 7 a miss", lambda number, second: HIT if number % 7 else MISS),
    ("one of 50 a miss", lambda number, second: HIT if number % 50 else MISS),
    ("a stall of 3 s", lambda number, second: 5 - second if 2 < second < 5 else HIT),
):
    times, *figures = run(delay)
    own_mean, p50, p75, mean, maximum = (us / 1000 for us in figures)
    own_p50, own_p75, own_maximum = times[len(times) // 2], times[len(times) * 3 // 4], times[-1]
    print(f"{title}: p50 {own_p50:.1f} ms, p75 {own_p75:.1f}, mean {own_mean:.1f}, maximum {own_maximum:.0f};", end=" ")
    print(f"wrk: p50 {p50:.1f} ms, p75 {p75:.1f}, mean {mean:.1f}, maximum {maximum:.0f}")
    as_seen &= (p75 > 5 * own_p75) == ("miss" in title)
    as_seen &= mean > 1.3 * own_mean or "miss" not in title
    as_seen &= (maximum < own_maximum / 2) == ("stall" in title)
sys.exit(0 if as_seen else "This has changed.")
PYTHON
python3 "$folder/service.py" "$folder"
