"""Perfmon: its header, its blanks, its instances, its languages, and what other programs make of its files."""

import json
from importlib import resources

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.support.recorders import Moment, perfmon_csv

from stallmark.errors import StallmarkError
from stallmark.record import formats
from stallmark.record.formats.perfmon import english_name
from stallmark.record.profile import FileClass

pytestmark = pytest.mark.thorough

BEGIN = 1772445600.0  # 2026-03-02 10:00 UTC


def pdh(paths: list[str], *rows: tuple, zone: str = "(UTC)(0)", delimiter: str = ",") -> str:
    """Return a file of the paths' counters on \\\\SQL01, a row each 15 s."""
    lines = [[f"(PDH-CSV 4.0) {zone}", *(rf"\\SQL01\{path}" for path in paths)]]
    for place, row in enumerate(rows):
        lines.append([f"03/02/2026 10:{place // 4:02d}:{15 * (place % 4):02d}.123", *map(str, row)])
    return "\r\n".join(delimiter.join(f'"{cell}"' for cell in line) for line in lines) + "\r\n"


def moments() -> list[Moment]:
    return [
        Moment(BEGIN + 15 * n, {"C:": (n * 30.0,) * 6, "D:": (n * 60.0,) * 6, "L:": (n * 90.0,) * 6}, n, n * 10)
        for n in range(4)
    ]


def test_blanks_are_not_known_and_never_0(import_texts):
    paths = [r"PhysicalDisk(0 C:)\Disk Reads/sec", r"SQLServer:Buffer Manager\Page life expectancy"]
    found = import_texts(pdh(paths, (" ", 100), (10, 200), (" ", 300), ("", 400), (20, " ")))
    assert found.io("reads") == [150, 300] and found.ends() == ["02 10:00:15", "02 10:01:00"]
    assert found.server("page_life_expectancy_s") == [200, 300, 400]
    assert found.io("writes") == [None, None] and "waits" in found.manifest.missing


def test_the_bias_of_the_header_is_minutes_west_of_utc(import_texts):
    text = pdh([r"PhysicalDisk(0 C:)\Disk Reads/sec"], (1,), (2,), zone="(W. Europe Standard Time)(-60)")
    assert import_texts(text).ends() == ["02 09:00:15"]
    assert import_texts(text, zone="Asia/Tokyo").ends() == ["02 01:00:15"]
    with pytest.raises(StallmarkError, match="--timezone"):
        import_texts(pdh([r"PhysicalDisk(0 C:)\Disk Reads/sec"], (1,), (2,), zone=""))


def test_a_later_header_is_of_the_same_machine(import_texts):
    text = pdh([r"LogicalDisk(D:)\Disk Reads/sec"], (1,), (2,))
    assert import_texts(text + text.replace("10:00", "11:00")).io("reads") == [30, 30]
    with pytest.raises(StallmarkError, match="2 machines"):
        import_texts(text + text.replace("10:00", "11:00").replace("SQL01", "SQL02"))


def test_files_of_different_disks_at_the_same_times_are_noted(import_texts):
    files = [
        pdh([rf"LogicalDisk({name})\Disk Reads/sec"], (1,), (rate,), (3,)) for name, rate in (("C:", 2), ("D:", 9))
    ]
    found = import_texts(*files)
    assert found.io("reads") == [30, 45] and any("for 1 time that both" in note for note in found.manifest.notes)
    assert not any("both" in note for note in import_texts(files[0], files[0]).manifest.notes)


def test_a_class_of_a_disk_that_is_not_there_names_those_that_are(import_texts):
    with pytest.raises(StallmarkError, match=r"E: is not a device: the files have D:"):
        import_texts(pdh([r"LogicalDisk(D:)\Disk Reads/sec"], (1,), (2,)), classes={"E:": FileClass.DATA})


@pytest.mark.parametrize("encoding", ["utf-8-sig", "utf-16", "cp1252"])
def test_encodings_that_windows_writes(import_texts, encoding):
    found = import_texts(perfmon_csv(moments()).encode(encoding))
    assert sum(found.io("reads")) == pytest.approx(3 * 180)


def test_typeperf_talks_before_and_behind(import_texts):
    text = "\r\n" + pdh([r"LogicalDisk(D:)\Disk Reads/sec"], (1,), (2,)) + "\r\nThe command completed successfully.\r\n"
    assert import_texts(text).io("reads") == [30]


def test_decimal_commas_are_read_and_said_and_other_numbers_refused(import_texts):
    found = import_texts(pdh([r"LogicalDisk(D:)\Disk Reads/sec"], ("1,5",), ("2,5",), delimiter=";"))
    assert found.io("reads") == [37.5] and any("comma" in note for note in found.manifest.notes)
    with pytest.raises(StallmarkError, match="not a number"):
        import_texts(pdh([r"LogicalDisk(D:)\Disk Reads/sec"], ("1",), ("1,234.5",)))


def test_what_disks_hold_is_as_it_was_said(import_texts):
    classes = {"d:": FileClass.DATA, "L:": FileClass.LOG}
    found = import_texts(perfmon_csv(moments()), classes=classes)
    assert found.io("reads", "data") == pytest.approx([60] * 3) and found.io("writes", "log") == pytest.approx([90] * 3)
    assert found.io("reads") == []
    plain = import_texts(perfmon_csv(moments()))
    assert plain.io("reads") == pytest.approx([180] * 3) and plain.io("reads", "data") == []
    with pytest.raises(StallmarkError, match="Q: is not a device"):
        import_texts(perfmon_csv(moments()), classes={"Q:": FileClass.DATA})


def test_a_physical_disk_is_found_by_its_letter_and_holds_one_class(import_texts):
    text = pdh([r"PhysicalDisk(1 D: L:)\Disk Reads/sec", r"PhysicalDisk(_Total)\Disk Reads/sec"], (1, 5), (2, 5))
    assert import_texts(text, classes={"D:": FileClass.DATA}).io("reads", "data") == [30]
    assert import_texts(text).io("reads") == [30]  # the total is no disk
    with pytest.raises(StallmarkError, match="one class"):
        import_texts(text, classes={"D:": FileClass.DATA, "L:": FileClass.LOG})


def test_databases_of_users_are_added_up_and_two_writers_of_checkpoints(import_texts):
    paths = [rf"MSSQL$A:Databases({name})\Log Flushes/sec" for name in ("_Total", "tempdb", "orders", "stock")]
    paths += [rf"MSSQL$A:Buffer Manager\{name} pages/sec" for name in ("Checkpoint", "Background writer")]
    found = import_texts(pdh(paths, (9,) * 6, (100, 40, 3, 4, 5, 6)))
    assert found.server("log_flushes") == [7 * 15] and found.server("checkpoint_pages") == [11 * 15]
    assert found.manifest.server.engine == "mssql" and "disk counters" in found.manifest.missing
    total = import_texts(pdh(paths[:1], (9,), (100,)))
    assert total.server("log_flushes") == [1500] and total.manifest.notes


def test_memory_is_in_bytes_and_its_target_is_the_pool(import_texts):
    paths = [
        r"SQLServer:Memory Manager\Target Server Memory (KB)", r"SQLServer:Memory Manager\Stolen Server Memory (KB)",
        r"SQLServer:Buffer Manager\Database pages", r"SQLServer:Buffer Manager\Target pages",
    ]  # fmt: skip
    found = import_texts(pdh(paths, (1, 1, 1, 1), (1024, 100, 10, 7)))
    assert found.server("memory_target_bytes") == [1024 * 1024] and found.server("stolen_bytes") == [102400]
    assert found.server("database_pages_bytes") == [81920] and found.manifest.server.pool_bytes == 1024 * 1024


def test_cpu_time_is_of_the_process_where_it_was_recorded(import_texts):
    machine = [
        r"Processor(0)\% Processor Time",
        r"Processor(1)\% Processor Time",
        r"Processor(_Total)\% Processor Time",
    ]
    process = [*machine, r"Process(sqlservr)\% Processor Time"]
    assert import_texts(pdh(machine, (1, 1, 1), (40, 60, 50))).server("cpu_s") == pytest.approx([0.5 * 2 * 15])
    assert import_texts(pdh(process, (1,) * 4, (40, 60, 50, 90))).server("cpu_s") == pytest.approx([0.9 * 15])
    newer = [*machine, r"Process V2(sqlservr:4711)\% Processor Time"]
    assert import_texts(pdh(newer, (1,) * 4, (40, 60, 50, 90))).server("cpu_s") == pytest.approx([0.9 * 15])
    assert import_texts(pdh(machine[:2], (1, 1), (40, 60))).server("cpu_s") == pytest.approx([0.5 * 2 * 15])
    others = [rf"Processor({core})\% Idle Time" for core in range(4)]
    found = import_texts(pdh([machine[2], *others], *[(50, 1, 1, 1, 1)] * 2))
    assert found.server("cpu_s") == pytest.approx([0.5 * 4 * 15]) and found.manifest.server.cores == 4
    small = import_texts(pdh([machine[2], *others], *[(50, 1, 1, 1, 1)] * 2).lower().replace("(pdh-csv", "(PDH-CSV"))
    assert small.server("cpu_s") == found.server("cpu_s")  # as Get-Counter writes names
    paths = [machine[2], r"SQLServer:SQL Statistics\Batch Requests/sec"]
    with pytest.raises(StallmarkError, match=r"no interval.*not how many there are; record Processor\(\*\)"):
        import_texts(pdh(machine[2:], (1,), (50,)))
    alone = import_texts(pdh(paths, (1, 1), (50, 3)))
    assert alone.server("cpu_s") == [None] and "server.cpu_s" in alone.manifest.missing


def test_two_instances_or_machines_are_refused(import_texts):
    paths = [r"MSSQL$A:SQL Statistics\Batch Requests/sec", r"SQLServer:SQL Statistics\Batch Requests/sec"]
    with pytest.raises(StallmarkError, match=r"MSSQL\$A and SQLServer"):
        import_texts(pdh(paths, (1, 1), (1, 1)))
    both = pdh([r"LogicalDisk(D:)\Disk Reads/sec"] * 2, (1, 1), (1, 1)).replace(r"\\SQL01", r"\\SQL02", 1)
    with pytest.raises(StallmarkError, match="2 machines"):
        import_texts(both)


def test_a_log_that_was_begun_anew_and_a_row_that_is_cut(import_texts):
    path = [r"LogicalDisk(D:)\Disk Reads/sec", r"LogicalDisk(D:)\Disk Writes/sec"]
    first = pdh(path, (1, 1), (2, 2), (3, 3))
    later = pdh(path, (9, 9), (4, 4)).replace("03/02/2026", "03/03/2026")
    found = import_texts(first + later + '"03/03/2026 10:00:30.123","5')
    assert found.io("reads") == [30, 45, 60] and len(found.manifest.gaps) == 1
    assert any("too few" in note for note in found.manifest.notes)


def test_a_row_that_is_cut_within_its_time_is_no_row(import_texts):
    text = pdh([r"LogicalDisk(D:)\Disk Reads/sec"], (1,), (2,))
    assert import_texts(text + ',"5\r\n').io("reads") == [30]


def test_an_anonymous_profile_names_no_host_and_no_file(import_texts):
    text = pdh([r"LogicalDisk(D:)\Disk Reads/sec"], (1,), (2,), (3,)) + '"03/02/2026 10:00:45.123"\r\n'
    found = import_texts(text, anonymous=True, name="sql01-payroll-{}.csv")
    said = found.manifest.model_dump_json()
    assert "SQL01" not in said and "payroll" not in said and found.manifest.files == ("file 1",)


# Files as people have them.

ROW = (100, 50, 819200, 409600, 0.002, 0.003)
COUNTERS = {
    "Disk Reads/sec": "reads", "Disk Writes/sec": "writes", "Disk Read Bytes/sec": "read_bytes",
    "Disk Write Bytes/sec": "write_bytes", "Avg. Disk sec/Read": "read_stall_ms",
    "Avg. Disk sec/Write": "write_stall_ms",
}  # fmt: skip


def disk(name: str, *counters: str) -> list[str]:
    return [rf"{name}\{counter}" for counter in counters or COUNTERS]


def whole(intervals: int, disks: int = 1) -> dict[str, list[float]]:
    """Return what so many disks do that all do ROW."""
    each = (1500, 750, 819200 * 15, 409600 * 15, 3000, 2250)
    return {column: [value * disks] * intervals for column, value in zip(COUNTERS.values(), each, strict=True)}


def test_an_instance_that_is_there_now_and_then_erases_no_other(import_texts):
    paths = disk("LogicalDisk(D:)") + disk("LogicalDisk(HarddiskVolumeShadowCopy7)")
    there, away = (*ROW, 1, 0, 4096, 0, 0.001, 0), (*ROW, *[" "] * 6)
    found = import_texts(pdh(paths, away, away, there, away, away))
    assert found.io("reads") == [1500, 1515, 1500, 1500] and found.io("read_stall_ms") == [3000, 3015, 3000, 3000]
    assert any("HarddiskVolumeShadowCopy7" in note for note in found.manifest.notes)
    never = import_texts(pdh(paths, *[away] * 5))
    assert {column: never.io(column) for column in COUNTERS.values()} == whole(4)
    assert any("without a value in any row: HarddiskVolumeShadowCopy7." in note for note in never.manifest.notes)
    latency = [r"PhysicalDisk(0 D:)\Avg. Disk sec/Read"]
    assert not import_texts(pdh(latency + paths[:6], *[(0.002, *ROW)] * 3)).manifest.notes


def test_a_database_that_is_there_now_and_then_erases_no_other(import_texts):
    paths = [
        rf"SQLServer:Databases({name})\{counter}/sec"
        for name in ("shop", "old")
        for counter in ("Transactions", "Log Flushes")
    ]
    found = import_texts(pdh(paths, (1, 1, 1, 1), (4, 2, " ", " "), (4, 2, 10, 20), (4, 2, 10, " "), (" ",) * 4))
    assert found.server("transactions") == [60, 210, 210] and found.server("log_flushes") == [30, 330, None]
    assert any(note.endswith("old.") for note in found.manifest.notes)


def test_each_column_is_of_physical_disks_if_these_have_it_and_never_of_both(import_texts):
    latency = disk("PhysicalDisk(1 D:)", "Avg. Disk sec/Read", "Avg. Disk sec/Write")
    found = import_texts(pdh(disk("LogicalDisk(D:)") + latency, *[(*ROW, 0.002, 0.003)] * 3))
    assert {column: found.io(column) for column in COUNTERS.values()} == whole(2)
    both = import_texts(pdh(disk("LogicalDisk(D:)") + disk("PhysicalDisk(1 D:)"), *[(*ROW, *ROW)] * 3))
    assert {column: both.io(column) for column in COUNTERS.values()} == whole(2)
    blank = import_texts(pdh(disk("LogicalDisk(D:)") + disk("PhysicalDisk(1 D:)"), *[(*ROW, *[" "] * 6)] * 3))
    assert {column: blank.io(column) for column in COUNTERS.values()} == whole(2)
    given_ = import_texts(
        pdh(disk("LogicalDisk(D:)", "Disk Reads/sec") + disk("PhysicalDisk(1 D:)"), *[(7, *ROW)] * 3),
        classes={"D:": FileClass.DATA},
    )
    assert {column: given_.io(column, "data") for column in COUNTERS.values()} == whole(2)


@pytest.mark.parametrize("host", [r"\\SQL01", "\\\\SQL01\\"])
def test_a_host_that_was_taken_out_is_no_part_of_a_name(import_texts, host):
    found = import_texts(pdh(disk("PhysicalDisk(0 C:)"), *[ROW] * 3).replace(host, ""))
    assert {column: found.io(column) for column in COUNTERS.values()} == whole(2) and found.manifest.server.name is None


def test_a_total_counts_in_the_columns_that_no_disk_has(import_texts):
    paths = disk("LogicalDisk(_Total)") + disk("LogicalDisk(D:)", "Disk Reads/sec", "Avg. Disk sec/Read")
    found = import_texts(pdh(paths, *[(*ROW, 60, 0.001)] * 3))
    assert found.io("reads") == [900] * 2 and found.io("read_stall_ms") == [900] * 2
    assert found.io("writes") == [750] * 2 and found.io("write_stall_ms") == [2250] * 2
    latency = disk("LogicalDisk(_Total)") + disk("LogicalDisk(D:)", "Avg. Disk sec/Read")
    assert whole(2) == {
        column: import_texts(pdh(latency, *[(*ROW, 0.001)] * 3)).io(column) for column in COUNTERS.values()
    }


def test_a_volume_whose_letter_no_disk_has_is_named(import_texts):
    text = pdh(disk("PhysicalDisk(0 C:)") + disk("LogicalDisk(C:)") + disk("LogicalDisk(D:)"), *[(*ROW,) * 3] * 3)
    found = import_texts(text)
    assert found.io("reads") == [1500] * 2 and any(" of D:: " in note for note in found.manifest.notes)
    both = {"C:": FileClass.OTHER, "D:": FileClass.OTHER}
    assert import_texts(text, classes=both).io("reads", "other") == [3000] * 2
    alone = import_texts(text.replace("0 C:", "0 C: D:"))
    assert not any("letter" in note for note in alone.manifest.notes)


def test_a_disk_that_lacks_counters_of_others_is_named(import_texts):
    paths = disk("PhysicalDisk(0 C:)") + disk("PhysicalDisk(1 D:)", "Disk Reads/sec")
    found = import_texts(pdh(paths, *[(*ROW, 60)] * 3))
    assert found.io("reads") == [2400] * 2 and found.io("writes") == [750] * 2
    assert [note for note in found.manifest.notes if "1 D: lack counters" in note]


@pytest.mark.parametrize("other", ["sql01", "SQL01", ""])
def test_a_counter_that_was_asked_for_twice_counts_once(import_texts, other):
    first, rest = pdh(disk("LogicalDisk(D:)") * 2, *[(*ROW, *ROW)] * 3).split("sec/Write", 1)
    second = rest.replace(r"\\SQL01", rf"\\{other}" if other else "")
    found = import_texts(f"{first}sec/Write{second}")
    assert {column: found.io(column) for column in COUNTERS.values()} == whole(2)


def test_a_mount_point_is_a_volume_of_its_own(import_texts):
    text = pdh(disk("LogicalDisk(C:)") + disk(r"LogicalDisk(C:\mnt\data)"), *[(*ROW, *ROW)] * 3)
    assert import_texts(text).io("reads") == [3000] * 2
    found = import_texts(text, classes={"C:\\mnt\\data\\": FileClass.DATA})
    assert {column: found.io(column, "data") for column in COUNTERS.values()} == whole(2)


@pytest.mark.parametrize(("zone", "end"), [("(Nepal Standard Time)(-345)", "04:15"), ("(X)(210)", "13:30")])
def test_a_bias_may_be_a_part_of_an_hour(import_texts, zone, end):
    text = pdh(disk("PhysicalDisk(0 C:)"), ROW, ROW, zone=zone)
    assert import_texts(text).ends() == [f"02 {end}:15"]


def test_processor_information_has_those_of_all_groups(import_texts):
    one = [rf"Processor({core})\% Processor Time" for core in ("0", "1", "_Total")]
    all_ = ("0,0", "0,1", "0,_Total", "1,0", "1,1", "1,_Total", "_Total")
    paths = one + [rf"Processor Information({core})\% Processor Time" for core in all_]
    found = import_texts(pdh(paths + disk("PhysicalDisk(0 C:)"), *[(20,) * 3 + (20, 20, 20, 80, 80, 80, 50, *ROW)] * 3))
    assert found.manifest.server.cores == 4 and found.server("cpu_s") == [0.5 * 4 * 15] * 2


def test_more_values_than_names_are_refused_with_the_command(import_texts):
    text = pdh(
        [r"HTTP Service Request Queues(???1)\MaxQueueItemAge", *disk("PhysicalDisk(0 C:)")], *[(-1, -1, 0, *ROW)] * 3
    )
    with pytest.raises(StallmarkError, match=r"10 values at .* and 8 names.*`relog .* -c .* -f CSV -o new.csv`"):
        import_texts(text)


@pytest.mark.parametrize(
    ("stamp", "delimiter"),
    [
        ("00:{:02d}.2", ","),
        ("00:{:02d},2", ";"),
        ("3/2/2026 10:{:02d}", ","),
        ("02.03.2026 10:{:02d}", ";"),
        ("02.03.2026 10:00:{:02d}", ";"),
        ("2026-03-02 10:00:{:02d}", ","),
        ("46083.41{:02d}", ","),
    ],
)
def test_times_that_a_spreadsheet_spoiled_are_refused_with_the_command(import_texts, stamp, delimiter):
    rows = [f"{stamp.format(15 * place)}{delimiter}100" for place in range(3)]
    text = "\n".join([rf"(PDH-CSV 4.0) (UTC)(0){delimiter}\\DB01\LogicalDisk(D:)\Disk Reads/sec", *rows])
    with pytest.raises(
        StallmarkError, match=r"A spreadsheet spoiled the times .* `relog sales.blg -f CSV -o sales.csv`"
    ):
        import_texts(text)


def test_a_file_without_counters_of_ours_is_refused_with_the_command(import_texts):
    paths = [r"LogicalDisk(C:)\Current Disk Queue Length", r"Memory\Available MBytes"]
    with pytest.raises(StallmarkError, match=r"no counter .*`typeperf .*LogicalDisk.*`\.$") as refused:
        import_texts(pdh(paths, (0, 7638), (0, 7638)))
    assert "English" not in str(refused.value)
    with pytest.raises(StallmarkError, match="English names into the first line"):
        import_texts(pdh([r"物理ディスク(0 C:)\ディスク読み取り/秒"], (1,), (2,)))


def test_disks_of_a_language_that_is_not_known_are_named_beside_sql_server(import_texts):
    paths = [r"SQLServer:SQL Statistics\Batch Requests/sec", r"物理ディスク(0 C:)\ディスク読み取り/秒"]
    found = import_texts(pdh(paths, (1, 1), (2, 2)))
    assert found.server("batches") == [30] and any("物理ディスク" in note for note in found.manifest.notes)


NAMES: dict[str, dict[str, list[str]]] = json.loads(
    (resources.files(formats) / "perfmon_names.json").read_text("utf-8")
)


def in_language(path: str, language: str) -> str:
    """Return a path as a Windows of that language writes it."""
    object, _, counter = path.partition("\\")
    name, bracket, instance = object.partition("(")
    translated = [NAMES.get(one, {}).get(language, [one])[0] for one in (name, counter)]
    return rf"{translated[0]}{bracket}{instance}\{translated[1]}"


@pytest.mark.parametrize("language", sorted(NAMES["LogicalDisk"]))
@pytest.mark.parametrize("encoding", ["cp1252", "utf-16", "question marks"])
def test_names_of_other_languages_are_read_beside_those_of_sql_server(import_texts, language, encoding):
    paths = [r"SQLServer:SQL Statistics\Batch Requests/sec", *disk("PhysicalDisk(0 C:)"), *disk("LogicalDisk(C:)")]
    paths += [rf"{name}\% Processor Time" for name in ("Processor(0)", "Processor(_Total)", "Process(sqlservr)")]
    text = pdh([in_language(path, language) for path in paths], *[(500, *ROW, *ROW, 25, 25, 20)] * 3)
    if encoding == "question marks":
        content = text.encode("ascii", errors="replace")
    else:
        content = text.encode(encoding, errors="replace")
    found = import_texts(content)
    assert {column: found.io(column) for column in COUNTERS.values()} == whole(2)
    assert found.server("batches") == [7500] * 2 and found.server("cpu_s") == pytest.approx([3] * 2)


def test_accents_that_are_read_in_another_code_page_are_no_obstacle():
    for name in ("Średni czas dysku w s/Odczyt", "Čtení z disku/s", "Olvasás gyakorisága (művelet/s)"):
        for page in ("cp1250", "cp1252", "cp852", "utf-8"):
            read = name.encode(page, errors="replace").decode("cp1252" if page != "utf-8" else page, errors="replace")
            assert english_name(read) in ("Avg. Disk sec/Read", "Disk Reads/sec"), (name, page)


def test_no_name_has_two_meanings():
    meanings: dict[str, set[str]] = {}
    for english, languages in NAMES.items():
        for name in (name for names in languages.values() for name in names):
            meanings.setdefault(name.lower(), set()).add(english)
            assert english_name(name) == english
    assert all(len(one) == 1 for one in meanings.values())
    assert english_name("物理ディスク") == "物理ディスク" and english_name("Memory") == "Memory"


OBJECTS = {"PhysicalDisk": ("0 C:", "1 D:", "2 E:"), "LogicalDisk": ("C:", "D:", "E:")}


@given(data=st.data())
def test_sums_are_of_the_disks_that_are_there(import_many, data):
    """Any mix of disks that come and go, of counters that were recorded, and of languages."""
    recorded = {
        object: data.draw(st.lists(st.sampled_from(list(COUNTERS)), unique=True), label=object) for object in OBJECTS
    }
    paths = [
        (object, number, counter)
        for object, names in OBJECTS.items()
        for number in range(len(names))
        for counter in recorded[object]
    ]
    rows = data.draw(st.lists(st.lists(st.integers(0, 1000), min_size=3, max_size=3), min_size=2, max_size=5))
    language = data.draw(st.sampled_from(["en", *NAMES["Process"]]))
    # Disk n does so many of each I/O as its row says; 0 is: not there. Reads are of 8 KiB and 2 ms, writes of 4 and 3.
    each = dict(zip(COUNTERS, (1, 2, 8192, 2 * 4096, None, None), strict=True))
    latency = {"Avg. Disk sec/Read": 0.002, "Avg. Disk sec/Write": 0.003}
    cells = [
        [
            " " if not row[number] else latency.get(counter) or row[number] * each[counter]
            for _, number, counter in paths
        ]
        for row in rows
    ]
    header = [
        in_language(rf"{object}({OBJECTS[object][number]})\{counter}", language) for object, number, counter in paths
    ]
    text = pdh([*header, r"SQLServer:SQL Statistics\Batch Requests/sec"], *[(*row, 1) for row in cells])
    found = import_many(text)
    factors = {
        "reads": 1,
        "writes": 2,
        "read_bytes": 8192,
        "write_bytes": 2 * 4096,
        "read_stall_ms": 2,
        "write_stall_ms": 6,
    }
    seen = {f"{end:%M:%S}": row for end, row in found.rows()}
    for place, row in enumerate(rows[1:], 1):
        got = seen.get(f"{place // 4:02d}:{15 * (place % 4):02d}", {})
        for counter, column in COUNTERS.items():
            # What I/Os took is known from an object that has their number and their mean.
            needed = {counter, f"Disk {counter.rpartition('/')[2]}s/sec"} if "Avg" in counter else {counter}
            if any(row) and any(needed <= set(names) for names in recorded.values()):
                assert got[column] == pytest.approx(sum(row) * factors[column] * 15), column
            else:
                assert got.get(column) is None, column
