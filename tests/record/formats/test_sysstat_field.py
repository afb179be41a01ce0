"""iostat and sadf as people have them: read right, or refused with what would have worked."""

import gzip
import json
import shutil
import subprocess

import pytest
from tests.support import recorders
from tests.support.recorders import Moment, sadf

from stallmark.errors import StallmarkError
from stallmark.record.formats.dates import Schedule, schedule_from
from stallmark.record.profile import FileClass

pytestmark = pytest.mark.thorough

LINUX = "Linux 5.14.0 (db01) \t03/02/2026 \t_x86_64_\t(8 CPU)\n\n"
COLUMNS = "Device            r/s     rkB/s r_await     w/s     wkB/s w_await\n"
CPU = (
    "avg-cpu:  %user   %nice %system %iowait  %steal   %idle\n"
    "          20.00    0.00    5.00    5.00    0.00   70.00\n\n"
)
STAMP = "2026-03-02T10:00:{:02d}+0000"
SDA = "sda             100.00    800.00    2.00   50.00    400.00    1.00"
OLD = "Device:         rrqm/s   wrqm/s     r/s     w/s    rMB/s    wMB/s avgrq-sz avgqu-sz   await  svctm  %util\n"
VDA = "vda               0.00     0.00    2.00    4.00     0.50     0.25    16.00     0.01    2.00   0.10   1.00"
HUMAN = "     r/s     rkB/s   rrqm/s  %rrqm r_await rareq-sz Device\n"
HUMAN_WRITES = "     w/s     wkB/s   wrqm/s  %wrqm w_await wareq-sz Device\n"


def reports(*rows: str, columns: str = COLUMNS, head: str = LINUX, stamp: str = STAMP, cpu: str = CPU) -> str:
    """Return three reports of iostat, 15 s apart."""
    lines = "".join(f"{row}\n" for row in rows)
    times = [f"{stamp.format(15 * place)}\n" if stamp else "" for place in range(3)]
    return head + "".join(f"{time}{cpu}{columns}{lines}\n" for time in times)


def device(name: str) -> str:
    return SDA.replace("sda", name)


@pytest.mark.parametrize(
    ("text", "reads", "read_bytes"),
    [
        (reports(SDA), 1500, 800 * 1024 * 15),
        (reports(SDA, "VolGroup00-LogVol00", device("   ")), 1500, 800 * 1024 * 15),
        (reports(device("cciss/c0d0"), device("dm-0"), device("dm-1")), 1500, 800 * 1024 * 15),
        (reports(device("nvme0c0n1"), device("nvme0n1")), 1500, 800 * 1024 * 15),
        (reports(device("nvme0c0n1"), device("nvme0c1n1"), "nvme0n1 0.00 0.00 0.00 0.00 0.00 0.00"),
         3000, 1600 * 1024 * 15),
        (reports(device("nvme0c0n1"), device("vg-data"), "nvme0n1 0.00 0.00 0.00 0.00 0.00 0.00"),
         1500, 800 * 1024 * 15),
        (reports(device("xvdap1"), device("xvdf")), 3000, 1600 * 1024 * 15),
        (reports(device("xvdap1")), 1500, 800 * 1024 * 15),
        (reports("\x1b[32;22msda \x1b[0m\x1b[34;22m 100.0\x1b[0m 800 2.00 50 400 1.00"), 1500, 800 * 1024 * 15),
        (reports(SDA, head=LINUX.replace("(db01) ", "")), 1500, 800 * 1024 * 15),
        (reports(SDA, head=""), 1500, 800 * 1024 * 15),
        (reports(SDA, head="[root@db01 ~]# iostat -xt 15\n" + LINUX), 1500, 800 * 1024 * 15),
        (reports(SDA, head=LINUX.replace("03/02/2026", "Monday 02 March 2026")), 1500, 800 * 1024 * 15),
        (reports("sda 150.00 1600.00 800.00", columns="Device: tps Blk_read/s Blk_wrtn/s\n"), None, 1600 * 512 * 15),
        (reports(VDA, columns=OLD), 30, 0.5 * 1024**2 * 15),
        (reports(VDA, columns=OLD).rstrip("\n"), 30, 0.5 * 1024**2 * 15),
        (reports("100.00 800.0k 0.00 0.0% 2.00 8.0k sda", "", HUMAN_WRITES + " 50.00 400.0k 0.00 0.0% 1.00 8.0k sda",
                 columns=HUMAN), 1500, 800 * 1024 * 15),
        (reports("100.00 1.5M 0.00 0.0% 2.00 16.0k sda", columns=HUMAN.replace("kB/s", "MB/s")),
         1500, 1.5 * 1024**2 * 15),
        (reports(SDA, stamp="17724456{:02d}"), 1500, 800 * 1024 * 15),  # iostat -U
    ],
    ids=["plain", "long name", "cciss", "nvme paths", "nvme paths of an old kernel", "LVM on these",
         "partition beside a disk", "partition alone", "colours", "no host", "no header", "prompt", "date in words",
         "blocks", "megabytes", "last report without blank", "human", "human megabytes", "seconds since 1970"],
)  # fmt: skip
def test_devices_of_iostat_count_once(import_texts, text, reads, read_bytes):
    found = import_texts(text, zone="UTC")
    assert found.io("reads") == [reads] * 2 and found.io("read_bytes") == pytest.approx([read_bytes] * 2)
    cores = 8 if "8 CPU" in text else None
    assert found.manifest.server.cores == cores
    assert found.server("cpu_s") == ([0.25 * 8 * 15] * 2 if cores else [])
    assert ("server.cpu_s" in found.manifest.missing) == (cores is None)


@pytest.mark.parametrize(
    "stamp", ["02/03/26 10:00:{:02d} PM IST", "Time: 10:00:{:02d} AM", "02/03/26 10:00:{:02d} AM", ""]
)
def test_iostat_without_times_that_can_be_read_takes_those_that_are_given(import_texts, stamp):
    text = reports(SDA, stamp=stamp)
    with pytest.raises(StallmarkError, match="--start 2026-03-02T10:00 --interval 15s"):
        import_texts(text, zone="UTC")
    found = import_texts(text, schedule=schedule_from("2026-03-02T10:00", 20.0, "Europe/Berlin"))
    assert found.ends() == ["02 09:00:20", "02 09:00:40"] and found.io("reads") == [2000, 2000]


def test_reports_of_devices_alone_begin_with_their_columns(import_texts):
    schedule = Schedule(1772445600.0, 15.0)
    assert import_texts(reports(SDA, stamp="", cpu=""), schedule=schedule).io("reads") == [1500, 1500]
    human = reports("1.00 8.0k 0.00 0.0% 2.00 8.0k sda", "", HUMAN_WRITES + "2.00 8.0k 0.00 0.0% 2.00 4.0k sda",
                    columns=HUMAN, stamp="", cpu="")  # fmt: skip
    found = import_texts(human, schedule=schedule)
    assert (found.io("reads"), found.io("writes")) == ([15, 15], [30, 30])
    stamped = json.loads(iostat_json(**{"r/s": 4.0}))
    for sample in stamped["sysstat"]["hosts"][0]["statistics"]:
        del sample["timestamp"]
    with pytest.raises(StallmarkError, match=r"has no times that can be read: run iostat with -t.*--start"):
        import_texts(json.dumps(stamped))
    assert import_texts(json.dumps(stamped), schedule=schedule).io("reads") == [60, 60]


@pytest.mark.parametrize(
    ("start", "interval_s", "zone", "words"),
    [
        ("2026-03-02T10:00", None, "UTC", "belong together"),
        (None, 15.0, "UTC", "belong together"),
        ("2026-03-02", 15.0, "UTC", "is not a time"),
        ("2026-03-02T10:00", 15.0, None, "has no time zone"),
        ("2026-10-25T02:30", 15.0, "Europe/Berlin", "twice"),
    ],
)
def test_times_that_are_given_are_whole(start, interval_s, zone, words):
    with pytest.raises(StallmarkError, match=words):
        schedule_from(start, interval_s, zone)
    assert schedule_from(None, None, zone) is None


def test_given_times_are_of_one_recording_of_iostat(import_texts):
    schedule = Schedule(1772445600.0, 15.0)
    with pytest.raises(StallmarkError, match="holds several recordings"):
        import_texts(reports(SDA, stamp="") * 2, schedule=schedule)
    with pytest.raises(StallmarkError, match="import each file alone"):
        import_texts(reports(SDA, stamp=""), reports(SDA, stamp=""), schedule=schedule)
    with pytest.raises(StallmarkError, match="has its own times"):
        import_texts(sadf([]), schedule=schedule)


@pytest.mark.parametrize("is_json", [False, True])
def test_two_hosts_or_recordings_are_refused_with_the_command_that_splits_them(import_texts, tmp_path, is_json):
    if is_json and shutil.which("jq") is None:
        pytest.skip("jq is not installed")
    one = iostat_json(**{"r/s": 1.0}) if is_json else reports(SDA)
    with pytest.raises(StallmarkError, match=r"holds several recordings.*split it"):
        import_texts(one + one, schedule=Schedule(1772445600.0, 15.0))
    with pytest.raises(StallmarkError, match="is of db01 and db02") as refused:
        import_texts(one + one.replace("db01", "db02"))
    (tmp_path / "FILE").write_text(one + one.replace("db01", "db02"))
    subprocess.run(str(refused.value).split("`")[1], shell=True, check=True, cwd=tmp_path, capture_output=True)
    parts = [import_texts(path) for path in sorted(tmp_path.glob("part-*"))]
    assert [part.manifest.server.name for part in parts] == ["db01", "db02"]
    assert all(part.io("reads") == import_texts(one).io("reads") for part in parts)


def test_an_order_that_was_given_is_stronger_than_am_and_pm(import_texts):
    text = reports(SDA, stamp="02/03/2026 10:00:{:02d} AM")
    assert import_texts(text, zone="UTC", dates="day-first").ends() == ["02 10:00:15", "02 10:00:30"]
    assert import_texts(text, zone="UTC").ends() == ["03 10:00:15", "03 10:00:30"]


def iostat_json(begin: int = 0, **disk: float) -> str:
    samples = [
        {"timestamp": f"2026-03-02T10:{begin:02d}:{15 * place:02d}Z", "disk": [{"disk_device": "nvme0n1", **disk}]}
        for place in range(3)
    ]
    return json.dumps({"sysstat": {"hosts": [{"nodename": "db01", "number-of-cpus": 8, "statistics": samples}]}})


@pytest.mark.parametrize(("unit", "written"), [("MB", 248.0), ("kB", 248.0)])
def test_bytes_that_are_sectors_are_requests_times_their_size(import_texts, unit, written):
    """sysstat issue 264: 12.1 and 12.2.0 wrote sectors, whatever the unit."""
    disk = {"r/s": 10.0, f"r{unit}/s": 0.04, "rareq-sz": 4.0 if unit == "MB" else 0.004, "w/s": 31.0, "wareq-sz": 4.0}
    found = import_texts(iostat_json(**disk, **{f"w{unit}/s": written}))
    assert found.io("writes") == [465] * 2 and found.io("write_bytes") == pytest.approx([465 * 4096] * 2)
    assert found.io("read_bytes") == pytest.approx([(40 * 1024 if unit == "MB" else 0.04 * 1024) * 15] * 2)
    assert [note for note in found.manifest.notes if f"w{unit}/s is in sectors" in note]
    assert not [note for note in found.manifest.notes if f"r{unit}/s" in note]


def test_megabytes_of_small_rates_are_requests_times_their_size(import_texts):
    """-m rounds to 10 kB per second, which would be I/Os of no size."""
    columns = "Device r/s rMB/s rareq-sz w/s wMB/s wareq-sz\n"
    found = import_texts(reports("sda 0.50 0.00 8.00 2000.00 15.63 8.00", columns=columns))
    assert found.io("read_bytes") == pytest.approx([0.5 * 8192 * 15] * 2)
    assert found.io("write_bytes") == pytest.approx([15.63 * 1024**2 * 15] * 2)
    found = import_texts(reports("sda 0.50 0.00 2000.00 15.63", columns="Device r/s rMB/s w/s wMB/s\n"))
    assert found.io("write_bytes") == pytest.approx([15.63 * 1024**2 * 15] * 2)
    assert any("rounded to 0.01 MB" in note for note in found.manifest.notes)


def test_documents_that_were_appended_are_all_read(import_texts):
    found = import_texts(iostat_json(**{"r/s": 1.0}) + "\n" + iostat_json(30, **{"r/s": 2.0}))
    assert found.ends() == ["02 10:00:15", "02 10:00:30", "02 10:30:15", "02 10:30:30"]
    assert found.io("reads") == [15, 15, 30, 30] and len(found.manifest.gaps) == 1


SHARES = ("user", "nice", "system", "iowait", "steal", "idle")


@pytest.mark.parametrize(
    ("shares", "busy"),
    [
        ((0, 0, 0, 0, 0, 0), None),  # sysstat issues 157, 182, 433
        ((10, 0, 5, 5, 0, 180), None),
        ((0.8, 0, 0.2, 107562416.6, 0, 99.02), None),  # 14
        ((10.3, 0, 5, 5, 0, 80), 0.153 - 0.003),
        ((0, 0, 0, 0, 0, 100), 0.0),
        ((100, 0, 0, 0, 0, 0), 1.0),
    ],
)
def test_shares_of_cpu_that_are_not_of_one_whole_are_not_known(import_texts, shares, busy):
    row = dict(zip(SHARES, map(float, shares), strict=True))
    line = "avg-cpu:  %user %nice %system %iowait %steal %idle\n "
    line += " ".join(f"{share:.2f}" for share in shares) + "\n\n"
    samples = [
        {"timestamp": {"date": "2026-03-02", "time": f"10:{minute}:00", "utc": 1, "interval": 600}, "disk": [],
         load: [{"cpu": "all", **row}]}
        for minute in (10, 20) for load in ("cpu-load", "cpu-load-all")
    ]  # fmt: skip
    document = json.loads(iostat_json(**{"r/s": 1.0}))
    for sample in document["sysstat"]["hosts"][0]["statistics"]:
        sample["avg-cpu"] = row
    texts = [(reports(SDA, cpu=line), 8 * 15), (json.dumps(document), 8 * 15)]
    if busy is not None:
        texts.append((sadf(samples), 2 * 600))
    else:
        with pytest.raises(StallmarkError, match="no interval"):
            import_texts(sadf(samples))
    for text, core_s in texts:
        found = import_texts(text, zone="UTC")
        assert any("CPU is not known" in note for note in found.manifest.notes) == (busy is None)
        assert found.server("cpu_s") == ([] if busy is None else pytest.approx([busy * core_s] * 2, abs=0.005 * core_s))


DISK = {"disk-device": "sda", "tps": 9.0, "rkB": 100.0, "wkB": 50.0, "await": 1.0}


def sadf_of(*disks: dict, **activities: dict) -> str:
    stamp = {"date": "2026-03-02", "utc": 1, "interval": 5}
    return sadf([
        {"timestamp": {**stamp, "time": f"10:00:{5 * place:02d}"}, "disk": [disk], **activities}
        for place, disk in enumerate(disks, 1)
    ])  # fmt: skip


def test_a_device_whose_counters_wrapped_is_not_known(import_texts):
    """sysstat issue 259: 2^32 sectors in 5 s, here as kB; 312: 2^63."""
    found = import_texts(sadf_of(DISK, DISK | {"tps": 2.0**64 / 5, "rkB": 858993457.6 / 2}, DISK))
    assert found.io("read_bytes") == [100 * 1024 * 5, 100 * 1024 * 5]
    assert any("counters of sda began anew" in note for note in found.manifest.notes)
    found = import_texts(sadf_of(DISK, DISK | {"rkB": 2.0**63}, DISK))
    assert (found.io("read_bytes")[1], found.io("write_bytes")) == (None, [50 * 1024 * 5] * 3)
    io = {"io-reads": {"rtps": 2.0**32 / 5}, "io-writes": {"wtps": 5.0}}
    found = import_texts(sadf_of(DISK, io=io))
    assert found.io("writes") == [None] and "counters of all disks began anew" in " ".join(found.manifest.notes)


@pytest.mark.parametrize("value", [True, float("nan"), float("-inf"), "100", None])
def test_what_is_not_a_number_in_json_is_not_known(import_texts, value):
    found = import_texts(sadf_of(DISK, DISK | {"rkB": value}, DISK))
    assert found.io("read_bytes") == [100 * 1024 * 5, None, 100 * 1024 * 5]
    found = import_texts(iostat_json(**{"r/s": 10.0, "rkB/s": value, "w/s": 2.0}))
    assert found.io("reads") == [150] * 2 and found.io("read_bytes") == [None] * 2


def test_all_disks_of_sar_count_before_devices_that_stand_on_others(import_texts):
    io = {"io-reads": {"rtps": 10.0, "bread": 160.0}, "io-writes": {"wtps": 5.0, "bwrtn": 80.0}}
    stamp = {"date": "2026-03-02", "time": "16:10:00", "utc": 1, "interval": 600}
    disks = [DISK | {"disk-device": name} for name in ("dev252-0", "dev253-0")]  # a virtual disk and LVM on it
    found = import_texts(sadf([{"timestamp": stamp, "io": io, "disk": disks}]))
    assert found.io("read_bytes") == [160 * 512 * 600] and found.io("reads") == [6000]
    with pytest.raises(StallmarkError, match=r"dev252-0, dev253-0 may be disks.*dev252-0=data.*`sadf -j FILE -- -b"):
        import_texts(sadf([{"timestamp": stamp, "disk": disks}]))
    found = import_texts(sadf([{"timestamp": stamp, "disk": disks}]), classes={"dev252-0": FileClass.DATA})
    assert found.io("read_bytes", "data") == [100 * 1024 * 600]


def test_several_devices_of_lvm_alone_may_be_one_on_the_other(import_texts):
    with pytest.raises(StallmarkError, match=r"dm-0, dm-1 may be disks.*--class dm-0=data"):
        import_texts(reports(device("dm-0"), device("dm-1")))
    assert import_texts(reports(device("dm-0"))).io("reads") == [1500, 1500]


@pytest.mark.parametrize(("kib", "is_refused"), [("900.00", False), ("1900.00", True)])
def test_a_device_of_an_unknown_kind_that_does_more_than_the_disks_is_refused(import_texts, kib, is_refused):
    """qbd0 of a cloud did 35,000 times the I/O of the disks beside it; with less it may be stacked on them."""
    text = reports(SDA, f"qbd0 100.00 {kib} 2.00 50.00 400.00 1.00")
    if is_refused:
        with pytest.raises(
            StallmarkError, match=r"qbd0 .of a kind that is not known. moved more bytes than sda.*--class qbd0=data"
        ):
            import_texts(text)
        found = import_texts(text, classes={"qbd0": FileClass.DATA})
        assert found.io("read_bytes", "data") == [1900 * 1024 * 15] * 2
    else:
        assert import_texts(text).io("reads") == [1500, 1500]


def test_what_is_left_out_is_named_with_its_reason(import_texts):
    found = import_texts(reports(SDA, device("sda1"), device("dm-0"), device("loop0"), device("vg-data")))
    assert found.manifest.notes[-1].endswith(
        "not counted are dm-0, vg-data (on other devices); loop0 (no disks); sda1 (on the disks)."
    )


def test_a_device_that_is_gone_for_good_is_not_missing(import_texts):
    rows = ["sda 1.00 8.00 1.00 0.00 0.00 0.00", "sdb 2.00 8.00 1.00 0.00 0.00 0.00", "sdc 0 0 0 0 0 0"]
    both, without = "\n".join(rows), "\n".join([rows[0], rows[2]])
    text = LINUX + "".join(
        f"{STAMP.format(place)}\n{COLUMNS}{both if place < 3 else without}\n\n" for place in range(6)
    )
    found = import_texts(text, zone="UTC")
    assert found.io("reads") == [3, 3, 1, 1, 1]
    assert any("0 while not: sdb" in note for note in found.manifest.notes)


def stamped(time: str) -> str:
    """Return three reports with a time before each line."""
    return "".join(
        f"{time.format(15 * place)}{line}\n" for place in range(3) for line in f"{CPU}{COLUMNS}{SDA}\n\n".splitlines()
    )


IN_FRONT = Schedule(1772445600.0, 15.0)


@pytest.mark.parametrize(
    ("text", "name", "schedule"),
    [
        (stamped("2026-03-02 10:00:{:02d} "), "with a time before each line", None),
        (stamped("2026-03-02T10:00:{:02d}+0000 "), "with a time before each line", None),
        (stamped("17724456{:02d}.512345 "), "with a time before each line", None),
        (stamped("2026-03-02 10:00:{:02d} ").replace(CPU[:8], "other"), "with a time before each line", None),
        (stamped("Mar 02 10:00:{:02d} "), "that has no year.*--start 2026-03-02T10:00 --interval 15s", IN_FRONT),
        (stamped("00:00:{:02d} "), "that has no year.*--start", IN_FRONT),
        (stamped("Mar 02 10:00:{:02d} db01 iostat[512]: "), "in a system log", IN_FRONT),
        ("".join(f"{n}:{line}\n" for n, line in enumerate(stamped("").splitlines())), "with a number", IN_FRONT),
        (stamped("db01: "), "with more before each line", IN_FRONT),
        (stamped("> "), "with more before each line", IN_FRONT),
        (stamped("[db/01.x] | "), "with more before each line", IN_FRONT),
        (stamped("[2026-03-02 10:00:{:02d}] "), "with a time before each line", None),
        (stamped("2.3.26 10:00:{:02d} | "), "with more before each line", IN_FRONT),
        ("\n".join(line.rstrip() for line in stamped("> ").splitlines()), "with more before each line", IN_FRONT),
        (stamped("db01's '; touch bad; ' "), "with more before each line", IN_FRONT),
    ],
    ids=[
        "ts",
        "ISO",
        "epoch",
        "devices alone",
        "ts without format",
        "elapsed",
        "journal",
        "numbers",
        "host",
        "mail",
        "brackets",
        "ts in brackets",
        "other times",
        "mail without blanks at the end",
        "quotes",
    ],
)
def test_iostat_behind_something_is_refused_with_the_way_to_cut_it_off(import_texts, tmp_path, text, name, schedule):
    with pytest.raises(StallmarkError, match=rf"is of iostat .*{name}") as refused:
        import_texts(text)
    (tmp_path / "FILE").write_text(text)
    command = str(refused.value).partition("`")[2].partition("`")[0]
    subprocess.run(command, shell=True, check=True, cwd=tmp_path)
    assert import_texts(tmp_path / "new", zone="UTC", schedule=schedule).io("reads") == [1500, 1500]
    assert not (tmp_path / "bad").exists()


def test_samples_of_sadf_without_their_seconds_last_from_one_to_the_next(import_texts):
    stamps = [{"date": "2026-03-02", "time": f"10:0{minute}:00", "utc": 1} for minute in range(3)]
    found = import_texts(sadf([{"timestamp": stamp, "disk": [DISK]} for stamp in stamps]))
    assert found.io("read_bytes") == [100 * 1024 * 60] * 2


def test_a_file_without_a_whole_report_is_refused(import_texts):
    with pytest.raises(StallmarkError, match="no complete report"):
        import_texts(f"{LINUX}2026-03-02T10:00:00Z\n{COLUMNS}{SDA}")


MOMENTS = [Moment(1772445600.0 + 15 * n, {"sda": (n * 30.0,) * 6}, n, n * 10) for n in range(5)]


@pytest.mark.parametrize(
    "text",
    [
        reports(SDA), iostat_json(**{"r/s": 100.0}), sadf_of(DISK, DISK), recorders.perfmon_csv(MOMENTS),
        recorders.prometheus_json(MOMENTS), recorders.open_csv(MOMENTS),
    ],
    ids=["iostat", "iostat JSON", "sadf", "Perfmon", "Prometheus", "CSV"],
)  # fmt: skip
def test_a_gz_is_read_and_one_that_is_cut_says_what_to_do(import_texts, text):
    packed = gzip.compress(text.encode())
    plain = import_texts(text, zone="UTC")
    assert import_texts(packed, zone="UTC").intervals.columns.keys() == plain.intervals.columns.keys()
    with pytest.raises(StallmarkError, match="is damaged or cut: save what is left with `zcat"):
        import_texts(packed[:-20], zone="UTC")


@pytest.mark.parametrize(
    "text",
    [
        reports("sda 9.00 8.00 0.00 0.50 0.91 0.00", columns="Device tps kB/s rqm/s await areq-sz aqu-sz\n", cpu=""),
        reports(device("loop0"), cpu=""),
        sadf_of({"disk-device": "sda", "tps": 9.0}),
    ],
    ids=["iostat -s", "no disk", "no column"],
)  # fmt: skip
def test_a_profile_without_a_row_is_refused_before_a_folder_is_written(import_texts, tmp_path, text):
    with pytest.raises(StallmarkError, match="no interval has a value"):
        import_texts(text, zone="UTC")
    assert not list(tmp_path.glob("profile*"))


FENCED = "Here it is:\n```\n" + reports(SDA).rstrip("\n") + "\n```\n"
TYPESCRIPT = (
    'Script started on 2026-03-02 10:00:00+00:00 [TERM="xterm"]\n'
    "\x1b]0;root@db01: ~\x07\x1b[?2004hroot@db01:~# iostat -xt 15"
    "\r\n\x1b[?2004l\r" + reports(SDA).replace("\n", "\r\n") + "^C\r\n\x1b[?2004hroot@db01:~# exit\r\n"
)


@pytest.mark.parametrize(
    "text",
    [
        FENCED,
        TYPESCRIPT,
        reports(SDA).replace("\n", "\r\r\n"),
        reports(SDA).replace(" ", "\xa0"),
        reports(SDA).replace("  ", "\t"),
        "Linux db01 5.14.0-70.el9.x86_64 #1 SMP x86_64 GNU/Linux\n2026-03-02 09:59:59\n" + reports(SDA),
        reports(SDA, stamp="2026-03-01 09:59:58\n" + STAMP),
    ],
    ids=["fence", "typescript", "ends twice", "spaces of a web page", "tabs", "banner", "date before each report"],
)
def test_iostat_as_it_is_copied_and_pasted(import_texts, text):
    found = import_texts(text, zone="UTC")
    assert (found.io("reads"), found.server("cpu_s")) == ([1500, 1500], [0.25 * 8 * 15] * 2)
    assert (found.manifest.server.name, found.ends()) == ("db01", ["02 10:00:15", "02 10:00:30"])


def test_a_group_of_devices_is_none_of_them(import_texts):
    """iostat -g hdd sda sdb: its group is named like a disk, but begins with a space."""
    rows = (SDA, device("sdb"), f" {device('hdd')}")
    assert import_texts(reports(*rows)).io("reads") == [3000, 3000]
    document = json.loads(iostat_json(**{"r/s": 1.0}))
    for sample in document["sysstat"]["hosts"][0]["statistics"]:
        sample["disk"].append({"disk_device": " hdd", "r/s": 1.0})
    assert import_texts(json.dumps(document)).io("reads") == [15, 15]
    groups = reports(f" {device('hdd')}", f" {device('ssd')}")  # -H
    with pytest.raises(StallmarkError, match="--class hdd=data"):
        import_texts(groups)
    assert import_texts(groups, classes={"ssd": FileClass.LOG}).io("reads", "log") == [1500, 1500]


@pytest.mark.parametrize("name", ["dm-3", "vg-data", "2578463f-6947-48c7-8b09-876a4145cfb1", "DATA"])
def test_a_device_above_others_that_does_more_than_they_is_refused(import_texts, name):
    """Its disks are not in the file: `iostat -xt sda dm-3`."""
    with pytest.raises(StallmarkError, match=rf"{name} \(.*\) moved more bytes than sda.*--class {name}=data"):
        import_texts(reports(SDA, f"{name} 100.00 1900.00 2.00 50.00 400.00 1.00"))


def test_gigabytes_are_requests_times_their_size(import_texts):
    """-G rounds to 10 MB per second."""
    columns = "Device r/s rGB/s rareq-sz w/s wGB/s wareq-sz\n"
    found = import_texts(reports("sda 100.00 0.01 64.00 4000.00 3.05 800.00", columns=columns))
    assert found.io("read_bytes") == pytest.approx([100 * 65536 * 15] * 2)
    assert found.io("write_bytes") == pytest.approx([4000 * 800 * 1024 * 15] * 2)


def test_a_device_with_nothing_but_flushes_is_no_row_of_zeros(import_texts):
    """As -z writes it: sdb is left out while it is idle."""
    columns = "Device r/s rkB/s r_await w/s wkB/s w_await f/s f_await\n"
    row = "sd{} {} 8.00 1.00 0.00 0.00 0.00 {} 0.50\n"
    first = columns + row.format("a", 1.0, 0.0) + row.format("b", 2.0, 0.0) + "\n"
    flushes = columns + "sda 0.00 0.00 0.00 0.00 0.00 0.00 1.00 0.50\n\n"
    text = "".join(f"{STAMP.format(15 * place)}\n{part}" for place, part in enumerate([first, first, flushes, first]))
    found = import_texts(LINUX + text)
    assert found.io("reads") == [45, 0, 45] and any("devices without" in note for note in found.manifest.notes)


@pytest.mark.parametrize(
    ("blocks", "reads"), [(200.0, [10 * 600]), (400.0, [None]), (100.0, [None])], ids=["same", "paths", "not all"]
)
def test_the_sums_over_all_disks_count_if_they_are_of_the_counted_disks(import_texts, blocks, reads):
    """With paths of NVMe sar -b counts each I/O twice; disks of the network it does not count."""
    io = {"io-reads": {"rtps": 10.0, "bread": blocks}, "io-writes": {"wtps": 5.0, "bwrtn": blocks / 2}}
    stamp = {"date": "2026-03-02", "time": "16:10:00", "utc": 1, "interval": 600}
    disks = [DISK | {"disk-device": name} for name in ("nvme0n1", "nvme0c0n1")]
    for classes in ({}, {"nvme0n1": FileClass.DATA}):
        found = import_texts(sadf([{"timestamp": stamp, "io": io, "disk": disks}]), classes=classes)
        held = "data" if classes else "device"
        assert (found.io("reads", held), found.io("read_bytes", held)) == (reads, [100 * 1024 * 600])
        assert any("does not have the bytes of nvme0n1" in note for note in found.manifest.notes) == (blocks != 200)


def test_the_sums_over_all_disks_are_not_known_while_a_disk_is_removed(import_texts):
    """sar writes 0 then, as the sums fall."""
    stamp = {"date": "2026-03-02", "utc": 1, "interval": 60}
    samples = []
    for minute in range(1, 31):
        factor = 0.0 if minute == 7 else 1.0
        io = {"io-reads": {"rtps": 10.0 * factor, "bread": 200.0 * factor}}
        samples.append({"timestamp": {**stamp, "time": f"10:{minute:02d}:00"}, "io": io, "disk": [DISK]})
    found = import_texts(sadf(samples))
    assert found.io("read_bytes") == [100 * 1024 * 60] * 30
    assert found.io("reads") == [600] * 6 + [None] + [600] * 23


@pytest.mark.parametrize("stamp", ["02/03/2569 10:00:{:02d}", "02/03/69 10:00:{:02d}", "1405/12/11 10:00:{:02d}"])
def test_dates_of_other_calendars_are_refused(import_texts, stamp):
    with pytest.raises(StallmarkError, match=r"cannot be read: .* give the time of its first report, as in --start"):
        import_texts(reports(SDA, stamp=stamp), zone="UTC", dates="day-first")


def test_bytes_of_json_without_x_are_not_known(import_texts):
    """iostat 12.1.2 to 12.2.0 wrote sectors as kB there, and nothing in the file says its version."""
    disk = {"tps": 10.0, "kB_read/s": 100.0, "kB_wrtn/s": 50.0, "kB_dscd/s": 0.0, "kB_read": 1500, "kB_wrtn": 750}
    with pytest.raises(StallmarkError, match=r"bytes of JSON without -x are not known.*iostat -xdt -o JSON 15`"):
        import_texts(iostat_json(**disk))
    del disk["kB_dscd/s"]
    assert import_texts(iostat_json(**disk)).io("read_bytes") == [100 * 1024 * 15] * 2


@pytest.mark.parametrize(("size", "rate"), [("4", "0"), ("512", "1")])
def test_megabytes_without_decimals_are_requests_times_their_size(import_texts, size, rate):
    columns = "Device r/s rMB/s rareq-sz w/s\n"
    found = import_texts(reports(f"sda 2 {rate} {size} 7", columns=columns))
    assert found.io("read_bytes") == [2 * int(size) * 1024 * 15] * 2
