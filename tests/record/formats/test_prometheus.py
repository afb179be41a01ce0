"""Prometheus: what a range query gives, and what it does not."""

import json
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from stallmark.errors import StallmarkError
from stallmark.record.profile import FileClass

BEGIN = 1772445600.0  # 2026-03-02 10:00 UTC


def answer(*series: tuple[dict, list]) -> str:
    """Return the answer of a range query: labels, and a value each 15 s; None is no point."""
    result = [
        {
            "metric": labels,
            "values": [[BEGIN + 15 * n, str(value)] for n, value in enumerate(values) if value is not None],
        }
        for labels, values in series
    ]
    return json.dumps({"status": "success", "data": {"resultType": "matrix", "result": result}})


def disk(metric: str, device: str = "sda", **labels: str) -> dict:
    return {"__name__": f"node_disk_{metric}_total", "device": device, "instance": "db1:9100"} | labels


def test_a_time_without_scrapes_is_a_gap_and_its_increase_belongs_to_no_interval(import_texts):
    found = import_texts(answer((disk("reads_completed"), [0, 15, 30, None, None, None, 900, 915])))
    assert found.io("reads") == [15, 15, 15] and len(found.manifest.gaps) == 1
    assert found.manifest.server.name == "db1"


def test_a_reset_that_one_counter_shows_hides_the_others_too(import_texts):
    found = import_texts(
        answer((disk("reads_completed"), [100, 200, 10, 20]), (disk("writes_completed"), [1, 2, 30, 40]))
    )
    assert found.io("reads") == [100, 10] and found.io("writes") == [1, 10]
    assert found.ends() == ["02 10:00:15", "02 10:00:45"] and any("anew" in note for note in found.manifest.notes)


def test_answers_that_were_appended_are_one_series_each(import_texts):
    series = disk("reads_completed"), [0, 15, 30, 45]
    whole, begin = answer(series), answer((series[0], series[1][:3]))
    for text in (whole + whole, begin + "\n" + whole, answer(series, series)):
        found = import_texts(text)
        assert found.io("reads") == [15, 15, 15] and not any("not there" in note for note in found.manifest.notes)


def test_metrics_of_one_exporter_are_of_one_machine(import_texts):
    reads, writes = disk("reads_completed"), disk("writes_completed", instance="db2:9100")
    with pytest.raises(StallmarkError, match=r"node_\* of instance “db1:9100” and “db2:9100”.*instance="):
        import_texts(answer((reads, [0, 15]), (writes, [0, 15])))
    cpu = {"__name__": "windows_cpu_time_total", "core": "0,0", "mode": "user", "instance": "db2:9182"}
    with pytest.raises(StallmarkError, match="is of db1, db2: give each a file of its own, as with `curl"):
        import_texts(answer((reads, [0, 15]), (cpu, [0, 15])))


def test_postgresql_is_summed_over_its_databases(import_texts):
    def metric(name: str, database: str) -> dict:
        return {"__name__": f"pg_stat_database_{name}", "datname": database, "instance": "db1:9187"}

    found = import_texts(
        answer(
            (metric("xact_commit", "shop"), [0, 10, 20]), (metric("xact_rollback", "shop"), [0, 1, 2]),
            (metric("xact_commit", "crm"), [0, 100, 200]), (metric("xact_commit", "template1"), [0, 999, 9999]),
            (metric("blks_read", "shop"), [0, 5, 5]), (metric("blks_hit", "shop"), [0, 50, 60]),
            (metric("numbackends", "shop"), [3, 4, 5]),
        )
    )  # fmt: skip
    assert found.server("transactions") == [111, 111] and found.server("connections") == [4, 5]
    assert found.server("pages_read") == [5, 0] and found.server("page_lookups") == [55, 10]
    assert found.manifest.server.engine == "postgresql"


def test_windows_volumes_have_classes(import_texts):
    def volume(metric: str, name: str) -> dict:
        return {"__name__": f"windows_logical_disk_{metric}", "volume": name, "instance": "sql1:9182"}

    text = answer(
        (volume("writes_total", "L:"), [0, 60]), (volume("write_latency_seconds_total", "L:"), [0, 0.12]),
        (volume("writes_total", "C:"), [0, 7]), (volume("writes_total", "_Total"), [0, 67]),
    )  # fmt: skip
    found = import_texts(text, classes={"L:": FileClass.LOG})
    assert found.io("writes", "log") == [60] and found.io("write_stall_ms", "log") == pytest.approx([120])
    assert import_texts(text).io("writes") == [67]


def test_an_nvme_disk_of_an_old_kernel_has_the_ios_of_its_paths(import_texts):
    paths = [(disk("reads_completed", name), [0, 10, 30]) for name in ("nvme0c0n1", "nvme0c1n1")]
    idle = import_texts(answer((disk("reads_completed", "nvme0n1"), [7, 7, 7]), *paths))
    assert idle.io("reads") == [20, 40] and any("nvme0c0n1, nvme0c1n1 (paths" in note for note in idle.manifest.notes)
    assert import_texts(answer((disk("reads_completed", "nvme0n1"), [7, 27, 67]), *paths)).io("reads") == [20, 40]


def test_a_device_of_an_unknown_kind_that_moved_more_than_the_disks_is_refused(import_texts):
    disks = [(disk("read_bytes", "sda"), [0, 4096]), (disk("reads_completed", "sda"), [0, 1])]
    assert import_texts(answer(*disks, (disk("read_bytes", "qbd0"), [0, 4096]))).io("read_bytes") == [4096]
    with pytest.raises(StallmarkError, match=r"qbd0 .of a kind that is not known.*--class qbd0=data"):
        import_texts(answer(*disks, (disk("read_bytes", "qbd0"), [0, 40960])))


def test_points_out_of_order_and_double_ones_count_once(import_texts):
    text = json.loads(answer((disk("reads_completed"), [0, 15, 30])))
    values = text["data"]["result"][0]["values"]
    text["data"]["result"][0]["values"] = [values[2], values[0], values[1], values[1]]
    assert import_texts(json.dumps(text)).io("reads") == [15, 15]


def test_a_file_that_is_cut_gives_the_series_that_are_whole(import_texts):
    text = answer((disk("reads_completed"), [0, 15]), (disk("writes_completed"), [0, 15]))
    found = import_texts(text[:-60])
    assert found.io("reads") == [15] and found.io("writes") == [None] and found.manifest.notes
    assert "writes" in found.manifest.missing["disk counters"]


def test_the_series_alone_and_any_order_of_the_keys(import_texts):
    document = json.loads(answer((disk("reads_completed"), [0, 15, 30])))
    alone = json.dumps(document["data"]["result"])  # promtool's -o json
    bytes_ = json.dumps(json.loads(answer((disk("read_bytes"), [0, 4096, 8192])))["data"]["result"])
    for text in (json.dumps(document, sort_keys=True, indent=2), json.dumps(document["data"]), alone):
        assert import_texts(text).io("reads") == [15, 15]
    both = import_texts(alone + "\n" + bytes_)
    assert both.io("reads") == [15, 15] and both.io("read_bytes") == [4096, 4096]


def test_series_of_a_longer_step_are_named(import_texts):
    reads = json.loads(answer((disk("reads_completed"), [0, 15, 30, 45, 60, 75, 90, 105, 120])))
    bytes_ = json.loads(answer((disk("read_bytes"), [0, 1, 2])))
    for place, point in enumerate(bytes_["data"]["result"][0]["values"]):
        point[0] = BEGIN + 60 * place
    found = import_texts(json.dumps(reads) + json.dumps(bytes_))
    assert found.io("reads") == [15] * 8 and found.io("read_bytes") == [None] * 8
    assert any("read_bytes sda" in note and "one step" in note for note in found.manifest.notes)


def test_warnings_of_an_answer_are_noted(import_texts):
    text = answer((disk("reads_completed"), [0, 15]))
    found = import_texts(text[:-1] + ', "warnings": ["results truncated due to limit"]}')
    assert found.io("reads") == [15] and any("truncated due to limit" in note for note in found.manifest.notes)


def test_rates_under_the_names_of_totals_are_refused(import_texts):
    """VictoriaMetrics keeps the name after rate() if asked to."""
    with pytest.raises(StallmarkError, match="falls of sda reads at 3 points, as a rate has"):
        import_texts(answer((disk("reads_completed"), [10, 12, 8, 9, 14, 3, 7, 6])))
    assert import_texts(answer((disk("reads_completed"), [10, 12, 8, 9, 14, 15, 3, 7]))).io("reads")


@pytest.mark.parametrize(
    ("text", "said"),
    [
        (answer((disk("reads_completed"), [0, 15])) + '\n{"status":"error","error":"query timed out"}', "timed out"),
        (answer((disk("reads_completed"), [0, 15]))
         + '{"status":"success","data":{"resultType":"vector","result":[]}}', "query_range"),
        (json.dumps([{"metric": {}, "value": [1, "2"]}]), "query_range"),
        (answer(({"device": "sda", "instance": "a:1"}, [1, 2])), "have no names"),
        (answer(({"__name__": "up"}, [1, 1])), "does not have two points"),
        (answer((disk("reads_completed"), [1])), "not have two points that count of node_disk_reads"),
        (answer(*((disk("reads_completed", instance=at), [1, 2]) for at in ("a:1", "b:1"))), "“a:1” and “b:1”"),
        (answer(*(({"__name__": "wmi_logical_disk_reads_total", "volume": "C:", "instance": at}, [1, 2])
                  for at in ("a:1", "b:1"))), r'of instance “a:1” and “b:1”.*=~"wmi_\.\*",instance="a:1"'),
        (answer(*((disk("reads_completed", job=job), [1, 2]) for job in ("infra", "node"))),
         r'of job “infra” and “node”: .*`curl .*instance="db1:9100",job="infra"'),
        (answer(*((disk("reads_completed", **more), [1, 2]) for more in ({}, {"replica": "b"}))), 'replica=""'),
        (answer(*((disk("reads_completed", job=job), [1, 2]) for job in ("a'; touch \"b", "c"))),
         r"""job="a'\\''; touch \\"b"\}'"""),
        (answer(*(({"__name__": "node_cpu_seconds_total", "cpu": "0", "mode": "user", "job": job}, [1, 2])
                  for job in ("infra", "node"))), "of job “infra” and “node”"),
        (answer((disk("reads_completed"), [1, "x"])), "not a number"),
        ('{"status":"error","errorType":"bad_data","error":"parse error"}', "parse error"),
        ('{"status":"success","data":{"resultType":"vector","result":[{"metric":{},"value":[1,"2"]}]}}', "query_range"),
        ('{"status":"success","data":{"resultType":"matrix","result":[]}}', "does not have two points"),
    ],
)  # fmt: skip
def test_what_is_no_recording_of_one_machine_is_refused(import_texts, text, said):
    with pytest.raises(StallmarkError, match=said):
        import_texts(text)


@pytest.mark.parametrize("exporter", ["windows", "wmi"])
def test_disks_of_windows_count_before_its_volumes(import_texts, exporter):
    def metric(kind: str, column: str, **label: str) -> dict:
        return {"__name__": f"{exporter}_{kind}_disk_{column}_total", "instance": "db01:9182", **label}

    physical = [
        (metric("physical", "reads", disk="1"), [1000, 2500, 4000]),
        (metric("physical", "read_bytes", disk="1"), [1000, 2500, 4000]),
        (metric("physical", "read_latency_seconds", disk="1"), [1000, 2500, 4000]),
    ]
    volumes = [
        (metric("logical", column, volume=name), [0, 700, 1400])
        for name in ("C:", "D:")
        for column in ("reads", "writes")
    ]
    alone = import_texts(answer(*physical))
    assert alone.io("reads") == [1500] * 2 and alone.io("read_stall_ms") == [1_500_000] * 2
    both = import_texts(answer(*volumes, *physical))
    assert both.io("reads") == [1500] * 2 and both.io("writes") == [1400] * 2
    given_ = import_texts(answer(*volumes, *physical), classes={"D:": FileClass.DATA})
    assert given_.io("reads", "data") == [700] * 2 and given_.io("reads") == []


def test_names_of_an_old_node_exporter(import_texts):
    def old(name: str, **labels: str) -> dict:
        return {"__name__": f"node_{name}", "instance": "db1:9100", **labels}

    found = import_texts(
        answer(
            (old("disk_reads_completed", device="sda"), [1000, 2500]),
            (old("disk_bytes_written", device="sda"), [1000, 2500]),
            (old("disk_read_time_ms", device="sda"), [1000, 2500]),
            *((old("cpu", cpu="cpu0", mode=mode), [0, 3]) for mode in ("user", "guest", "idle")),
        )
    )
    assert found.io("reads") == found.io("write_bytes") == found.io("read_stall_ms") == [1500]
    assert found.server("cpu_s") == [3] and found.manifest.server.cores == 1  # guest is part of user
    both = import_texts(
        answer((old("disk_reads_completed", device="sda"), [0, 15]), (disk("reads_completed"), [0, 15]))
    )
    assert both.io("reads") == [15]


def test_a_point_that_one_series_lacks_joins_the_intervals_around_it(import_texts):
    all_, lacking = [0, 1500, 3000, 4500, 6000, 7500], [0, 1500, None, 4500, 6000, 7500]
    found = import_texts(answer((disk("reads_completed"), all_), (disk("reads_completed", "sdb"), lacking)))
    assert found.io("reads") == [3000, 6000, 3000, 3000] and found.manifest.gaps == ()
    assert found.ends() == ["02 10:00:15", "02 10:00:45", "02 10:01:00", "02 10:01:15"]
    assert any("1 time" in note for note in found.manifest.notes)
    both = import_texts(answer((disk("reads_completed"), lacking), (disk("reads_completed", "sdb"), lacking)))
    assert both.io("reads") == [3000, 6000, 3000, 3000]


def test_a_device_that_comes_or_goes_erases_no_other_and_one_that_returns_is_not_guessed(import_texts):
    steady = (disk("reads_completed"), [0, 15, 30, 45, 60, 75])
    late = import_texts(answer(steady, (disk("reads_completed", "sdb"), [None, None, None, 100, 101, 102])))
    assert late.io("reads") == [15, 15, 15, 16, 16] and any("sdb" in note for note in late.manifest.notes)
    back = import_texts(answer(steady, (disk("reads_completed", "sdb"), [100, 101, None, None, 500, 501])))
    assert back.io("reads") == [16, 16] and back.ends() == ["02 10:00:15", "02 10:01:15"]


@st.composite
def scrapes(draw: st.DrawFn) -> list[tuple[str, list[tuple[int, bool]]]]:
    """Return by device and scrape: what it did since the scrape before, and whether the scrape has it."""
    count = draw(st.integers(3, 9))
    step = st.tuples(st.integers(0, 1000), st.booleans() | st.just(True))
    return [(name, draw(st.lists(step, min_size=count, max_size=count))) for name in ("sda", "sdb", "sdc")]


@given(scrapes())
def test_what_is_known_is_true_while_all_devices_are_there(import_many, devices):
    """Any points may be missing; only before a device's first and after its last is the sum of the others."""
    series, totals = [], {}
    for name, steps in devices:
        values, total = [], 0
        for done, is_there in steps:
            total += done
            values.append(total if is_there else None)
        totals[name] = values
        series.append((disk("reads_completed", name), values))
    try:
        found = import_many(answer(*series))
    except StallmarkError:
        return  # no two points
    for end, row in found.rows():
        first, last = (round(at.timestamp() - BEGIN) // 15 for at in (row["start"], end))
        truth = 0
        for name, steps in devices:
            places = [place for place, value in enumerate(totals[name]) if value is not None]
            if len(places) > 1 and places[0] <= first and last <= places[-1]:
                truth += sum(done for done, _ in steps[first + 1 : last + 1])
        assert row["reads"] is None or row["reads"] == truth


@given(st.lists(st.tuples(st.integers(0, 4), st.integers(5, 9)), min_size=1, max_size=3))
def test_all_is_known_if_devices_only_begin_later_and_end_before(import_many, spans):
    series = [
        (disk("reads_completed", f"sd{'abc'[number]}"), [10 * at if first <= at <= last else None for at in range(10)])
        for number, (first, last) in enumerate(spans)
    ]
    seen = {
        round(row["start"].timestamp() - BEGIN) // 15: row["reads"] for _, row in import_many(answer(*series)).rows()
    }
    for at in range(9):
        there = sum(first <= at and at + 1 <= last for first, last in spans)
        assert seen.get(at) == (10 * there or None)


@given(st.lists(st.integers(0, 1000), min_size=3, max_size=9), st.integers(1, 8), st.integers(0, 500))
def test_a_fall_hides_its_interval_alone(import_many, steps, at, anew):
    values = [100_000]
    for place, step in enumerate(steps, 1):
        values.append(anew if place == at else values[-1] + step)
    found = import_many(answer((disk("reads_completed"), values), (disk("writes_completed"), list(range(len(values))))))
    rises = [after - before for before, after in pairwise(values)]
    assert found.io("reads") == [rise for rise in rises if rise >= 0]
    assert found.io("writes") == [1] * len([rise for rise in rises if rise >= 0])
