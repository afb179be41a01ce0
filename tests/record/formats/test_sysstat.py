"""iostat and sar: real files, and what their formats make difficult."""

from pathlib import Path

import pytest
from tests.support.recorders import Moment, iostat_text, sadf, sadf_json

from stallmark.errors import StallmarkError
from stallmark.record.profile import FileClass

SAMPLES = Path(__file__).parent / "samples"
BEGIN = 1772445600.0  # 2026-03-02 10:00 UTC

HEADER = "Linux 6.1.0 (sql01) \t{} \t_x86_64_\t(4 CPU)\n\n"
REPORT = """{}
avg-cpu:  %user   %nice %system %iowait  %steal   %idle
          10.00    0.00    5.00    9.00    1.00   75.00

Device            r/s     w/s     rkB/s     wkB/s   r_await w_await
sda            {:.2f}    2.00      8.00     16.00      0.50    1.50

"""


def reports(header: str, *stamps: str) -> str:
    return HEADER.format(header) + "".join(REPORT.format(stamp, place) for place, stamp in enumerate(stamps))


@pytest.mark.parametrize("name", ["iostat.json", "iostat.txt"])
def test_real_files_of_iostat(import_texts, name):
    found = import_texts(SAMPLES / name, zone="UTC", dates="month-first")
    assert (found.manifest.source, found.manifest.server.cores, found.manifest.server.name) == ("iostat", 2, "vm")
    assert found.ends() == ["24 00:00:40", "24 00:00:42"]
    first = {"iostat.json": 1489.00, "iostat.txt": 1487.50}[name]
    assert found.io("reads")[0] == pytest.approx(2 * first)
    assert found.io("read_stall_ms")[0] == pytest.approx(2 * first * 0.08)
    if name == "iostat.txt":
        assert found.io("write_bytes")[0] == 2 * 78396 * 1024
        assert found.server("cpu_s") == pytest.approx([4.0, 4.0])
    else:
        assert found.intervals.tables()["server"].num_rows == 0  # not known, so not there


def test_a_real_file_with_its_own_offset_needs_no_zone(import_texts):
    assert import_texts(SAMPLES / "iostat_z.txt").ends() == ["24 00:00:42"]


def test_a_real_recording_of_sar(import_texts):
    found = import_texts(SAMPLES / "sadf.json")
    assert (found.manifest.source, found.manifest.server.cores, found.manifest.server.name) == ("sar", 2, "vm")
    assert found.io("reads") == pytest.approx([2 * 1452.5, 2 * 400.5, 2 * 629.85, 2 * 294.53])
    assert found.io("read_bytes")[:2] == pytest.approx([30012 * 1024, 6688 * 1024])
    assert found.io("read_stall_ms") == [None] * 4 and "disk counters" in found.manifest.missing
    assert found.server("cpu_s") == pytest.approx([4.0, 4.0, 4.0, 3.99], abs=0.1)


def test_the_share_of_the_cores_that_worked_is_cpu_time(import_texts):
    found = import_texts(reports("2026-03-02", "2026-03-02T10:00:00+0000", "2026-03-02T10:00:20+0000"))
    assert found.server("cpu_s") == pytest.approx([0.15 * 4 * 20])
    assert found.io("write_stall_ms") == pytest.approx([40 * 1.5])


@pytest.mark.parametrize(
    ("stamps", "dates", "ends"),
    [
        (["03/02/2026 10:59:45 AM", "03/02/2026 11:00:00 AM"], None, ["02 11:00:00"]),
        (["03/02/2026 11:59:45 PM", "03/03/2026 12:00:00 AM"], None, ["03 00:00:00"]),
        (["02/03/26 10:59:45", "02/03/26 11:00:00"], "day-first", ["02 11:00:00"]),
        (["03/02/26 10:59:45", "03/02/26 11:00:00"], "month-first", ["02 11:00:00"]),
        (["31.03.2026 10:59:45", "31.03.2026 11:00:00"], None, ["31 11:00:00"]),
        (["12/03/26 23:59:45", "13/03/26 00:00:00"], None, ["13 00:00:00"]),
    ],
)
def test_dates_of_all_locales(import_texts, stamps, dates, ends):
    assert import_texts(reports("03/02/2026", *stamps), zone="UTC", dates=dates).ends() == ends


def test_what_is_known_of_old_columns(import_texts):
    """sysstat 9: sectors, one await for reads and writes, a colon behind Device."""
    text = (
        "Linux 2.6.32 (old) \t03/13/2026 \t_x86_64_\t(4 CPU)\n\n03/13/2026 10:00:00 AM\n"
        "Device:         rrqm/s   wrqm/s     r/s     w/s   rsec/s   wsec/s avgrq-sz avgqu-sz   await  svctm  %util\n"
        "sda               0.00     0.00    9.00    9.00    99.00    99.00     0.00     0.00    0.00   0.00   0.00\n\n"
        "03/13/2026 10:00:10 AM\n"
        "Device:         rrqm/s   wrqm/s     r/s     w/s   rsec/s   wsec/s avgrq-sz avgqu-sz   await  svctm  %util\n"
        "sda               0.00     0.00    4.00    2.00    16.00     8.00     0.00     0.00    3.00   0.00   0.00\n\n"
    )
    found = import_texts(text, zone="UTC")
    assert (found.io("reads"), found.io("read_bytes"), found.io("read_stall_ms")) == ([40], [16 * 512 * 10], [None])


def moments(*reads: tuple[int, int]) -> list[Moment]:
    """Return counters of sda and sdb, 15 s apart."""
    io = lambda count: (float(count), count * 4096.0, float(count), 0.0, 0.0, 0.0)  # noqa: E731
    return [Moment(BEGIN + 15 * place, {"sda": io(a), "sdb": io(b)}) for place, (a, b) in enumerate(reads)]


def test_idle_devices_that_were_left_out_did_nothing(import_texts):
    found = import_texts(iostat_text(moments((0, 5), (30, 20), (60, 20), (90, 35)), zeros=False))
    assert found.io("reads") == pytest.approx([45, 30, 45])
    assert sum("devices without" in note for note in found.manifest.notes) == 1


def test_a_device_that_is_missing_where_idle_ones_are_not_is_not_known(import_texts):
    text = iostat_text(moments((0, 0), (30, 15), (60, 15), (90, 30), (120, 45)))
    reports = text.split("2026-03-02T")
    reports[4] = "\n".join(line for line in reports[4].splitlines() if not line.startswith("sdb")) + "\n"
    found = import_texts("2026-03-02T".join(reports))
    assert found.ends() == ["02 10:00:15", "02 10:00:30", "02 10:01:00"]  # the class is not known from :30 to :45
    assert found.io("reads") == pytest.approx([45, 30, 45])


def test_partitions_mappings_and_loops_are_not_counted_twice(import_texts):
    io = (100.0, 409600.0, 50.0, 0.0, 0.0, 0.0)
    zero = dict.fromkeys(("sda", "sda1", "dm-0", "md127", "loop3", "nvme0n1", "nvme0n1p2"), (0.0,) * 6)
    found = import_texts(iostat_text([Moment(BEGIN, zero), Moment(BEGIN + 10, dict.fromkeys(zero, io))]))
    assert found.io("reads") == [200]
    said = import_texts(
        iostat_text([Moment(BEGIN, zero), Moment(BEGIN + 10, dict.fromkeys(zero, io))]),
        classes={"dm-0": FileClass.DATA, "NVME0N1": FileClass.LOG},
    )
    assert (said.io("reads", "data"), said.io("reads", "log"), said.io("reads")) == ([100], [100], [])
    with pytest.raises(StallmarkError, match="sdz is not a device"):
        import_texts(iostat_text(moments((0, 0), (1, 1))), classes={"sdz": FileClass.DATA})


@pytest.mark.thorough
def test_a_report_that_is_cut_is_left_out(import_texts):
    whole = iostat_text(moments((0, 0), (30, 15), (60, 15), (90, 30)))
    for end in range(whole.rindex("2026-03-02T") + 25, len(whole) - 2, 17):
        found = import_texts(whole[:end])
        assert found.io("reads") == pytest.approx([45, 30]) and any("cut" in note for note in found.manifest.notes)


def test_a_report_that_came_late_covers_all_of_its_time(import_texts):
    stamps = [f"2026-03-02T10:{minute:02d}:00+0000" for minute in (0, 1, 2, 3, 13, 14)]
    found = import_texts(reports("2026-03-02", *stamps))
    assert found.ends() == [f"02 10:{minute:02d}:00" for minute in (1, 2, 3, 13, 14)] and not found.manifest.gaps
    assert found.io("reads") == [1 * 60, 2 * 60, 3 * 60, 4 * 600, 5 * 60]


def test_what_another_file_has_of_a_late_time_counts_in_its_place(import_texts):
    stamps = [f"2026-03-02T10:{minute:02d}:00+0000" for minute in (0, 1, 2, 3, 13, 14)]
    between = [f"2026-03-02T10:{minute:02d}:00+0000" for minute in (5, 6, 7)]
    found = import_texts(reports("2026-03-02", *stamps), reports("2026-03-02", *between))
    assert found.ends() == [f"02 10:{minute:02d}:00" for minute in (1, 2, 3, 6, 7, 14)]
    assert [(gap.started[11:16], gap.ended[11:16]) for gap in found.manifest.gaps] == [
        ("10:03", "10:05"),
        ("10:07", "10:13"),
    ]
    assert any("a time that was there already: 1 sample." in note for note in found.manifest.notes)


def test_a_clock_that_is_set_back_counts_no_time_twice(import_texts):
    stamps = [f"2026-03-02T10:{minute:02d}:00+0000" for minute in (0, 1, 2, 3, 1, 2, 3, 4, 5)]
    found = import_texts(reports("2026-03-02", *stamps))
    assert found.io("reads") == [60, 120, 180, 7 * 60, 8 * 60]
    assert any("go back 1 time," in note for note in found.manifest.notes)


def test_a_time_that_comes_twice_counts_once(import_texts):
    stamps = [f"2026-03-02T10:{minute:02d}:00+0000" for minute in (0, 1, 1, 2)]
    assert import_texts(reports("2026-03-02", *stamps)).io("reads") == [60, 180]


def test_the_hour_that_summer_time_repeats_is_there_twice(import_texts):
    stamps = [f"2026-10-25 {time}:00" for time in ("02:30", "02:45", "02:00", "02:15", "02:30", "02:45", "03:00")]
    found = import_texts(reports("2026-10-25", *stamps), zone="Europe/Berlin")
    assert found.ends() == [f"25 {time}:00" for time in ("00:45", "01:00", "01:15", "01:30", "01:45", "02:00")]
    with pytest.raises(StallmarkError, match="never was"):
        import_texts(reports("2026-03-29", "2026-03-29 02:15:00", "2026-03-29 02:30:00"), zone="Europe/Berlin")


def test_two_files_in_any_order_are_one_profile_and_a_shared_time_counts_once(import_texts):
    whole = moments(*((30 * place, place) for place in range(8)))
    first, second = iostat_text(whole[:5]), iostat_text(whole[2:])
    found = import_texts(second, first)
    assert sum(found.io("reads")) == pytest.approx(7 * 31, abs=0.01 * 105) and not found.manifest.gaps
    with pytest.raises(StallmarkError, match="import each alone"):
        import_texts(first, sadf_json(whole))


def sample(time: str, interval: int = 600, **activities) -> dict:
    return {"timestamp": {"date": "2026-03-02", "time": time, "utc": 1, "interval": interval}, **activities}


def disk(name: str, read_kb: float, written_kb: float = 5.0) -> dict:
    return {"disk-device": name, "tps": 9.0, "rkB": read_kb, "wkB": written_kb, "await": 1.0}


CPU = {"user": 10.0, "nice": 0.0, "system": 10.0, "iowait": 5.0, "steal": 0.0, "idle": 75.0}


def test_activities_of_sar_add_up_over_disks_and_cores(import_texts):
    cpus = [{"cpu": "all", **CPU}, {"cpu": "0", **CPU, "user": 99.0, "idle": 0.0}]
    times = ("23:50:01", "23:55:01")
    found = import_texts(
        sadf([sample(time, 300, disk=[disk("sda", 100), disk("sdb", 10)], **{"cpu-load": cpus}) for time in times], 4)
    )
    assert found.ends() == ["02 23:50:01", "02 23:55:01"]
    assert found.io("read_bytes") == [110 * 300 * 1024] * 2 and found.io("reads") == [None, None]
    assert found.server("cpu_s") == pytest.approx([0.2 * 4 * 300] * 2)


def test_two_recordings_of_sar_of_one_time_complete_each_other(import_texts):
    times = ("10:00:01", "10:10:01")
    cpu = [sample(time, **{"cpu-load": [{"cpu": "all", **CPU}]}) for time in times]
    found = import_texts(sadf(cpu), sadf([sample(time, disk=[disk("sda", 100)]) for time in times]))
    assert [table.num_rows for table in found.intervals.tables().values()] == [2, 2]


def test_a_restart_is_a_gap_and_samples_say_how_long_they_are(import_texts):
    samples = [
        sample(time, seconds, disk=[disk("sda", kib)])
        for time, seconds, kib in (("10:10:01", 600, 10), ("10:20:01", 599, 20), ("10:30:01", 300, 30))
    ]
    text = sadf(samples).removesuffix("]}]}}")
    found = import_texts(text + '], "restarts": [{"boot": {"date": "2026-03-02", "time": "10:25:00", "utc": 1}}]}]}}')
    assert found.io("read_bytes") == [10 * 600 * 1024, 20 * 600 * 1024, 30 * 300 * 1024]
    assert [gap.reason for gap in found.manifest.gaps] == ["the machine was restarted"]


@pytest.mark.parametrize("device", ["vda", "VDA", "/dev/vda"])
def test_a_machine_of_one_disk_keeps_its_ios_where_it_is_said_what_that_holds(import_texts, device):
    """By device sar does not tell reads from writes; of all disks together (-b) it does."""
    without = import_texts(SAMPLES / "sadf.json")
    found = import_texts(SAMPLES / "sadf.json", classes={device: FileClass.DATA})
    for column in ("reads", "writes", "read_bytes", "write_bytes"):
        assert found.io(column, "data") == pytest.approx(without.io(column)) and found.io(column) == []
    assert "left out" not in "".join(found.manifest.notes)


OF_ALL = {"tps": 42.0, "io-reads": {"rtps": 20.0, "bread": 40.0}, "io-writes": {"wtps": 22.0, "bwrtn": 20.0}}


def two_disks(*devices: str) -> str:
    """Return a file with the sums of all disks: 20 kB read and 10 kB written per second."""
    count = sum(name != "loop0" for name in devices)
    rows = [disk(name, 20 / count, 10 / count) if name != "loop0" else disk(name, 0, 0) for name in devices]
    return sadf([sample("10:10:00", disk=rows, io=OF_ALL)])


@pytest.mark.parametrize(
    ("devices", "classes", "reads"),
    [
        (("sda", "sdb"), {"sda": "data", "sdb": "data"}, {"data": [12_000], "log": []}),
        (("sda", "sdb"), {"sda": "data", "sdb": "log"}, {"data": [None], "log": [None]}),
        (("sda", "sdb"), {"sda": "data"}, {"data": [None], "log": []}),
        (("sda", "dm-0"), {"dm-0": "data"}, {"data": [None], "log": []}),
        (("sda", "dm-0"), {"sda": "data", "dm-0": "data"}, {"data": [None], "log": []}),
        (("sda", "loop0"), {"sda": "data"}, {"data": [12_000], "log": []}),
        (("dev8-0", "dev8-16"), {"dev8-0": "log", "DEV8-16": "log"}, {"data": [], "log": [12_000]}),
    ],
)
def test_ios_of_all_disks_belong_to_a_class_only_if_all_disks_do(import_texts, devices, classes, reads):
    found = import_texts(two_disks(*devices), classes={name: FileClass(held) for name, held in classes.items()})
    assert {held: found.io("reads", held) for held in reads} == reads and found.io("reads") == []
    left_out = any("left out: not all" in note for note in found.manifest.notes)
    assert left_out == all(counts in ([None], []) for counts in reads.values())


def test_the_activities_of_sar_may_be_in_files_of_their_own(import_texts):
    texts = (sadf([sample("10:10:00", disk=[disk("sda", 10), disk("sdb", 10)])]), sadf([sample("10:10:00", io=OF_ALL)]))
    classes = {"sda": FileClass.DATA, "sdb": FileClass.DATA}
    for files in (texts, texts[::-1]):
        found = import_texts(*files, classes=classes)
        assert (found.io("reads", "data"), found.io("read_bytes", "data")) == ([12_000], [20 * 1024 * 600])


def test_a_device_that_is_not_there_is_refused_with_those_that_are(import_texts):
    with pytest.raises(StallmarkError, match="vdb is not a device: the files have vda"):
        import_texts(SAMPLES / "sadf.json", classes={"vda": FileClass.DATA, "vdb": FileClass.LOG})
    text = two_disks("dev253-0", "dev253-16")
    with pytest.raises(
        StallmarkError, match="the files have dev253-0, dev253-16: name it by its numbers, or record with -p"
    ):
        import_texts(text, classes={"vda": FileClass.DATA})
