"""A CSV of any tool: series by our names or mapped to them, as Grafana, CloudWatch and Azure Monitor export them.

No such service was here: the files have the form that the documentation shows.
"""

import re
import shlex
from itertools import accumulate, pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from stallmark.analysis.profile_intervals import intervals_of
from stallmark.errors import StallmarkError
from stallmark.record.formats import import_profile
from stallmark.record.formats.amounts import Wanted
from stallmark.record.formats.open_csv import NAMES
from stallmark.record.formats.sample import in_quotes

pytestmark = pytest.mark.thorough

OURS = "Time,reads_per_s,read_ms,log.write_bytes_per_s,batches_per_s,connections\n"
ROWS = "2026-03-02T10:00:00Z,1,1,1,1,1\n2026-03-02T10:00:15Z,10,2,1000,4,7\n2026-03-02T10:00:30Z,20,,2000,,8\n"


def test_series_by_our_names(import_texts):
    found = import_texts(OURS + ROWS)
    assert (found.manifest.source, found.manifest.interval_s) == ("csv", 15.0)
    assert found.io("reads") == [150, 300] and found.io("read_stall_ms") == [300, None]
    assert found.io("write_bytes", "log") == [15_000, 30_000]
    assert found.server("batches") == [60, None] and found.server("connections") == [7, 8]
    assert found.io("writes") == [None, None] and "disk counters" in found.manifest.missing
    assert any("the end of what its values cover" in note for note in found.manifest.notes)


def test_a_mean_without_its_ios_is_no_time(import_texts):
    rows = ("10:00:00Z,5,", "10:00:15Z,5,", "10:00:30Z,,2")
    found = import_texts("Time,reads_per_s,read_ms\n" + "".join(f"2026-03-02T{row}\n" for row in rows))
    assert found.io("reads") == [75] and found.io("read_stall_ms") == [None]


GRAFANA = """\
"Time","Reads sda","Reads sdb","{device=""sda""}","Latency (ms)"
1772445600000,100,50,409600,2
1772445660000,120,60,819200,2.5
1772445720000,,70,819200,2.5
"""
"""Inspect, Data, Download CSV, with "Formatted data" off: times are milliseconds since 1970, names those of the legend
(https://grafana.com/docs/grafana/latest/panels-visualizations/panel-inspector)."""
GRAFANA_NAMES = {
    "Reads sda": "reads_per_s", "Reads sdb": "reads_per_s", '{device="sda"}': "read_bytes_per_s",
    "Latency (ms)": "read_ms",
}  # fmt: skip


def test_grafana(import_texts):
    found = import_texts(GRAFANA, names=GRAFANA_NAMES)
    assert found.ends() == ["02 10:01:00", "02 10:02:00"]
    assert found.io("reads") == [180 * 60, None]  # a sum that lacks a part is unknown
    assert found.io("read_bytes") == [819200 * 60] * 2 and found.io("read_stall_ms") == [180 * 60 * 2.5, None]
    excel = GRAFANA.replace("1772445600000", '"2026-03-02 11:00:00"').replace("1772445660000", '"2026-03-02 11:01:00"')
    excel = "sep=,\n" + excel.replace("1772445720000", '"2026-03-02 11:02:00"')
    assert import_texts(excel, names=GRAFANA_NAMES, zone="Europe/Berlin").io("reads") == [180 * 60, None]
    with pytest.raises(StallmarkError, match="--timezone"):
        import_texts(excel, names=GRAFANA_NAMES)


def test_numbers_that_grafana_formatted_are_refused(import_texts):
    text = 'Time,Reads,Latency\n"2026-03-02 10:00:00",812 io/s,1.2 ms\n"2026-03-02 10:01:00",812 io/s,1.2 ms\n'
    with pytest.raises(StallmarkError, match=r"holds text: export its numbers alone.*“Formatted data” off"):
        import_texts(text, zone="UTC", names={"Reads": "reads_per_s"})


CLOUDWATCH = """\
Timestamp,ReadIOPS,WriteIOPS,ReadThroughput,WriteThroughput,ReadLatency,WriteLatency,DatabaseConnections
2026-03-02T10:02:00+00:00,90,40,737280,655360,0.002,0.001,12
2026-03-02T10:00:00+00:00,100,50,819200,655360,0.002,0.001,10
2026-03-02T10:01:00+00:00,80,30,655360,655360,0.004,0.001,11
"""
"""Points of get-metric-statistics, which are in no order of time (https://awscli.amazonaws.com/v2/documentation/api/
latest/reference/cloudwatch/get-metric-statistics.html). Units of AWS/RDS: Count/Second, Bytes/Second and Seconds
(https://docs.aws.amazon.com/AmazonRDS/latest/UserGuide/rds-metrics.html)."""


def test_cloudwatch(import_texts):
    names = {
        "ReadIOPS": "reads_per_s", "WriteIOPS": "writes_per_s", "ReadThroughput": "read_bytes_per_s",
        "WriteThroughput": "write_bytes_per_s", "ReadLatency": "read_s", "WriteLatency": "write_s",
        "DatabaseConnections": "connections",
    }  # fmt: skip
    found = import_texts(CLOUDWATCH, names=names)
    assert found.ends() == ["02 10:01:00", "02 10:02:00"]
    assert found.io("reads") == [80 * 60, 90 * 60] and found.io("write_bytes") == [655360 * 60] * 2
    assert found.io("read_stall_ms") == pytest.approx([80 * 60 * 4.0, 90 * 60 * 2.0])
    assert found.server("connections") == [11, 12]


EBS = """\
Label,VolumeReadOps,VolumeReadBytes,VolumeTotalReadTime
2026/03/02 10:00:00,6000,24576000,12
2026/03/02 10:05:00,3000,12288000,6
2026/03/02 10:10:00,9000,36864000,27
"""
"""AWS/EBS counts by period: Sum of Count, Bytes and Seconds."""


def test_counts_of_a_period(import_texts):
    names = {"VolumeReadOps": "reads", "VolumeReadBytes": "read_bytes", "VolumeTotalReadTime": "read_stall_s"}
    found = import_texts(EBS, names=names, zone="UTC")
    assert found.io("reads") == [3000, 9000] and found.io("read_bytes") == [12288000, 36864000]
    assert found.io("read_stall_ms") == [6000, 27_000]


AZURE = """\
Timestamp,Name,average
2026-03-02 10:00:00,Data Disk Read Operations/Sec,100
2026-03-02 10:01:00,Data Disk Read Operations/Sec,120
2026-03-02 10:02:00,Data Disk Read Operations/Sec,140
2026-03-02 10:00:00,Data Disk Read Bytes/sec,819200
2026-03-02 10:01:00,Data Disk Read Bytes/sec,983040
2026-03-02 10:02:00,Data Disk Read Bytes/sec,1146880
"""
"""The columns of `az monitor metrics list --output table`, in UTC
(https://learn.microsoft.com/cli/azure/monitor/metrics). Units: https://learn.microsoft.com/azure/azure-monitor/reference/
supported-metrics/microsoft-compute-virtualmachines-metrics."""
AZURE_LOGS = """\
"TimeGenerated [UTC]",MetricName,Average,UnitName
"3/2/2026, 10:00:00.000 AM",Data Disk Read Operations/Sec,100,CountPerSecond
"3/2/2026, 10:00:00.000 AM",Data Disk Read Bytes/sec,819200,BytesPerSecond
"3/2/2026, 10:01:00.000 AM",Data Disk Read Operations/Sec,120,CountPerSecond
"3/2/2026, 10:01:00.000 AM",Data Disk Read Bytes/sec,983040,BytesPerSecond
"3/2/2026, 10:02:00.000 AM",Data Disk Read Operations/Sec,140,CountPerSecond
"3/2/2026, 10:02:00.000 AM",Data Disk Read Bytes/sec,1146880,BytesPerSecond
"""
"""The table AzureMetrics as CSV (https://learn.microsoft.com/azure/azure-monitor/reference/tables/azuremetrics)."""


@pytest.mark.parametrize(("text", "statistic"), [(AZURE, "average"), (AZURE_LOGS, "Average")])
def test_azure_monitor_has_a_row_for_each_metric(import_texts, text, statistic):
    names = {
        f"Data Disk Read Operations/Sec {statistic}": "reads_per_s",
        f"Data Disk Read Bytes/sec {statistic}": "read_bytes_per_s",
    }
    found = import_texts(text, names=names, zone="UTC")
    assert found.io("reads") == [120 * 60, 140 * 60] and found.io("read_bytes") == [983040 * 60, 1146880 * 60]


COUNTERS = """\
sep=,
"Time","{0}"
"2026-03-02 10:00:00",1000
"2026-03-02 10:00:15",2500
"""


@pytest.mark.parametrize(
    "name",
    [
        'node_disk_reads_completed_total{device="sda", instance="db01:9100"}',
        '{__name__="node_disk_reads_completed_total", device="sda", instance="db01:9100"}',
        'node_disk_reads_completed_total{device="a\'; touch b"}',
    ],
)
def test_totals_of_prometheus_from_grafana_need_their_name(import_texts, name):
    """The first line is what Grafana writes with “Download for Excel”."""
    text = COUNTERS.format(name.replace('"', '""')) + '"2026-03-02 10:00:30",4000\n'
    found = import_texts(text, zone="UTC", names={name: "reads_total"})
    assert found.io("reads") == [1500, 1500] and found.ends() == ["02 10:00:15", "02 10:00:30"]
    with pytest.raises(StallmarkError, match="total of Prometheus: import it as JSON, as in `curl ") as refused:
        import_texts(text, zone="UTC")
    assert str(refused.value).endswith(f"--map '{in_quotes(name)}=reads_total'.")
    assert shlex.split(in_quotes(name).join("''")) == [name]


@pytest.mark.parametrize(
    ("name", "words"),
    [
        ('windows_logical_disk_reads_total{volume="C:"}', r'=~"windows_logical_\.\*",.*=reads_total\'\.$'),
        ('wmi_physical_disk_read_bytes_total{disk="0"}', r'=~"wmi_physical_\.\*",.*=read_bytes_total\'\.$'),
        ("sum(rate(node_disk_reads_completed_total[5m]))", r"is a rate.*=reads_per_s'\.$"),
        ("irate(node_disk_written_bytes_total[5m])", r"is a rate.*=write_bytes_per_s'\.$"),
        ("rate(node_disk_read_time_seconds_total[5m])", "no series of a name that a profile knows"),
    ],
)
def test_a_series_of_prometheus_is_given_the_name_of_its_kind(import_texts, name, words):
    """Grafana names a series without labels by its query."""
    text = COUNTERS.format(name.replace('"', '""')) + '"2026-03-02 10:00:30",4000\n'
    with pytest.raises(StallmarkError, match=words) as refused:
        import_texts(text, zone="UTC")
    if "--map" in str(refused.value):
        _, _, ours = shlex.split(str(refused.value).partition("--map ")[2].removesuffix("."))[0].rpartition("=")
        assert import_texts(text, zone="UTC", names={name: ours}).rows()


SERIES_AS_ROWS = """\
\ufeff"Series";"Time";"Value"
"Reads sda";"2020-05-04T15:29:30+02:00";100.5
"Reads sdb";"2020-05-04T15:29:30+02:00";null
"Reads sda";"2020-05-04T15:29:45+02:00";200
"Reads sdb";"2020-05-04T15:29:45+02:00";10
"Reads sda";"2020-05-04T15:30:00+02:00";200
"Reads sdb";"2020-05-04T15:30:00+02:00";null
"""
"""Export CSV of Grafana up to 6, as published files show it."""


def test_a_line_of_other_cells_between_header_and_rows(import_texts):
    """Grafana of 2019 wrote its header twice, the second time with commas; CloudWatch has lines before it."""
    rows = "".join(f'"2019-01-15T14:1{n}:00+02:00";null;{n}\n' for n in range(3))
    text = 'sep=;\n"Time";"C.reads";"C.writes"\nTime,C.reads,C.writes\n' + rows
    found = import_texts(text, names={"C.writes": "writes_per_s"})
    assert found.io("writes") == [60, 120] and found.ends() == ["15 12:11:00", "15 12:12:00"]
    before = "Id,m1\nStatusCode,Complete\nMessages,\nFull label,us-east-1:AWS/EBS VolumeReadOps\nLabel,VolumeReadOps\n"
    text = before + "2026/03/02 10:00:00,6000\n2026/03/02 10:05:00,3000\n"
    assert import_texts(text, names={"VolumeReadOps": "reads"}, zone="UTC").io("reads") == [3000]
    joined = text + ",\n" + "2026/03/02 10:10:00,5\n"  # as a script joined published points
    assert import_texts(joined, names={"VolumeReadOps": "reads"}, zone="UTC").io("reads") == [3000, 5]


def test_series_as_rows_of_an_old_grafana(import_texts):
    names = {"Reads sda Value": "reads_per_s", "Reads sdb Value": "reads_per_s"}
    found = import_texts(SERIES_AS_ROWS, names=names)
    assert found.io("reads") == [210 * 15] and found.ends() == ["04 13:29:45"]


def test_rows_with_too_many_values_are_counted(import_texts):
    text = "Time,file,reads_total\n" + "".join(
        f"2026-03-02T10:{place:02d}:00Z,{name},{place}\n"
        for place in range(3)
        for name in ("data a", "data b", "data x,y")
    )
    found = import_texts(text)
    assert found.io("reads", "data") == [2, 2] and any("too many values: 3" in note for note in found.manifest.notes)


FILES = """\
Time,file,reads_total,read_bytes_total,read_stall_ms_total,writes_total
---------------------------,----,-----------,----------------,-------------------,------------
2026-03-02T10:00:00Z,data 5/1,1000,8192000,2000,0
2026-03-02T10:00:00Z,log 5/2,10,81920,20,100
2026-03-02T10:00:00Z,tempdb 2/1,NULL,NULL,NULL,NULL
2026-03-02T10:15:00Z,data 5/1,1900,15564800,4000,0
2026-03-02T10:15:00Z,log 5/2,10,81920,20,400
2026-03-02T10:15:00Z,data 6/1,70,70,70,70
2026-03-02T10:30:00Z,data 5/1,900,7372800,100,0
2026-03-02T10:30:00Z,log 5/2,11,81920,20,700
2026-03-02T10:30:00Z,data 6/1,80,80,80,80
2026-03-02T10:45:00Z,data 5/1,1800,14745600,1900,9
2026-03-02T10:45:00Z,log 5/2,12,81920,20,1000
2026-03-02T10:45:00Z,data 6/1,90,90,90,90
"""
"""A row for each file, its class before its name, as `sqlcmd -W -s,` writes it."""


def test_totals_of_files_rise_each_by_itself(import_texts):
    found = import_texts(FILES)
    assert found.io("reads", "data") == [900, 910] and found.io("writes", "data") == [0, 19]
    assert found.io("writes", "log") == [300, 300, 300] and found.io("reads", "tempdb") == []
    assert found.io("read_stall_ms", "data") == [2000, 1810]  # one began anew at 10:30
    notes = " ".join(found.manifest.notes)
    assert "anew 1 time" in notes and "data 6/1" in notes


def test_a_file_whose_rates_begin_later_did_not_exist_before(import_texts):
    rows = [
        ("10:00:00", "a", 1),
        ("10:00:15", "a", 2),
        ("10:00:30", "a", 3),
        ("10:00:30", "b", 10),
        ("10:00:45", "a", 4),
    ]
    rows += [("10:01:00", "a", 5), ("10:01:00", "b", 10)]
    text = "Time,file,reads_per_s\n" + "".join(f"2026-03-02T{time}Z,data {name},{rate}\n" for time, name, rate in rows)
    found = import_texts(text)
    assert found.io("reads", "data") == [30, 195, 225] and found.ends() == ["02 10:00:15", "02 10:00:30", "02 10:01:00"]
    assert any("0 while not: data b" in note for note in found.manifest.notes)


def test_a_fall_of_one_total_hides_those_beside_it(import_texts):
    rows = ("10:00:00Z,100,1000", "10:00:15Z,200,2000", "10:00:30Z,10,3000", "10:00:45Z,20,4000")
    text = "Time,data.reads_total,data.read_bytes_total\n" + "".join(f"2026-03-02T{row}\n" for row in rows)
    found = import_texts(text)
    assert found.io("reads", "data") == [100, 10] and found.io("read_bytes", "data") == [1000, 1000]


@given(st.lists(st.lists(st.integers(0, 500), min_size=4, max_size=4), min_size=2, max_size=6), st.booleans())
def test_rows_of_any_order_and_kind_give_what_was_counted(import_many, steps, is_total):
    """Per time what two files of data and two logs read; totals and counts of intervals mean the same."""
    labels = ("data a", "data b", "log a", "log b")
    sums = [[sum(row[place] for row in steps[: n + 1]) for place in range(4)] for n in range(len(steps))]
    rows = [
        f"2026-03-02T10:{15 * n:02d}:00Z,{label},{(sums if is_total else steps)[n][place]},4"
        for n in range(len(steps))
        for place, label in enumerate(labels)
    ]
    if len(steps) > 4:
        rows = [row.replace("T10:60", "T11:00").replace("T10:75", "T11:15") for row in rows]
    header = f"Time,file,reads{'_total' if is_total else ''},read_ms"
    found = import_many("\n".join([header, *reversed(rows)]))
    for held, places in (("data", (0, 1)), ("log", (2, 3))):
        reads = [sum(row[place] for place in places) for row in steps[1:]]
        assert found.io("reads", held) == reads
        assert found.io("read_stall_ms", held) == [4 * count for count in reads]


FORMATTED = """\
"Time","host","Reads","Writes"
2026-03-02 10:00:00,db1,12.3 MB/s,1.5 MB/s
2026-03-02 10:01:00,db1,12.4 MB/s,980 kB/s
"""
"""Grafana with “Formatted data” on."""


@pytest.mark.parametrize(
    ("text", "names", "words"),
    [
        (COUNTERS.format('node_disk_reads_completed_total{device=""sda""}'), {}, "as JSON, as in `curl -G http"),
        (COUNTERS.format('{__name__=""node_disk_reads_completed_total""}'), {}, "as JSON, as in `curl -G http"),
        ("__name__,device,timestamp,value\na,sda,1772445600,1\na,sda,1772445615,2\n", {}, "as JSON, as in `curl -G"),
        ("Time,IOPS\n2026-03-02 10:00:00,1\n2026-03-02 10:00:15,2\n", {}, "it has IOPS.*--map 'IOPS=reads_per_s'"),
        ("Time,Bob's IOPS\n2026-03-02 10:00:00,1\n2026-03-02 10:00:15,2\n", {}, r"--map 'Bob'\\''s IOPS=reads_per_s'"),
        (FORMATTED, {}, "“Writes” of .* holds text.*“Formatted data” off"),
        (FORMATTED, {"Reads": "read_bytes_per_s"}, "“Reads” of .* holds text"),
        (FORMATTED, {"Latency": "read_ms"}, "“Writes” of .* holds text"),
        ("Time,host,Reads\n2026-03-02 10:00:00,db1,\n2026-03-02 10:01:00,db1,\n", {}, "“host” of .* holds text"),
        ("Time,Reads,Writes\n2026-03-02 10:00:00,,\n2026-03-02 10:01:00,,\n", {}, "no numbers beside them"),
        ("Time,Reads\n2026-03-02 10:00:00,\n2026-03-02 10:01:00,\n", {"Reads": "reads_per_s"}, "no numbers beside"),
        (OURS + ROWS, {"IOPS": "reads_per_s"}, "no series “IOPS”: it has reads_per_s, read_ms"),
        (OURS + ROWS, {"reads_per_s": "reads_per_h"}, "reads_per_h is not a series to map reads_per_s to"),
        (OURS + ROWS, {"read_ms": "reads"}, "reads_per_s and reads: they are the same metric"),
        (OURS + ROWS, {"connections": "read_ms"}, "read_ms of .*do not add up"),
        ("Time,file,reads_total\n" + "".join(
            f"2026-03-02T10:0{minute}:{10 * place}Z,{name},{minute}\n"
            for minute in range(5) for place, name in ((1, "data a"), (2, "log b"), (3, "log c"))
        ), {}, "of one sample with one time"),
        ("Time,R (MB/s)\n2026-03-02 10:00:00,1\n2026-03-02 10:01:00,2\n", {"R (MB/s)": "read_bytes_per_s"},
         r"“R \(MB/s\)” of .* is in MB/s, and read_bytes_per_s in B/s"),
        ("Time,read_ms,a\n2026-03-02 10:00:00,1,1\n2026-03-02 10:00:15,2,1\n", {"a": "read_ms", "read_ms": "a"},
         "a is not a series to map read_ms to"),
    ],
)  # fmt: skip
def test_what_is_refused_and_with_what_remedy(import_texts, text, names, words):
    with pytest.raises(StallmarkError, match=words) as refused:
        import_texts(text, zone="UTC", names=names)
    assert "\n" not in str(refused.value)


TELEGRAF = "Time,reads,writes,read_bytes,write_bytes\n" + "".join(
    f"2026-03-02T10:0{n}:00Z,{10**6 + 15 * n},{5 * 10**5 + 8 * n},{10**10 + 61440 * n},{10**9 + 4096 * n}\n"
    for n in range(3)
)
"""Telegraf's diskio as a CSV of InfluxDB has totals since the start of the machine under names of ours for counts."""


def test_counts_that_only_rise_are_totals(import_texts):
    with pytest.raises(StallmarkError, match=r"only rise.*--map reads=reads_total"):
        import_texts(TELEGRAF)
    columns = ("reads", "writes", "read_bytes", "write_bytes")
    found = import_texts(TELEGRAF, names={name: f"{name}_total" for name in columns})
    assert [found.io(name) for name in columns] == [[15] * 2, [8] * 2, [61440] * 2, [4096] * 2]


@pytest.mark.parametrize(
    "counts",
    [
        [(100 + n, 50 - n) for n in range(5)],
        [(1000 + 10 * n, 500 + 5 * n) for n in range(20)],  # a load that ramps up
        [(60_000, 3_000), (61_100, 3_020), (62_400, 3_110)],  # by chance
        [(100, 50)] * 9,
        [(0, 0)] * 9,
        [(100 + (n == 15), 0) for n in range(30)],
        [(5 * (n == 15), 7 * (n == 20)) for n in range(30)],  # idle, but for two moments
        [(60_000 * (n == 0), 7 * (n > 25)) for n in range(30)],  # idle after a burst
    ],
)
def test_counts_that_rise_as_a_load_does_are_counts(import_texts, counts):
    rows = "".join(f"2026-03-02T10:{n:02d}:00Z,{reads},{writes}\n" for n, (reads, writes) in enumerate(counts))
    assert import_texts("Time,reads,writes\n" + rows).io("reads") == [reads for reads, _ in counts[1:]]


@given(st.lists(st.integers(0, 10**5), min_size=3, max_size=200), st.integers(300, 10**5))
def test_totals_since_long_ago_are_never_counts(tmp_path_factory, steps, intervals):
    """Beside a disk that was plugged in later, whose total begins at 0."""
    totals = [*accumulate(steps, initial=1 + intervals * (1 + max(steps)))]
    totals += [0] * (len(totals) > 20)  # the machine was restarted
    rows = "".join(
        f"{1772445600 + 60 * n},{name},{reads},{4096 * reads}\n"
        for n, total in enumerate(totals)
        for name, reads in (("sda", total), ("sdb", max(0, total - totals[0]) // 9))
    )
    path = tmp_path_factory.mktemp("totals") / "file.csv"
    path.write_text("time,name,reads,read_bytes\n" + rows)
    if any(steps):
        with pytest.raises(StallmarkError, match="only rise"):
            import_profile([path], path.parent / "profile", Wanted())


@pytest.mark.parametrize("name", ["_Total", "all"])
def test_a_row_of_the_total_does_not_count_beside_those_of_classes(import_texts, name):
    rows = [(file, rate) for file, rate in (("data 5/1", 1), ("log 5/2", 2), (name, 3))]
    lines = [f"2026-03-02T10:0{n}:00Z,{file},{rate}\n" for n in range(3) for file, rate in rows]
    found = import_texts("Time,file,reads_per_s\n" + "".join(lines))
    assert [found.io("reads", held) for held in ("data", "log", "device")] == [[60, 60], [120, 120], []]


def test_a_row_of_the_total_does_not_count_beside_those_of_disks(import_texts):
    rows = [(name, rate) for name, rate in (("C:", 1), ("D:", 2), ("_Total", 3))]
    lines = [f"2026-03-02T10:0{n}:00Z,{name},{rate}\n" for n in range(3) for name, rate in rows]
    found = import_texts("Time,instance,reads_per_s\n" + "".join(lines))
    assert found.io("reads") == [180, 180] and any("_Total" in note for note in found.manifest.notes)
    alone = import_texts("Time,instance,reads_per_s\n" + "".join(line for line in lines if "_Total" in line))
    assert alone.io("reads") == [180, 180]


def test_devices_that_were_sampled_one_after_the_other_are_not_one(import_texts):
    text = "Time,device,reads_per_s,writes_per_s\n" + "".join(
        f"2026-03-02T10:0{n}:0{second}Z,{name},{rate},{rate}\n"
        for n in range(3)
        for second, name, rate in ((0, "sda", 100), (1, "sdb", 900))
    )
    with pytest.raises(StallmarkError, match="of some of its series alone"):
        import_texts(text)
    turns = [("lunA", "lunB")[10 <= n < 20] for n in range(30)]  # one that failed over, and back
    rows = "".join(f"2026-03-02T10:{n:02d}:00Z,{name},5\n" for n, name in enumerate(turns))
    assert import_texts("Time,device,reads_per_s\n" + rows).io("reads") == [300] * 19
    one = "Time,device,reads_per_s\n" + "".join(f"2026-03-02T10:0{n}:00Z,sda,5\n" for n in range(3))
    assert import_texts(one).io("reads") == [300, 300]


def test_rates_that_are_named_totals_are_refused(import_texts):
    rows = "".join(f"2026-03-02T10:0{n}:00Z,{rate}\n" for n, rate in enumerate((5, 3, 9, 4, 8, 2)))
    with pytest.raises(StallmarkError, match=r"falls of disk reads at 3 points.*reads_per_s"):
        import_texts("Time,disk\n" + rows, names={"disk": "reads_total"})


def test_two_columns_of_one_name_are_refused_if_they_count(import_texts):
    """Grafana names series by their legend, which two queries of a panel may share."""
    text = "Time,sda,sda,sdb\n2026-03-02T10:00:00Z,1,2,3\n2026-03-02T10:00:15Z,1,2,3\n"
    with pytest.raises(StallmarkError, match="two columns “sda”"):
        import_texts(text, names={"sda": "reads_per_s"})
    assert import_texts(text, names={"sdb": "reads_per_s"}).io("reads") == [45]


@pytest.mark.parametrize(
    ("rate", "latency", "reads"), [("1.234", "0,5", None), ("1234", "0,5", 1234), ("1234", "0.5", 1234)]
)
def test_points_and_commas_in_one_file_may_both_separate_thousands(import_texts, rate, latency, reads):
    text = "Time;reads_per_s;read_ms\n" + "".join(f"2026-03-02T10:0{n}:00Z;{rate};{latency}\n" for n in range(3))
    if not reads:
        with pytest.raises(StallmarkError, match="holds text"):
            import_texts(text)
        return
    found = import_texts(text)
    assert found.io("reads") == [60 * reads] * 2 and found.io("read_stall_ms") == [30 * reads] * 2


def test_of_a_beginning_and_an_end_the_end_is_the_time(import_texts):
    rows = "".join(f"2026-03-02T10:0{n}:00Z,2026-03-02T10:0{n + 1}:00Z,{n}\n" for n in range(3))
    assert import_texts("Start time,End time,reads\n" + rows).ends() == ["02 10:02:00", "02 10:03:00"]


@pytest.mark.parametrize(
    ("name", "ours", "unit"),
    [
        ("Read MB/s", "read_bytes_per_s", "MB/s"), ("read_kib_per_sec", "read_bytes_per_s", "kiB/s"),
        ("ReadThroughputMBps", "read_bytes_per_s", "MB/s"), ("Read (MB)", "read_bytes", "MB"),
        ("read_mb", "read_bytes", "mB"), ("Latency us", "read_ms", "us"), ("latency_seconds", "read_ms", "s"),
        ("Avg. Disk sec/Read", "read_ms", "s"), ("bytes_read_per_second", "reads_per_s", "B/s"),
        ("latencyMs", "read_s", "ms"), ("Reads/sec", "reads", "1/s"), ("read bytes/sec", "reads_per_s", "B/s"),
    ],
)  # fmt: skip
def test_a_unit_in_a_name_is_held_against_ours(import_texts, name, ours, unit):
    text = f"Time,{name},reads_per_s\n2026-03-02T10:00:00Z,1,1\n2026-03-02T10:00:15Z,2,2\n"
    with pytest.raises(StallmarkError, match=f"“{re.escape(name)}” of .* is in {unit}, and {ours} in "):
        import_texts(text, names={name: ours})


def test_a_unit_of_ours_in_other_words_is_taken(import_texts):
    names = {
        "Log Bytes Flushed/sec": "log_bytes_per_s",
        "Read Latency, ms": "read_ms",
        "Reads per second": "reads_per_s",
    }
    header = ",".join(f'"{name}"' for name in names)
    found = import_texts(f"Time,{header}\n2026-03-02T10:00:00Z,1,1,1\n2026-03-02T10:00:15Z,2,3,4\n", names=names)
    assert found.server("log_bytes") == [30] and found.io("read_stall_ms") == [180]


@given(st.sampled_from(sorted(NAMES)), st.lists(st.integers(0, 10**6), min_size=3, max_size=3))
def test_every_name_of_ours_is_taken_for_what_it_is(tmp_path_factory, ours, values):
    folder = tmp_path_factory.mktemp("one")
    held, meaning = NAMES[ours]
    values = sorted(values) if meaning.kind == "total" else values
    rows = [f"2026-03-02T10:00:{15 * place:02d}Z,{value},{value}" for place, value in enumerate(values)]
    column = meaning.column
    side = "write" if meaning.kind == "mean" and "write" in ours else "read"
    other = side if meaning.kind == "mean" else "write" if column.startswith("read") else "read"
    beside = f"{'' if held in ('server', 'device') else held + '.'}{other}s_per_s"
    (folder / "file.csv").write_text("\n".join([f"Time,{ours},{beside}", *rows]) + "\n")
    import_profile([folder / "file.csv"], folder / "profile", Wanted())
    table = intervals_of(folder / "profile").tables()["server" if held == "server" else "file_io"]
    if meaning.kind == "total":
        expected = [float(after - value) * meaning.factor for value, after in pairwise(values)]
    elif meaning.kind == "mean":
        column, expected = f"{side}_stall_ms", [meaning.factor * value * value * 15 for value in values[1:]]
    else:
        expected = [float(value) * meaning.factor * (15 if meaning.kind == "rate" else 1) for value in values[1:]]
    assert table.column(column).to_pylist() == pytest.approx(expected)


def test_a_header_may_come_again_and_a_second_machine_is_refused(import_texts):
    begin, end = (f"Time,reads_per_s\n2026-03-02T1{hour}:00:00Z,1\n2026-03-02T1{hour}:00:15Z,2\n" for hour in (0, 1))
    assert import_texts(begin + end).io("reads") == [30, 30]
    rows = "".join(f"2026-03-02T10:00:{second}Z,{host},1\n" for second in (10, 20) for host in ("db01", "db02"))
    with pytest.raises(StallmarkError, match="is of db01, db02: give each a file of its own"):
        import_texts("Time,host,reads_per_s\n" + rows)


@pytest.mark.parametrize(
    ("instances", "host", "reads"),
    [
        (("db01:9100",), "db01", [30]),  # an export of Prometheus
        (("db01:9100", "db01:9182"), "db01", [60]),
        (("db01:9100", "db02:9100"), None, None),
        (("C:", "D:"), None, [60]),  # telegraf's of Perfmon
    ],
)
def test_an_instance_is_a_host_if_it_has_a_port(import_texts, instances, host, reads):
    rows = "".join(f"2026-03-02T10:00:{15 * n:02d}Z,{name},{n + 1}\n" for n in range(2) for name in instances)
    if reads is None:
        with pytest.raises(StallmarkError, match="is of db01, db02"):
            import_texts("Time,instance,reads_per_s\n" + rows)
        return
    found = import_texts("Time,instance,reads_per_s\n" + rows)
    assert (found.manifest.server.name, found.io("reads")) == (host, reads)


def test_series_of_two_hosts_in_names_of_grafana_are_refused(import_texts):
    names = [f'reads{{device="sda", instance="db0{number}:9100"}}' for number in (1, 2)]
    header = ",".join('"' + name.replace('"', '""') + '"' for name in names)
    text = f"Time,{header}\n2026-03-02 10:00:00,1,1\n2026-03-02 10:00:15,2,2\n"
    with pytest.raises(StallmarkError, match="is of db01, db02"):
        import_texts(text, zone="UTC", names=dict.fromkeys(names, "reads_per_s"))
    assert import_texts(text, zone="UTC", names={names[0]: "reads_per_s"}).io("reads") == [30]


def test_collectl_as_csv(import_texts):
    """`collectl -P --sep ,` of a published file: the date has no marks between its parts."""
    text = "#Date,Time,[DSK:sda]Name,[DSK:sda]Reads,[DSK:sda]RKBytes,[DSK:sda]Writes\n"
    text += "20130802,16:07:51.285,sda,112.5,8,1\n20130802,16:07:52.285,sda,40,8,1\n"
    found = import_texts(text, zone="UTC", names={"[DSK:sda]Reads": "reads_per_s"})
    assert found.io("reads") == pytest.approx([40]) and found.ends() == ["02 16:07:52"]
    with pytest.raises(StallmarkError, match="is in KB/s, and read_bytes_per_s in B/s"):
        import_texts(text, zone="UTC", names={"[DSK:sda]RKBytes": "read_bytes_per_s"})


def test_commas_between_thousands_are_no_decimals(import_texts):
    """Grafana 5.4 wrote them (its issue 14578)."""
    rows = ("10:00:00+11:00;1,721", "11:00:00+11:00;2,042", "12:00:00+11:00;98.5")
    text = "Series;Time;Value\n" + "".join(f"r;2018-12-12T{row}\n" for row in rows)
    with pytest.raises(StallmarkError, match="holds text"):
        import_texts(text, names={"Value": "reads_per_s"})
    found = import_texts(text.replace("98.5", "98,5"), names={"Value": "reads_per_s"})
    assert found.io("reads") == pytest.approx([2.042 * 3600, 98.5 * 3600])


@pytest.mark.parametrize("cell", ['"1,234.5"', "#N/A"])
def test_a_series_of_ours_that_holds_text_is_refused(import_texts, cell):
    with pytest.raises(StallmarkError, match=r"“reads_per_s” of .* holds text"):
        import_texts(f"Time,reads_per_s,writes_per_s\n2026-03-02T10:00:00Z,1,1\n2026-03-02T10:00:15Z,{cell},1\n")


def test_all_files_and_a_class_of_them_would_count_twice(import_texts):
    text = "Time,reads_per_s,log.reads_per_s\n2026-03-02T10:00:00Z,3,1\n2026-03-02T10:00:15Z,3,1\n"
    with pytest.raises(StallmarkError, match=r"reads_per_s and log\.reads_per_s.*other\.reads_per_s"):
        import_texts(text)
    found = import_texts(text, names={"reads_per_s": "other.reads_per_s"})
    assert (found.io("reads", "other"), found.io("reads", "log")) == ([45], [15])
