"""Kinds of files: those with a reader, and those that are refused by name with what helps."""

import ast
import gzip
import string
from pathlib import Path

import pytest

import stallmark
from stallmark.errors import StallmarkError
from stallmark.record.formats import detect_format
from stallmark.record.formats.sample import load_yaml

LINUX = "Linux 5.14.0 (db01) \t03/02/2026 \t_x86_64_\t(8 CPU)\n\n"
SADF = r"`sadf -j FILE -- -b -d -u -p`"
IOSTAT = r"record `S_TIME_FORMAT=ISO iostat -xt 15`"
CSV = "put its series into a CSV"
TOOL = f"another tool of sysstat: {IOSTAT}"
ESXTOP = r'"(PDH-CSV 4.0) (UTC)(0)","\\esx1\Memory\Free MBytes","\\esx1\Physical Cpu(0)\% Util Time"' + "\n"


@pytest.mark.parametrize(
    ("content", "format"),
    [
        (r'"(PDH-CSV 4.0) (UTC)(0)","\\DB01\Memory\Free"' + "\n", "perfmon"),
        (ESXTOP, "perfmon"),
        ('{"sysstat": {"hosts": [{"date": "03/02/2026", "statistics": [{"timestamp": "10:00"}]}]}}', "iostat"),
        ('\ufeff\n{"sysstat": {"hosts": [{"file-date": "2026-03-02", "statistics": []}]}}', "sar"),
        ('{"status":"success","data":{"resultType":"matrix","result":[]}}', "prometheus"),
        ('{"data":{"result":[],"resultType":"matrix"},"status":"success"}', "prometheus"),
        ('[{"metric":{"__name__":"up"},"values":[[1,"1"]]}]', "prometheus"),
        (LINUX + "Device r/s\n", "iostat"),
        (LINUX + "avg-cpu:  %user   %nice\n", "iostat"),
        ("# iostat -xh 5\n     r/s     rkB/s Device\n", "iostat"),
        ("Device:            tps   Blk_read/s\n", "iostat"),
        ("Time,reads_per_s\n2026-03-02T10:00:00Z,1\n", "csv"),
        ("Device,Time,r/s\nsda,2026-03-02T10:00:00Z,1\n", "csv"),
    ],
)
def test_formats_that_are_read(tmp_path, content, format):
    (tmp_path / "plain").write_text(content)
    (tmp_path / "packed.gz").write_bytes(gzip.compress(content.encode()))
    assert detect_format(tmp_path / "plain") == detect_format(tmp_path / "packed.gz") == format


@pytest.mark.parametrize(
    ("content", "words"),
    [
        (LINUX + "12:00:01 AM     CPU      %usr     %idle\n12:10:01 AM     all      1.00     99.00\n", f"sar.*{SADF}"),
        (
            "[root@db01 ~]# sar -d 2\n" + LINUX + "06:24:52 PM       DEV       tps\n06:24:54 PM  sda 24.50\n",
            f"sar.*{SADF}",
        ),
        (
            "Linux 3.10.0 (db01) \t2026年03月02日 \t_x86_64_\n\n00时00分01秒       DEV       tps  rd_sec/s\n",
            f"sar.*{SADF}",
        ),
        (
            "# hostname;interval;timestamp;DEV;tps;rkB/s\ndb01;600;2026-03-02 00:10:01 CET;sda;10.00\n",
            f"sadf -d.*{SADF}",
        ),
        ("10:06:56 PM    dev8-0      4.00      8.00    128.00\n", f"sar.*{SADF}"),  # as grep leaves it
        ("sda               1.44        37.79         3.95\n", f"iostat without the names.*{IOSTAT}"),
        (LINUX + "10:00:01 AM  CPU    %usr   %nice    %sys %iowait    %irq   %soft\n", f"of mpstat: {IOSTAT}"),
        (LINUX + "10:00:01 AM     CPU      %usr     %nice      %sys   %iowait    %steal      %irq\n", f"sar.*{SADF}"),
        (LINUX + "10:00:01      UID       PID    %usr\n", f"another tool of sysstat: {IOSTAT}.*{SADF}"),
        ("procs -----------memory---------- ---swap--\n r  b   swpd   free\n", f"of vmstat: {IOSTAT}"),
        (
            "disk- ------------reads------------ ------------writes-----------\n       total merged sectors\n",
            "of vmstat",
        ),
        (
            "              capacity     operations     bandwidth \npool        alloc   free   read  write\n",
            "zpool iostat",
        ),
        ("waiting for 1 second sample...\n#<--------CPU--------><----------Disks----------->\n", "collectl.*--sep ,"),
        ("ATOP - db01  2026/03/02  10:00:00  ------  10m0s elapsed\n", f"of atop: {IOSTAT}"),
        ("SEP\nDSK db01 1772445600 2026/03/02 10:00:00 600 sda 1 2 3 4 5\n", f"of atop: {IOSTAT}"),
        ('{\n  "MetricDataResults": [{"Id": "m1", "Label": "ReadIOPS"}]}', "CloudWatch: make a CSV of it with jq"),
        ('{"cost": 59, "interval": "PT1M", "value": [{"timeseries": []}]}', "Azure Monitor: make a CSV of it with jq"),
        ('{"metric":{"__name__":"node_disk_io_now"},"values":[1],"timestamps":[1]}', "VictoriaMetrics.*query_range"),
        ('{"results":[{"statement_id":0,"series":[]}]}', "JSON of InfluxDB: ask for CSV"),
        ("# HELP node_disk_io_now The number of I/Os.\n# TYPE node_disk_io_now gauge\n", "one scrape of an exporter"),
        ('node_disk_io_now{device="sda"} 1\nnode_load1 0.1\n', "one scrape of an exporter"),
        ('node_load1{instance="a"} =>\n1 @[1772445600]\n', "text of promtool.*promtool query range -o json"),
        ('up{instance="a"} => 1 @[1772445600.5]\n', "text of promtool"),
        ('{__name__="node_load1", instance="a"} 1 1772445600000\n', "a dump of a Prometheus.*query_range"),
        ('{"results":{"A":{"status":200,"frames":[]}}}', "JSON of Grafana: download the panel's CSV"),
        ('[{"schema":{"refId":"A"},"data":{"values":[]}}]', "JSON of Grafana"),
        ('{"state":"Done","series":[]}', "JSON of Grafana"),
        ('#TYPE Microsoft.PowerShell\n"Timestamp","CounterSamples"\n', "Get-Counter.*Export-Counter"),
        ('"Readings","Timestamp","CounterSamples"\n', "Get-Counter.*Export-Counter"),
        ("\nTimestamp                 CounterSamples\n---------                 --------------\n", "Get-Counter"),
        ("AAA,progname,nmon\nAAA,host,db01\n", f"of nmon: {IOSTAT}"),
        *(
            (f'{{"sysstat": {{"hosts": [{{"statistics": [{{"timestamp": "10:00:00", "{key}": []}}]}}]}}}}', TOOL)
            for key in ("filesystem", "tape", "cpu-load", "sum-interrupts", "task-io")
        ),
        ("db01\t600\t2026-03-02 00:10:01 UTC\tsda\ttps\t10.00\n", f"sadf -p.*{SADF}"),
        ('<?xml version="1.0"?>\n<!DOCTYPE sysstat PUBLIC "x">\n<sysstat\n', f"sadf -x.*{SADF}"),
        ("# Device      rrqm/s wrqm/s   r/s    w/s    rkB/s\n", f"pcp iostat.*{IOSTAT}"),
        (" loadavg                      memory      swap        io\n   1 min   swpd   free\n", f"pmstat.*{IOSTAT}"),
        ("\nnas:/home mounted on /home:\n\n           ops/s       rpc bklog\n", f"nfsiostat.*{IOSTAT}"),
        ("Total DISK READ:         0.00 B/s | Total DISK WRITE:  0.00 B/s\n", f"iotop.*{IOSTAT}"),
        ("10:00:00 Total DISK READ :       0.00 B/s | Total\n", f"iotop.*{IOSTAT}"),
        ("  8,0    3        1     0.000000000   697  G   W 223490 + 8 [kjournald]\n", f"blktrace.*{IOSTAT}"),
        ("==================== All Devices ====================\n", f"blktrace.*{IOSTAT}"),
        ("           26 disks \n            2 partitions \n        12345 total reads\n", f"of vmstat: {IOSTAT}"),
        ("--procs-- -----------------------memory----------------------\n", f"of vmstat: {IOSTAT}"),
        ("----system---- ----total-usage---- -dsk/total-\n     time     |usr sys\n", f"of dstat: {IOSTAT}"),
        ("              disk0 \n    KB/t  tps  MB/s \n   24.51   10  0.24\n", f"BSD.*{CSV}"),
        ("dT: 1.001s  w: 1.000s\n L(q)  ops/s    r/s   kBps   ms/r\n", f"BSD.*{CSV}"),
        ('"Dstat 0.7.3 CSV output"\n"Author:","Dag Wieers"\n', f"of dstat: {IOSTAT}"),
        ('"pcp-dstat 5.0.2 CSV Output"\n', f"of dstat: {IOSTAT}"),
        ("----total-cpu-usage---- -dsk/total-\nusr sys idl wai stl| read  writ\n", f"of dstat: {IOSTAT}"),
        (
            "\nSystem configuration: lcpu=8 drives=3\n\ntty:      tin         tout    avg-cpu: % user % sys\n",
            f"AIX.*{CSV}",
        ),
        ("AIX aix72 2 7 00F9\n\n00:00:00 device %busy\n", f"AIX.*{CSV}"),
        ("                    extended device statistics\n    r/s    w/s   kr/s   kw/s wait actv\n", f"Solaris.*{CSV}"),
        ("SunOS sol11 5.11 11.3 sun4v\n00:00:00 device  %busy\n", f"Solaris.*{CSV}"),
        ("              disk0               disk2       cpu    load average\n    KB/t  tps  MB/s\n", f"BSD.*{CSV}"),
        ("       tty            ada0             cpu\n tin  tout  KB/t   tps  MB/s\n", f"BSD.*{CSV}"),
        ("<xml/>", "no format known here: use Perfmon's CSV"),
        (b"\x96\xd5\x75\x21\0\0", f"a binary file of sar: write it as JSON with {SADF}"),
        (b"PK\x03\x04\0\0", "save the sheet as CSV"),
        (b"BZh91AY\0", "bunzip2"),
        (b"\x07taea\0\0", f"binary file of blktrace: {IOSTAT}"),
        (b"\xfd7zXZ\0", "unxz"),
        (b"(\xb5/\xfd\0", "unzstd"),
        (b"\x07\0\0\0", "not text"),
    ],
)
def test_other_kinds_are_refused_by_name(tmp_path, content, words):
    path = tmp_path / "file"
    path.write_bytes(content.encode() if isinstance(content, str) else content)
    with pytest.raises(StallmarkError, match=f"file is .*{words}") as refused:
        detect_format(path)
    assert str(refused.value).endswith(".") and "\n" not in str(refused.value)


@pytest.mark.parametrize(("name", "words"), [("a.blg", "`relog FILE -f CSV -o out.csv`"), ("a.XEL", "extended events")])
def test_binary_files_of_windows_are_known_by_their_names(tmp_path, name, words):
    (tmp_path / name).write_bytes(b"\x01\0\0\0")
    with pytest.raises(StallmarkError, match=words):
        detect_format(tmp_path / name)


@pytest.mark.parametrize("object", ["Physical Cpu", "Physical Disk Adapter", "Physical Disk Per-Device-Per-World"])
def test_esxtop_makes_no_profile(tmp_path, object):
    (tmp_path / "esxtop.csv").write_text(ESXTOP.replace("Physical Cpu", object))
    with pytest.raises(StallmarkError, match=r"esxtop.*: record inside the virtual machine"):
        detect_format(tmp_path / "esxtop.csv", of_profile=True)


@pytest.mark.parametrize("text", ["1", "---a", "-a", "a1 ", "a[1]: "])
def test_a_long_line_is_looked_through_once(tmp_path, text):
    """Patterns with two repetitions that fit the same text took minutes."""
    (tmp_path / "file").write_text(text * (65_536 // len(text)))
    assert detect_format(tmp_path / "file") == "csv"


ROOM = Path(stallmark.__file__).parent / "record" / "formats"


def test_each_refusal_is_used_with_its_facts():
    table = load_yaml("sentences")
    needed = {
        kind: {field.partition(".")[0] for _, field, _, _ in string.Formatter().parse(sentence) if field}
        - table["commands"].keys()
        for kind, sentence in (table["refusals"] | table["notes"]).items()
    }
    used = set[str]()
    for path in sorted(ROOM.glob("*.py")):
        for call in ast.walk(ast.parse(path.read_text())):
            name = getattr(call.func, "id", getattr(call.func, "attr", "")) if isinstance(call, ast.Call) else ""
            if name in ("refusal", "note", "wrong_option"):
                kinds = {
                    text.value for text in ast.walk(call.args[0]) if isinstance(text, ast.Constant)
                } & needed.keys()
                facts = {str(fact.arg) for fact in call.keywords} | ({"path"} if len(call.args) > 1 else set())
                assert all(needed[kind] <= facts for kind in kinds), (path.name, kinds)
                used |= kinds
    # Chosen by a variable.
    by_variable = {"no_device", "no_numbered_device", "stacked_disks", "numbered_disks"}
    by_variable |= {"left_out", "converted", "unknown", "absent", "partial"}
    assert needed.keys() - used == by_variable
