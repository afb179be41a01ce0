"""Files as people have them: what was misread once is read right, or refused with what to do."""

import json

import pytest

from stallmark.errors import StallmarkError


def pdh(names: list[str], *rows: tuple) -> str:
    lines = [["(PDH-CSV 4.0) (UTC)(0)", *names]]
    lines += [[f"03/02/2026 10:00:{15 * place:02d}.100", *map(str, row)] for place, row in enumerate(rows)]
    return "\n".join(",".join(f'"{cell}"' for cell in line) for line in lines) + "\n"


def disk(path: str) -> list[str]:
    return [rf"{path}\Disk Reads/sec", rf"{path}\Disk Read Bytes/sec", rf"{path}\Avg. Disk sec/Read"]


D, C7 = (rf"\\DB01\LogicalDisk({name})" for name in ("D:", "HarddiskVolumeShadowCopy7"))
IO = (100, 819200, 0.002)


@pytest.mark.parametrize(
    ("names", "rows"),
    [
        (disk(D), [IO] * 3),
        (disk(r"\PhysicalDisk(0 C:)"), [IO] * 3),
        (disk(D) + disk(C7), [(*IO, " ", " ", " ")] * 3),
        ([*disk(D), r"\\DB01\PhysicalDisk(1 D:)\Avg. Disk sec/Read"], [(*IO, 0.002)] * 3),
    ],
    ids=["plain", "host taken out", "instance that is not there", "physical latency alone"],
)
def test_disks_of_perfmon_count_once(import_texts, names, rows):
    found = import_texts(pdh(names, *rows))
    assert found.io("reads") == pytest.approx([1500] * 2, rel=1e-3)
    assert found.io("read_stall_ms") == pytest.approx([3000] * 2, rel=1e-3)


def test_processors_of_all_groups_count(import_texts):
    cores = [rf"\\DB01\Processor Information({group},{core})\% Processor Time" for group in (0, 1) for core in (0, 1)]
    one_group = [rf"\\DB01\Processor({core})\% Processor Time" for core in ("0", "1", "_Total")]
    total = r"\\DB01\Processor Information(_Total)\% Processor Time"
    found = import_texts(pdh([*one_group, *cores, total, *disk(D)], *[(20, 20, 20, 20, 20, 80, 80, 50, *IO)] * 3))
    assert found.manifest.server.cores == 4 and found.server("cpu_s") == pytest.approx([0.5 * 4 * 15] * 2, rel=1e-3)


@pytest.mark.parametrize(
    ("text", "words"),
    [
        (pdh([r"\\DB01\HTTP(???1)\Age", *disk(D)], *[(-1, -1, 0, *IO)] * 3), "7 values at .* and 5 names.*`relog -c`"),
        (pdh(disk(D), *[IO] * 3).replace("03/02/2026 10:", ""), "'00:00.100' in .* is not a time of Perfmon"),
    ],
    ids=["commas in an instance", "saved by a program for tables"],
)
def test_perfmon_that_is_not_as_it_was_written_is_refused(import_texts, text, words):
    with pytest.raises(StallmarkError, match=words):
        import_texts(text)


def query(*series: tuple[dict, list[tuple[int, int]]]) -> str:
    result = [
        {
            "metric": {"__name__": "node_disk_reads_completed_total", "instance": "db01:9100", **labels},
            "values": [[1772445600 + at, str(value)] for at, value in points],
        }
        for labels, points in series
    ]
    return json.dumps({"status": "success", "data": {"resultType": "matrix", "result": result}})


def test_a_point_that_one_series_lacks_leaves_its_sum_unknown(import_texts):
    whole = [(15 * place, 1500 * place) for place in range(6)]
    lacking = [point for point in whole if point[0] != 30]
    found = import_texts(query(({"device": "sda"}, whole), ({"device": "sdb"}, lacking)))
    assert found.io("reads") == [3000, 3000, 3000] and found.ends() == ["02 10:00:15", "02 10:01:00", "02 10:01:15"]
    both = import_texts(query(({"device": "sda"}, lacking), ({"device": "sdb"}, lacking)))
    assert both.io("reads") == [3000, 6000, 3000, 3000]


def test_one_disk_of_two_jobs_is_refused(import_texts):
    points = [(0, 0), (15, 1500)]
    text = query(*(({"device": "sda", "job": job}, points) for job in ("node", "infra")))
    with pytest.raises(StallmarkError, match=r"of the jobs node and infra: ask for one, as in \{job="):
        import_texts(text)
