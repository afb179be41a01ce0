"""Thresholds: how they are written, what they are held against, and when there is no verdict."""

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st
from support.manifests import changed
from support.synthetic import Truth, make_run

from stallmark.analysis.experiment import summarise
from stallmark.analysis.rules import parse_threshold
from stallmark.errors import StallmarkError
from stallmark.record.reader import Record
from stallmark.report.experiment import experiment_in_json
from stallmark.report.renderers import dumped
from stallmark.report.sections.validity import failures


@pytest.mark.parametrize(
    ("text", "transaction", "metric", "sign", "limit"),
    [
        ("p95 < 20ms", None, "p95", "<", 20),
        ("p99.9<=1s", None, "p99.9", "<=", 1000),
        ("read_ms < 5", None, "read_ms", "<", 5),
        ("tps > 500", None, "tps", ">", 500),
        ("errors < 1 %", None, "errors", "<", 0.01),
        ("trade_order.p99 < 1s", "trade_order", "p99", "<", 1000),
        ("trade_order.p99.9 >= 2", "trade_order", "p99.9", ">=", 2),
    ],
)
def test_how_they_are_written(text, transaction, metric, sign, limit):
    rule = parse_threshold(text)
    assert (rule.transaction, rule.metric, rule.sign) == (transaction, metric, sign)
    assert rule.limit == pytest.approx(limit)


@given(st.text(max_size=30))
def test_whatever_is_written_is_understood_or_refused(text):
    try:
        assert parse_threshold(text).limit is not None
    except ValueError as error:
        assert str(error)


@pytest.mark.parametrize(
    "text",
    [
        "",
        "p95",
        "p95 < ",
        "p95 < fast",
        "foo < 1",
        "a.cpu < 1 %",
        "errors < 1",
        "tps > 1ms",
        "tps > nan",
        "errors < inf %",
    ],
)
def test_what_is_refused(text):
    with pytest.raises(ValueError):
        parse_threshold(text)


def held(record: Record, *texts: str):
    record.manifest = record.manifest.changed(
        scenario=record.manifest.scenario.model_dump() | {"thresholds": list(texts)}
    )
    return {one.text: (one.holds, one.value) for one in summarise([record]).thresholds}


@pytest.mark.thorough
@pytest.mark.parametrize(("failed", "kept"), [(0, True), (3, False)])
def test_what_was_given_up_took_longer_than_any_limit(tmp_path, failed, kept):
    truth = Truth(tps=400, users=30, measured_s=30, noise=0, failed_per_second=failed)
    record = Record(make_run(tmp_path / "a", truth))
    found = held(record, "p95 < 1h", "p99.9 < 1h", "max < 1h", "latency < 1h")
    assert [holds for holds, _ in found.values()] == [True, kept, kept, True]
    experiment = summarise([record])
    assert any("p99.9 < 1h was not met (given up" in one for one in failures(experiment)) is not kept
    assert "Infinity" not in dumped(experiment_in_json(experiment))


@pytest.mark.parametrize(("waiting", "kept"), [(0, True), (500, True), (700, False)])
def test_arrivals_that_still_waited_took_longer_than_any_limit(tmp_path, waiting, kept):
    record = Record(make_run(tmp_path / "a", Truth(tps=400, users=30, measured_s=30, noise=0)))
    record.manifest = record.manifest.changed(left_waiting={"arrivals": waiting})
    assert held(record, "p95 < 1h")["p95 < 1h"][0] is kept


def test_every_step_is_held_against_them(tmp_path):
    truth = Truth(tps=400, users=30, read_ms=8, measured_s=10, noise=0, foreign_reads_per_second=0)
    found = held(
        Record(make_run(tmp_path / "a", truth)),
        "tps > 390",
        "tps > 410",
        "latency < 80ms",
        "latency < 70",
        "read_ms < 9",
    )
    assert [holds for holds, _ in found.values()] == [True, False, True, False, True]
    assert found["tps > 390"][1] == pytest.approx(400, rel=0.01)
    assert found["latency < 70"][1] == pytest.approx(75, rel=0.02)


@pytest.mark.thorough
def test_what_was_not_measured_or_not_done_has_no_verdict(tmp_path):
    truth = Truth(measured_s=10, foreign_reads_per_second=0)
    record = Record(make_run(tmp_path / "a", truth))
    assert held(record, "no_such.p95 < 1s")["no_such.p95 < 1s"] == (None, None)
    changed(tmp_path / "a", status="incomplete", incomplete_because="the server was gone")
    assert held(Record(tmp_path / "a"), "tps > 1")["tps > 1"][0] is None
    foreign = Record(make_run(tmp_path / "b", replace(truth, foreign_reads_per_second=5000)))
    assert held(foreign, "tps > 1")["tps > 1"][0] is None


def test_a_record_of_another_version_is_refused_in_a_sentence(tmp_path):
    with pytest.raises(StallmarkError, match="of another version"):
        held(Record(make_run(tmp_path / "a", Truth(measured_s=5))), "p42 < 1")
