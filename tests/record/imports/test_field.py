"""Files as people have them: what was misread once is read right, or refused with what to do."""

import json

import pytest
from tests.support.recorders import sadf

from stallmark.errors import StallmarkError
from stallmark.record.imports.recording import whole_disks

LINUX = "Linux 5.14.0 (db01) \t03/02/2026 \t_x86_64_\t(8 CPU)\n\n"
COLUMNS = "Device            r/s     rkB/s r_await     w/s     wkB/s w_await\n"
CPU = (
    "avg-cpu:  %user   %nice %system %iowait  %steal   %idle\n"
    "          20.00    0.00    5.00    5.00    0.00   70.00\n\n"
)


def reports(*rows: str, columns: str = COLUMNS, head: str = LINUX, stamp: str = "2026-03-02 10:00:{:02d}") -> str:
    """Return three reports of iostat, 15 s apart."""
    lines = "".join(f"{row}\n" for row in rows)
    return head + "".join(f"{stamp.format(15 * place)}\n{CPU}{columns}{lines}\n" for place in range(3))


SDA = "sda             100.00    800.00    2.00   50.00    400.00    1.00"


@pytest.mark.parametrize(
    ("text", "reads", "read_bytes"),
    [
        (reports(SDA), 1500, 800 * 1024 * 15),
        (reports("VolGroup00-LogVol00", SDA.replace("sda", "   ")), 1500, 800 * 1024 * 15),
        (reports(SDA.replace("sda ", "cciss/c0d0 "), SDA.replace("sda", "dm-0")), 1500, 800 * 1024 * 15),
        (reports(SDA.replace("sda", "nvme0c0n1"), SDA.replace("sda", "nvme0n1")), 1500, 800 * 1024 * 15),
        (reports(SDA.replace("sda", "xvda1"), SDA.replace("sda", "xvdf")), 3000, 1600 * 1024 * 15),
        (reports(SDA.replace("sda", "xvdap1")), 1500, 800 * 1024 * 15),
        (reports("\x1b[32;22msda \x1b[0m\x1b[34;22m 100.0\x1b[0m 800 2.00 50 400 1.00"), 1500, 800 * 1024 * 15),
        (reports(SDA, head=LINUX.replace("(db01) ", "")), 1500, 800 * 1024 * 15),
        (reports(SDA, head=""), 1500, 800 * 1024 * 15),
        (reports(SDA, head=LINUX.replace("03/02/2026", "Monday 02 March 2026")), 1500, 800 * 1024 * 15),
        (reports("sda 150.00 1600.00 800.00", columns="Device: tps Blk_read/s Blk_wrtn/s\n"), None, 1600 * 512 * 15),
    ],
    ids=["plain", "long name", "cciss", "nvme paths", "partition alone", "xvdap1", "colours", "no host", "no header",
         "date in words", "blocks"],
)  # fmt: skip
def test_devices_of_iostat_count_once(import_texts, text, reads, read_bytes):
    found = import_texts(text, zone="UTC")
    assert found.io("reads") == [reads] * 2 and found.io("read_bytes") == [read_bytes] * 2
    cores = 8 if "8 CPU" in text else None
    assert found.manifest.server.cores == cores
    assert found.server("cpu_s") == ([0.25 * 8 * 15] * 2 if cores else [])


@pytest.mark.parametrize(
    ("text", "words"),
    [
        (reports(SDA, stamp="02/03/26 10:00:{:02d} PM IST"), "no times that can be read.*`S_TIME_FORMAT=ISO"),
        (reports(SDA, stamp="Time: 10:00:{:02d} AM"), "no times that can be read.*`S_TIME_FORMAT=ISO"),
        (reports(SDA, stamp="02/03/26 10:00:{:02d} AM"), "--dates month-first or --dates day-first"),
        (reports("100.0 800.0k sda", columns="     r/s     rkB/s Device\n"), "leave -h out, as in `S_TIME_FORMAT=ISO"),
        (reports(SDA) + reports(SDA, head=LINUX.replace("db01", "db02")), "is of db01 and db02"),
    ],
    ids=["zone of letters", "no date", "day or month", "human", "two hosts"],
)
def test_iostat_that_cannot_be_read_is_refused_with_the_command(import_texts, text, words):
    with pytest.raises(StallmarkError, match=words):
        import_texts(text, zone="UTC")


def test_an_order_that_was_given_is_stronger_than_am_and_pm(import_texts):
    text = reports(SDA, stamp="02/03/2026 10:00:{:02d} AM")
    assert import_texts(text, zone="UTC", dates="day-first").ends() == ["02 10:00:15", "02 10:00:30"]
    assert import_texts(text, zone="UTC").ends() == ["03 10:00:15", "03 10:00:30"]


def iostat_json(**disk: float) -> str:
    samples = [
        {"timestamp": f"2026-03-02T10:00:{15 * place:02d}Z", "disk": [{"disk_device": "nvme0n1", **disk}]}
        for place in range(3)
    ]
    return json.dumps({"sysstat": {"hosts": [{"nodename": "db01", "number-of-cpus": 8, "statistics": samples}]}})


def test_megabytes_that_are_sectors_are_unknown(import_texts):
    """sysstat issue 264."""
    disk = {"r/s": 10.0, "rMB/s": 0.04, "rareq-sz": 4.0, "w/s": 31.0, "wMB/s": 248.0, "wareq-sz": 4.0}
    found = import_texts(iostat_json(**disk))
    assert found.io("writes") == [465] * 2 and found.io("write_bytes") == [None] * 2
    assert found.io("read_bytes") == [pytest.approx(0.04 * 1024**2 * 15)] * 2
    assert any("wMB/s" in note and "-m" in note for note in found.manifest.notes)


def test_two_recordings_in_one_file_are_refused(import_texts):
    with pytest.raises(StallmarkError, match="several recordings"):
        import_texts(iostat_json(**{"r/s": 1.0}) + "\n" + iostat_json(**{"r/s": 1.0}))


def test_all_disks_of_sar_count_before_devices_that_stand_on_others(import_texts):
    names = ("dev252-0", "dev253-0")  # a virtual disk and what LVM makes of it
    stamp = {"date": "2026-03-02", "time": "16:10:00", "utc": 1, "interval": 600}
    io = {"io-reads": {"rtps": 10.0, "bread": 160.0}, "io-writes": {"wtps": 5.0, "bwrtn": 80.0}}
    disks = [{"disk-device": name, "tps": 15.0, "rkB": 80.0, "wkB": 40.0} for name in names]
    found = import_texts(sadf([{"timestamp": stamp, "io": io, "disk": disks}]))
    assert found.io("read_bytes") == [160 * 512 * 600] and found.io("reads") == [6000]


def test_whole_disks_of_a_machine():
    assert whole_disks({"sda", "sda1", "sdp", "sdp1", "dm-0"}) == {"sda", "sdp"}
    assert whole_disks({"nvme0n1", "nvme0n1p2", "nvme0n12", "nvme1c2n1"}) == {"nvme0n1", "nvme0n12", "nvme1c2n1"}
    assert whole_disks({"dm-0", "loop1"}) == {"dm-0"}
