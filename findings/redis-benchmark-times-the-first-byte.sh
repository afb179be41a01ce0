#!/usr/bin/env bash
# redis-benchmark shows 1 ms for a GET that takes 120: its latency ends with the first bytes of an answer, however long
# the rest is on its way, while its requests per second wait for all of it. A SET of the same value has to be there
# before anything comes back, and shows 118 ms. So reads of large values seem to cost nothing, whatever the network
# takes for them, and writes of the same size seem a hundred times slower. With -P all answers of a pipeline get the
# latency of the first. And no latency is more than 3 s: a server that stood still for six, for a flush, a fork or
# swapping, has a maximum of 3.000 s, and a mean to match. The rate betrays both: clients x pipeline / requests per
# second is the mean that they really waited.
#
# One client, with a value of 1 MB, or ten of 100 kB in a pipeline, through a connection of 10 MB per second; then small
# GETs by a server that is paused for 6 s.
# Run with redis-tools and redis-server 5:7.0.15-1~deb12u10 of Debian 12, 2026-11-30:
#   SET of 1 MB: 118 ms by the rate of 8 per second; average 118.1 ms, p50 119.0, maximum 133.0
#   GET of 1 MB: 120 ms by the rate of 8 per second; average 1.1 ms, p50 0.5, maximum 6.5
#   GET of 100 kB, 10 at a time: 118 ms by the rate of 85 per second; average 1.0 ms, p50 0.4, maximum 5.2
#   GET, and a pause of 6 s: 8.3 s in all, maximum 3.000 s
# Source: redis-benchmark --help (nothing on either), and readHandler in redis-benchmark.c of Redis 7.0.15
# and of 8.0-m01. Needs apt-get.
set -euo pipefail
folder=$(mktemp -d)
trap 'kill "${server:-}" 2>/dev/null || true; wait; rm -rf "$folder"' EXIT
# Everything of apt's is in the folder: its lists, its packages, and a system on which nothing is installed.
apt() {
    apt-get -qq -o Debug::NoLocking=1 -o APT::Sandbox::User=root -o Dir::State::status="$folder/none" \
        -o Dir::State::lists="$folder/lists" -o Dir::Cache="$folder" -o Dir::Cache::archives="$folder/debs" "$@" >/dev/null
}
mkdir -p "$folder/debs/partial" "$folder/lists/partial" "$folder/root"
: >"$folder/none"
apt update
apt --no-install-recommends --download-only -y install {redis-server,redis-tools}=5:7.0.15-1~deb12u10
for deb in "$folder"/debs/*.deb; do
    case ${deb##*/} in libc6_* | libgcc* | libc-bin*) ;; *) dpkg -x "$deb" "$folder/root" ;; esac
done
lib=lib/$(uname -m)-linux-gnu
export LD_LIBRARY_PATH="$folder/root/$lib:$folder/root/usr/$lib"
"$folder/root/usr/bin/redis-server" --port 0 --unixsocket "$folder/server" --dir "$folder" --save "" >"$folder/log" &
server=$!

cat >"$folder/benchmark.py" <<'PYTHON'
import csv
import socket
import subprocess
import sys
import threading
import time

RATE = 10_000_000
folder = sys.argv[1]
programs = f"{folder}/root/usr/bin"


def copy(source, target):
    """Copy all bytes at the rate of the connection."""
    due = 0
    while data := source.recv(16384):
        target.sendall(data)
        due = max(due, time.monotonic()) + len(data) / RATE
        time.sleep(max(0, due - time.monotonic()))
    target.shutdown(socket.SHUT_WR)


def connect(listener):
    while True:
        client, _ = listener.accept()
        server = socket.socket(socket.AF_UNIX)
        server.connect(f"{folder}/server")
        for pair in ((client, server), (server, client)):
            threading.Thread(target=copy, args=pair, daemon=True).start()


def ask(*words):
    """Return the server's answer to a command."""
    command = [f"{programs}/redis-cli", "-s", f"{folder}/server", *words]
    return subprocess.run(command, stdout=subprocess.PIPE, text=True, check=True).stdout


def measure(socket_name, count, *words):
    """Return the row of results of redis-benchmark with one client."""
    command = [f"{programs}/redis-benchmark", "--csv", "-s", f"{folder}/{socket_name}", "-c", "1", "-n", str(count)]
    output = subprocess.run([*command, *words], stdout=subprocess.PIPE, text=True, check=True, timeout=120).stdout
    [row] = csv.DictReader(output.splitlines())
    return {name: float(value) for name, value in row.items() if name != "test"}


listener = socket.socket(socket.AF_UNIX)
listener.bind(f"{folder}/slow")
listener.listen()
threading.Thread(target=connect, args=(listener,), daemon=True).start()
while not subprocess.run([f"{programs}/redis-cli", "-s", f"{folder}/server", "ping"], capture_output=True).stdout:
    time.sleep(0.1)

as_seen = True
for title, size, pipeline, command in (
    ("SET of 1 MB", 1_000_000, 1, "set"),
    ("GET of 1 MB", 1_000_000, 1, "get"),
    ("GET of 100 kB, 10 at a time", 100_000, 10, "get"),
):
    ask("EVAL", f"redis.call('SET', 'key', string.rep('x', {size}))", "0")
    words = ["get", "key"] if command == "get" else ["-t", "set", "-d", str(size)]
    row = measure("slow", 20 * pipeline, "-P", str(pipeline), *words)
    real = pipeline / row["rps"] * 1000
    print(
        f"{title}: {real:.0f} ms by the rate of {row['rps']:.0f} per second; average "
        f"{row['avg_latency_ms']:.1f} ms, p50 {row['p50_latency_ms']:.1f}, maximum {row['max_latency_ms']:.1f}"
    )
    as_seen &= (row["avg_latency_ms"] < real / 4) == (command == "get") and real > 80
PAUSE = 6


def pause():
    while "cmdstat_get:calls=" not in ask("INFO", "commandstats"):
        time.sleep(0.05)
    ask("CLIENT", "PAUSE", str(PAUSE * 1000))


ask("SET", "key", "x")
ask("CONFIG", "RESETSTAT")
pauser = threading.Thread(target=pause)
pauser.start()
row = measure("server", 100_000, "get", "key")
pauser.join()
total = 100_000 / row["rps"]
longest = row["max_latency_ms"] / 1000
print(f"GET, and a pause of {PAUSE} s: {total:.1f} s in all, maximum {longest:.3f} s")
as_seen &= total > PAUSE and 2.9 < longest < 3.1
sys.exit(0 if as_seen else "This has changed.")
PYTHON
python3 "$folder/benchmark.py" "$folder"
