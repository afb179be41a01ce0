#!/usr/bin/env bash
# JMeter's HTML report has the percentiles and the median of the last 20,000 requests of each kind, in one row with the
# mean, the minimum and the maximum of all: 60,000 reads of which three fifths took 40 ms have a median, a p90 and a p99
# of 4 ms, and those of which the last third was slow have a median of 40. Its statistics keep a sliding window of
# 20,000 values (jmeter.reportgenerator.statistic_window), by a comment on the property for better accuracy, as if it
# were an estimate; statistics.json, which pipelines read, has the same. So a load of 2,000 requests per second is
# judged by its last ten seconds: what a cold cache, a checkpoint or a stall did before is in no percentile, a run that
# ends during a backup is slow throughout, and the shorter of two tests is the one whose tail is whole. The chart
# "Response Time Percentiles" of the same report is of all requests, and so is the row with that property at -1.
#
# A recording of two kinds, one slow at first and one at the end, as JMeter writes it, 60,000 requests each.
# Run with JMeter 5.6.3 of Maven Central, on Debian 12, 2026-11-30:
#   slow at first: 60,000 requests, mean 25.6 ms, maximum 40
#     p50, p90, p95, p99: 4, 4, 4, 4; of all 40, 40, 40, 40; in the chart 40, 40, 40, 40; at -1 40, 40, 40, 40
#   slow at the end: 60,000 requests, mean 16.0 ms, maximum 40
#     p50, p90, p95, p99: 40, 40, 40, 40; of all 4, 40, 40, 40; in the chart 4, 40, 40, 40; at -1 4, 40, 40, 40
# Source: PercentileAggregator and StatisticsSummaryData of JMeter 5.6.3 (DescriptiveStatistics with a window), and
# user.properties, "Sets the size of the sliding window used by percentile evaluation". Needs mvn and java.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT

cat >"$folder/pom.xml" <<'XML'
<project xmlns="http://maven.apache.org/POM/4.0.0">
  <modelVersion>4.0.0</modelVersion>
  <groupId>report</groupId>
  <artifactId>report</artifactId>
  <version>1</version>
  <dependencies>
    <dependency>
      <groupId>org.apache.jmeter</groupId>
      <artifactId>ApacheJMeter_core</artifactId>
      <version>5.6.3</version>
    </dependency>
    <dependency>
      <groupId>org.apache.jmeter</groupId>
      <artifactId>ApacheJMeter_config</artifactId>
      <version>5.6.3</version>
    </dependency>
  </dependencies>
</project>
XML
mvn -q -B -f "$folder/pom.xml" -Dmaven.repo.local="$folder/maven" dependency:copy-dependencies \
    -DoutputDirectory="$folder/jars" >&2
rm -rf "$folder/maven"
unzip -q "$folder/jars/ApacheJMeter_config-5.6.3.jar" 'bin/*' -d "$folder/home"
mv "$folder/jars/ApacheJMeter-5.6.3.jar" "$folder/home/bin"

cat >"$folder/report.py" <<'PYTHON'
import json
import subprocess
import sys
from pathlib import Path

folder, REQUESTS, FAST_MS, SLOW_MS = Path(sys.argv[1]), 60_000, 4, 40
kinds = {
    "slow at first": [SLOW_MS] * 36_000 + [FAST_MS] * 24_000,
    "slow at the end": [FAST_MS] * 40_000 + [SLOW_MS] * 20_000,
}
with (folder / "requests.csv").open("w") as file:
    file.write("timeStamp,elapsed,label,responseCode,responseMessage,threadName,success,bytes,sentBytes,")
    file.write("grpThreads,allThreads,Latency,IdleTime,Connect\n")
    for number in range(REQUESTS):
        for kind, times in kinds.items():
            ms = times[number]
            file.write(f"{1_780_000_000_000 + number},{ms},{kind},200,OK,threads 1-1,true,100,100,40,40,{ms},0,0\n")


def embedded(script, *marks):
    """Return the JSON that follows the marks in a script of the report."""
    text, start = script.read_text(), 0
    for mark in marks:
        start = text.index(mark, start) + len(mark)
    return json.JSONDecoder().raw_decode(text, start)[0]


def report(name, *options):
    """Return the table of the report, the same in statistics.json, and its chart of percentiles, by kind."""
    java = ["java", "-XX:TieredStopAtLevel=1", "-XX:+UseSerialGC", "-Djava.awt.headless=true"]
    java += [f"-Djava.util.prefs.userRoot={folder}", f"-Djmeter.home={folder}/home"]
    java += ["-cp", f"{folder}/home/bin/ApacheJMeter-5.6.3.jar:{folder}/jars/*", "org.apache.jmeter.NewDriver"]
    java += ["-d", f"{folder}/home", "-j", f"{folder}/log", "-g", f"{folder}/requests.csv", "-o", f"{folder}/{name}"]
    subprocess.run([*java, *options], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, check=True, timeout=170)
    scripts = folder / name / "content/js"
    table = embedded(scripts / "dashboard.js", '$("#statisticsTable"), ')
    chart = embedded(scripts / "graph.js", "responseTimePercentilesInfos", "data: ")["result"]["series"]
    rows = {item["data"][0]: dict(zip(table["titles"], item["data"])) for item in table["items"]}
    statistics = json.loads((folder / name / "statistics.json").read_text())
    return rows, statistics, {series["label"]: dict(series["data"]) for series in chart}


PERCENTS = (50.0, 90.0, 95.0, 99.0)
TITLES = ("Median", "90th pct", "95th pct", "99th pct")
FIELDS = ("medianResTime", "pct1ResTime", "pct2ResTime", "pct3ResTime")
as_seen = True
rows, statistics, charts = report("default")
whole, _, _ = report("whole", "-Jjmeter.reportgenerator.statistic_window=-1")
for kind, times in kinds.items():
    row, ranked = rows[kind], sorted(times)
    shown, at_minus_1 = ([int(some[kind][title]) for title in TITLES] for some in (rows, whole))
    in_json = [int(statistics[kind][field]) for field in FIELDS]
    charted = [int(charts[kind][percent]) for percent in PERCENTS]
    real = [ranked[int(len(ranked) * percent / 100)] for percent in PERCENTS]
    print(f"{kind}: {row['#Samples']:,} requests, mean {row['Average']:.1f} ms, maximum {row['Max']}")
    figures = {"p50, p90, p95, p99:": shown, "of all": real, "in the chart": charted, "at -1": at_minus_1}
    print("  " + "; ".join(f"{title} {', '.join(map(str, some))}" for title, some in figures.items()))
    as_seen &= row["#Samples"] == REQUESTS and row["Max"] == SLOW_MS
    as_seen &= shown == in_json == [times[-1]] * 4 and charted == at_minus_1 == real
sys.exit(0 if as_seen else "This has changed.")
PYTHON
python3 "$folder/report.py" "$folder"
