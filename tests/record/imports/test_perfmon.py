"""Perfmon: its header, its blanks, its instances, and what other programs make of its files."""

import pytest
from tests.support.recorders import Moment, perfmon_csv

from stallmark.errors import StallmarkError
from stallmark.record.profile.intervals import FileClass

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
    with pytest.raises(StallmarkError, match="no device Q:"):
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
    paths = [machine[2], r"SQLServer:SQL Statistics\Batch Requests/sec"]
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


def test_an_anonymous_profile_names_no_host_and_no_file(import_texts):
    text = pdh([r"LogicalDisk(D:)\Disk Reads/sec"], (1,), (2,), (3,)) + '"03/02/2026 10:00:45.123"\r\n'
    found = import_texts(text, anonymous=True, name="sql01-payroll-{}.csv")
    said = found.manifest.model_dump_json()
    assert "SQL01" not in said and "payroll" not in said and found.manifest.files == ("file 1",)
