#!/usr/bin/env bash
# Cassandra's own tables show a thousandth of its latencies: coordinator_write_latency of system_views has 0.025 ms for
# writes that take 25 ms, and local_write_latency 0.000 for 0.149 ms. Its timers keep microseconds since 4.1, and its
# tables of latencies still make their milliseconds of them as if of nanoseconds: two are read here, and four more are
# of the same class. nodetool has the right unit. So by CQL, the way to monitor without JMX, a node takes microseconds,
# plausible for one that works in memory: the network, the driver or the client's pauses are suspected, no limit of an
# alert is ever met, and after an update from 4.0, whose unit is right by its source (it was not run), all is a
# thousand times as fast. And in the right unit too the storage is left out of a table's own write latency, the "Write
# Latency" of tablehistograms and tablestats: what is timed is the work in memory that comes after the commit log has
# been written and flushed, 0.149 ms of the 25. For the log there is, by the source, WaitingOnCommit, of all tables.
#
# With commitlog_sync: batch, each flush of the log, an msync, waits for 20 ms in a library. One client writes.
# Run with Cassandra 5.0.9 of Maven Central and cassandra-driver 3.30.1, on Debian 12, 2026-11-30:
#   median of 200 writes to the client: 25.7 ms
#   coordinator, median: 0.025 ms by coordinator_write_latency, 24.601 by nodetool proxyhistograms
#   coordinator, longest: 0.786 ms by coordinator_write_latency, 785.939 by nodetool proxyhistograms
#   local, median: 0.000 ms by local_write_latency, 0.149 by nodetool tablehistograms
#   local, longest: 0.152 ms by local_write_latency, 152.321 by nodetool tablehistograms
# Source: TableMetricTables of Cassandra (LatencyTableMetric multiplies by 1e-6), CassandraMetricsRegistry
# (DEFAULT_TIMER_UNIT of 4.1.10 and 5.0.9; 4.0.19 has none) and Keyspace (applyInternal: beginWrite, which waits for the
# log, then the table's write, which is timed); its documentation, "Monitoring" (WriteLatency as the local write
# latency; nothing on the log). Needs Java 17, Maven and a C compiler.
set -euo pipefail
folder=$(mktemp -d)
trap 'kill "${server:-}" 2>/dev/null || true; wait; rm -rf "$folder"' EXIT
port=$((20000 + $$ % 10000))

python3 -m venv "$folder/venv"
"$folder/venv/bin/pip" install --quiet --disable-pip-version-check cassandra-driver==3.30.1
cat >"$folder/pom.xml" <<'XML'
<project>
  <modelVersion>4.0.0</modelVersion>
  <groupId>local</groupId>
  <artifactId>local</artifactId>
  <version>1</version>
  <dependencies>
    <dependency>
      <groupId>org.apache.cassandra</groupId>
      <artifactId>cassandra-all</artifactId>
      <version>5.0.9</version>
    </dependency>
  </dependencies>
</project>
XML
mvn -q -f "$folder/pom.xml" -Dmaven.repo.local="$folder/maven" dependency:copy-dependencies \
    -DoutputDirectory="$folder/jars" >&2
rm -rf "$folder/maven"

cat >"$folder/slow.c" <<'C'
#define _GNU_SOURCE
#include <dlfcn.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

int msync(void *from, size_t size, int flags) {
    int (*next)(void *, size_t, int) = dlsym(RTLD_NEXT, "msync");
    if (!access(getenv("SLOW"), F_OK)) usleep(20000);
    return next(from, size, flags);
}
C
cc -O1 -shared -fPIC -o "$folder/slow.so" "$folder/slow.c" -ldl
cat >"$folder/cassandra.yaml" <<YAML
cluster_name: test
partitioner: org.apache.cassandra.dht.Murmur3Partitioner
endpoint_snitch: SimpleSnitch
num_tokens: 1
listen_address: 127.0.0.1
rpc_address: 127.0.0.1
native_transport_port: $port
storage_port: $((port + 1))
ssl_storage_port: $((port + 2))
commitlog_sync: batch
seed_provider:
    - class_name: org.apache.cassandra.locator.SimpleSeedProvider
      parameters:
          - seeds: "127.0.0.1:$((port + 1))"
YAML
cat >"$folder/logback.xml" <<'XML'
<configuration><root level="OFF" /></configuration>
XML
packages=(java.base/{java.io,java.lang,java.lang.module,java.nio,java.util,java.util.concurrent}
    java.base/{java.util.concurrent.atomic,jdk.internal.loader,jdk.internal.math,jdk.internal.misc,jdk.internal.module}
    java.base/{jdk.internal.ref,jdk.internal.reflect,jdk.internal.util.jar,sun.nio.ch}
    java.rmi/sun.rmi.{registry,server} java.management.rmi/com.sun.jmx.remote.internal.rmi
    jdk.management/com.sun.management.internal)
java=(java -cp "$folder:$folder/jars/*" -XX:TieredStopAtLevel=1 -XX:+UseSerialGC
    -Dcassandra.config="file://$folder/cassandra.yaml" -Dcassandra.storagedir="$folder/data"
    -Dcassandra.jmx.local.port=$((port + 3)))
for package in "${packages[@]}"; do
    java+=(--add-opens="$package=ALL-UNNAMED" --add-exports="$package=ALL-UNNAMED")
done
SLOW="$folder/slow" LD_PRELOAD="$folder/slow.so" "${java[@]}" -Xmx400m -javaagent:"$(echo "$folder"/jars/jamm-*.jar)" \
    -Dcassandra.skip_wait_for_gossip_to_settle=0 -Dcassandra.ring_delay_ms=1 -Dcassandra-foreground=yes \
    org.apache.cassandra.service.CassandraDaemon >"$folder/log" 2>&1 &
server=$!

cat >"$folder/writes.py" <<'PYTHON'
import subprocess
import sys
import time
from pathlib import Path

from cassandra.cluster import Cluster, NoHostAvailable

folder, port, server, *nodetool = sys.argv[1:]
for attempt in range(150):
    try:
        session = Cluster(["127.0.0.1"], port=int(port)).connect()
        break
    except NoHostAvailable:
        if not Path(f"/proc/{server}").exists():
            sys.exit("The server has ended.")
        time.sleep(1)
else:
    sys.exit("The server does not answer.")
session.execute("CREATE KEYSPACE k WITH replication = {'class': 'SimpleStrategy', 'replication_factor': 1}")
session.execute("CREATE TABLE k.t (id int PRIMARY KEY, v text)")
insert = session.prepare("INSERT INTO k.t (id, v) VALUES (?, 'value')")
slow = Path(folder, "slow")
slow.touch()
times = []
for key in range(200):
    start = time.perf_counter()
    session.execute(insert, [key])
    times.append((time.perf_counter() - start) * 1000)
slow.unlink()
for key in range(5):  # large ones, whose work in memory is more than the view rounds to 0
    session.execute("INSERT INTO k.t (id, v) VALUES (%s, %s)", [key, "v" * 4_000_000])
client_ms = sorted(times)[100]
print(f"median of 200 writes to the client: {client_ms:.1f} ms")


def latencies(place, *command):
    """The median and the longest of the writes, in ms, each by a table of system_views and by nodetool."""
    where = "keyspace_name = 'k' AND table_name = 't'"
    view = session.execute(f"SELECT p50th_ms, max_ms FROM system_views.{place}_write_latency WHERE {where}").one()
    rows = subprocess.run([*nodetool, *command], check=True, capture_output=True, text=True).stdout.splitlines()
    shown = [float(next(row for row in rows if row.startswith(key)).split()[2]) / 1000 for key in ("50%", "Max")]
    for name, view_ms, shown_ms in zip(("median", "longest"), view, shown):
        print(f"{place}, {name}: {view_ms:.3f} ms by {place}_write_latency, {shown_ms:.3f} by nodetool {command[0]}")
    return zip(view, shown)


(coordinator_view_ms, coordinator_ms), _ = latencies("coordinator", "proxyhistograms")
(local_view_ms, local_ms), (longest_view_ms, longest_ms) = latencies("local", "tablehistograms", "k", "t")
as_seen = (
    client_ms > 20
    and coordinator_ms > 20
    and 0.9 < coordinator_view_ms * 1000 / coordinator_ms < 1.1
    and abs(local_view_ms * 1000 - local_ms) < 0.6  # the view has three digits
    and 0.8 < longest_view_ms * 1000 / longest_ms < 1.2
    and local_ms < client_ms / 5
)
sys.exit(0 if as_seen else "This has changed.")
PYTHON
"$folder/venv/bin/python" "$folder/writes.py" "$folder" "$port" "$server" \
    "${java[@]}" -Xmx128m org.apache.cassandra.tools.NodeTool -p $((port + 3))
