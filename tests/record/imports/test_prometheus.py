"""Prometheus: what a range query gives, and what it does not."""

import json

import pytest

from stallmark.errors import StallmarkError
from stallmark.record.profile.intervals import FileClass

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


def test_points_out_of_order_and_double_ones_count_once(import_texts):
    text = json.loads(answer((disk("reads_completed"), [0, 15, 30])))
    values = text["data"]["result"][0]["values"]
    text["data"]["result"][0]["values"] = [values[2], values[0], values[1], values[1]]
    assert import_texts(json.dumps(text)).io("reads") == [15, 15]


def test_a_file_that_is_cut_gives_the_series_that_are_whole(import_texts):
    text = answer((disk("reads_completed"), [0, 15]), (disk("writes_completed"), [0, 15]))
    found = import_texts(text[:-60])
    assert found.io("reads") == [15] and found.io("writes") == [None] and found.manifest.notes


@pytest.mark.parametrize(
    ("text", "said"),
    [
        (answer(({"device": "sda", "instance": "a:1"}, [1, 2])), "have no names"),
        (answer(({"__name__": "up"}, [1, 1])), "no two points"),
        (answer((disk("reads_completed"), [1])), "no two points"),
        (answer(*((disk("reads_completed", instance=at), [1, 2]) for at in ("a:1", "b:1"))), "a:1 and b:1"),
        (answer((disk("reads_completed"), [1, "x"])), "not a number"),
        ('{"status":"error","errorType":"bad_data","error":"parse error"}', "parse error"),
        ('{"status":"success","data":{"resultType":"vector","result":[{"metric":{},"value":[1,"2"]}]}}', "query_range"),
        ('{"status":"success","data":{"resultType":"matrix","result":[]}}', "no two points"),
    ],
)  # fmt: skip
def test_what_is_no_recording_of_one_machine_is_refused(import_texts, text, said):
    with pytest.raises(StallmarkError, match=said):
        import_texts(text)
