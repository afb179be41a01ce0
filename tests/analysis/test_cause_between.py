"""The cause of a difference between two sides, on steps whose truth is known."""

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import pytest
from support.findings import facts_of, kinds_of
from support.steps import changed_step

from stallmark.analysis.bottleneck import DeviceKind
from stallmark.analysis.cause import explain
from stallmark.analysis.cause_evidence import Cause, CauseKind, ChangeKind, ComparedFigure, Storage
from stallmark.analysis.finding import Finding, info
from stallmark.analysis.prediction import ModelTest
from stallmark.analysis.step_summary import Budget, Source, StepCause, StepSummary
from stallmark.report.text.cause import evidence_words


def repeated(step: StepSummary, spread: Sequence[float], **parts_ms: float) -> list[StepSummary]:
    """Runs of the step with these parts of the response time, and everything times 1 + spread."""
    budget = step.cause.budget
    parts = budget.parts_ms | parts_ms
    return [changed_step(step, cause=replace(step.cause, budget=_scaled(budget, parts, 1 + one))) for one in spread]


def _scaled(budget: Budget, parts: dict[str, float], factor: float) -> Budget:
    parts = {name: ms * factor for name, ms in parts.items()}
    return replace(budget, parts_ms=parts, response_ms=sum(parts.values()))


THREE = (-0.02, 0.0, 0.02)


def by_part(cause: Cause) -> dict[str, Any]:
    return {part.part: part for part in cause.parts if part.figure == ComparedFigure.PART}


def io_reason(cause: Cause) -> Finding:
    return cause.finding.facts["io_reason"]


def other_reason(cause: Cause) -> Finding:
    """The only reason besides I/O."""
    [reason] = cause.finding.facts["others"]
    return reason


@pytest.mark.thorough
def test_slower_reads_are_the_cause(slow, fast):
    cause = explain([slow] * 3, [fast] * 3)
    assert (cause.storage, cause.finding.kind) == (Storage.CAUSE, CauseKind.STORAGE)
    assert io_reason(cause).kind == ChangeKind.READ_TIME
    assert io_reason(cause).facts["read_ms"] == pytest.approx([26.9, 9.02], abs=0.1)
    assert cause.finding.facts["response_ms"] == pytest.approx([75, 34.1], abs=1)
    assert sum(part.change for part in by_part(cause).values()) == pytest.approx(cause.parts[0].change)
    other_way = explain([fast] * 3, [slow] * 3)
    assert other_way.storage == Storage.CAUSE
    assert io_reason(other_way).facts["read_ms"] == io_reason(cause).facts["read_ms"][::-1]


def test_every_figure_has_its_unit_runs_and_method(slow, fast):
    cause = explain(repeated(slow, THREE), repeated(fast, THREE))
    for one in (*cause.parts, *cause.evidence):
        assert all(evidence_words(one)) and one.runs_a == one.runs_b == 3
        assert one.low - 1e-9 <= one.change <= one.high + 1e-9
    assert cause.parts[0].low < cause.parts[0].change < cause.parts[0].high


def test_a_model_is_tested_against_the_other_variant(slow, fast):
    tests = explain([slow], [fast]).predictions
    assert [(one.model_of, one.variant) for one in tests] == [(slow.variant, fast.variant)] * 2
    assert abs(tests[0].error) < 0.15 and tests[0].read_ms == pytest.approx(9, rel=0.05)
    other_users = replace(fast, users=40)
    assert not explain([slow], [other_users]).predictions


@pytest.mark.parametrize(("measured", "is_within"), [(60.0, True), (60.000000000000014, True), (60.1, False)])
def test_rounding_puts_no_measurement_outside_a_range_without_width(measured: float, is_within: bool) -> None:
    test = ModelTest("slow", "fast", read_ms=8.0, predicted=60.0, low=60.0, high=60.0, measured=measured, runs=1)
    assert test.is_within_range is is_within


def test_the_cpu_is_the_cause_and_storage_is_not(slow):
    a = repeated(slow, THREE, cpu=30.0)
    cause = explain(a, repeated(slow, THREE, cpu=10.0))
    assert cause.storage == Storage.NOT_THE_CAUSE
    assert other_reason(cause).kind == ChangeKind.PART
    assert other_reason(cause).facts == {"part": "cpu", "per_transaction_ms": pytest.approx([30, 10])}
    assert by_part(cause)["cpu"].share == pytest.approx(1, abs=0.05)


def test_fewer_reads_are_the_pools_doing_and_not_the_storages(slow):
    read = slow.cause.budget.parts_ms["read"]
    b = [changed_step(step, reads_per_transaction=1.0) for step in repeated(slow, THREE, read=read / 2)]
    cause = explain(repeated(slow, THREE), b)
    assert cause.storage == Storage.NOT_THE_CAUSE
    assert other_reason(cause).kind == ChangeKind.NUMBER
    assert other_reason(cause).facts == {
        "figure": ComparedFigure.READS,
        "per_transaction": pytest.approx([2, 1], rel=0.01),
    }
    assert not cause.predictions, "another number of reads is another model"


def of_writes(step: StepSummary, ms: float, writes: int, write_ms: float | None) -> list[StepSummary]:
    """Runs that waited for `ms` of writes per transaction, where the server counted so many of so long in all. The log
    lies on the same device."""
    data = replace(step.storage.data, writes=writes, write_ms=write_ms)
    return [changed_step(one, data_io=data, wal_device_io=None) for one in repeated(step, THREE, **{"other_io": ms})]


@pytest.mark.parametrize(
    ("ms", "writes", "write_ms", "by_count"),
    [(0.0, 0, None, True), (0.14, 240, 6.8, True), (0.002, 240, 0.1, True), (0.9, 48_000, 4.0, False)],
    ids=["none", "few, and longer", "few, and shorter", "by a checkpoint, for which nobody waits"],
)
def test_fewer_evictions_are_the_pools_doing_and_not_the_devices(slow, ms, writes, write_ms, by_count):
    many = round(2 * slow.throughput.tps * slow.storage.data.seconds)
    small, large = of_writes(slow, 30.0, many, 4.0), of_writes(slow, ms, writes, write_ms)
    for a, b, fewer in ((small, large, True), (large, small, False)):
        cause = explain(a, b)
        assert cause.storage == Storage.NOT_THE_CAUSE
        reason = other_reason(cause)
        if by_count:
            before, after = reason.facts["per_transaction"]
            assert reason.facts["figure"] == ComparedFigure.WRITES and (after < before) == fewer
        else:
            assert reason.kind == ChangeKind.WAITED_FOR and reason.facts == {"part": "other_io", "fewer": fewer}


def test_longer_writes_are_the_devices_doing_however_many_there_are(slow):
    many = round(2 * slow.throughput.tps * slow.storage.data.seconds)
    cause = explain(of_writes(slow, 8.0, many, 4.0), of_writes(slow, 24.0, many // 2, 12.0))
    assert cause.storage == Storage.CAUSE and cause.finding.facts["io_share"] == pytest.approx(1)
    assert io_reason(cause).facts == {"part": "other_io", "per_transaction_ms": pytest.approx([8, 24])}


def of_syncs(step: StepSummary, ms: float, syncs: int, sync_ms: float | None) -> list[StepSummary]:
    log = replace(step.storage.wal, writes=0, write_ms=None, syncs=syncs, sync_ms=sync_ms)
    return [changed_step(one, wal_io=log, wal_device_io=None) for one in repeated(step, THREE, log=ms)]


def test_where_the_log_has_a_device_of_its_own_both_are_timed_by_their_devices(slow):
    """The server's time of a write has waiting for a CPU in it; the part of the response time has not."""
    a, b = repeated(slow, THREE, **{"other_io": 5.0}), repeated(slow, THREE, **{"other_io": 40.0})
    server = [changed_step(step, data_io=replace(step.storage.data, write_ms=40.0)) for step in b]
    assert slow.storage.wal_device and explain(a, server).storage == Storage.NOT_THE_CAUSE
    device = [changed_step(step, device_io=replace(step.storage.data_device, write_ms=32.0)) for step in b]
    assert explain(a, device).storage == Storage.CAUSE


def test_fewer_syncs_are_the_loads_doing_and_longer_ones_the_devices(slow):
    many = round(slow.throughput.tps * slow.storage.wal.seconds)
    fewer = explain(of_syncs(slow, 20.0, many, 2.0), of_syncs(slow, 2.0, many // 10, 2.0))
    assert fewer.storage == Storage.NOT_THE_CAUSE
    assert other_reason(fewer).facts == {
        "figure": ComparedFigure.SYNCS,
        "per_transaction": pytest.approx([1, 0.1], rel=0.01),
    }
    together = explain(of_syncs(slow, 2.0, many, 2.0), of_syncs(slow, 22.0, many // 5, 20.0))
    assert together.storage == Storage.CAUSE, "five commits wait for one sync, and none for less than before"
    from_nothing = explain(of_syncs(slow, 0.0, many, 0.0), of_syncs(slow, 20.0, many, 20.0))
    assert from_nothing.storage == Storage.CAUSE, "a device that needs no time is timed all the same"


def test_waiting_for_io_that_nobody_timed_leaves_the_cause_open(slow):
    many = round(slow.throughput.tps * slow.storage.wal.seconds)
    cause = explain(of_syncs(slow, 20.0, many, None), of_syncs(slow, 2.0, many, None))
    assert (cause.storage, cause.finding.kind) == (Storage.NOT_KNOWN, CauseKind.NOT_SPLIT)
    blind = [changed_step(step, reads_per_transaction=None) for step in repeated(slow, THREE, read=10.0)]
    assert explain(repeated(slow, THREE), blind).storage == Storage.NOT_KNOWN


def test_the_last_few_reads_do_not_tell_how_long_a_read_takes(slow):
    """All in the pool: no session was ever seen reading, which does not make the device infinitely fast."""
    rare = [changed_step(step, reads_per_transaction=1e-4) for step in repeated(slow, THREE, read=0.0)]
    cause = explain(repeated(slow, THREE), rare)
    assert cause.storage == Storage.NOT_THE_CAUSE and cause.finding.facts["io_share"] <= 0


def test_a_cause_says_where_a_device_was_not_judged(slow, fast):
    assert CauseKind.CPUS_BUSY not in kinds_of(explain([slow] * 3, [fast] * 3).cautions)
    verdict = info(DeviceKind.CPUS_BUSY_OTHERWISE)
    busy = changed_step(fast, device_verdict=verdict)
    found = explain([slow] * 3, [fast, busy, busy])
    assert found.storage == Storage.CAUSE
    assert facts_of(found.cautions, CauseKind.CPUS_BUSY) == [{"runs": 2, "of": 6}]


def test_half_and_half_is_one_of_several(slow):
    parts = slow.cause.budget.parts_ms
    b = repeated(slow, THREE, read=parts["read"] + 10, lock=parts["lock"] + 15)
    cause = explain(repeated(slow, THREE), b)
    assert (cause.storage, cause.finding.kind) == (Storage.ONE_OF_SEVERAL, CauseKind.ONE_OF_SEVERAL)
    assert other_reason(cause).facts["part"] == "lock"
    assert CauseKind.LOCKS in kinds_of(cause.cautions)


def test_the_same_twice_explains_nothing(slow):
    cause = explain(repeated(slow, THREE), repeated(slow, (-0.015, 0.005, 0.01)))
    assert (cause.storage, cause.finding.kind) == (Storage.NOT_KNOWN, CauseKind.UNCHANGED)
    assert all(part.share is None for part in cause.parts)


def test_two_devices_that_nobody_waits_for_are_not_the_cause(slow):
    parts = {"read": 0.5, "log": 0.5, "other_io": 0.0, "cpu": 8.0}
    cause = explain(repeated(slow, THREE, **parts), repeated(slow, (-0.015, 0.005, 0.01), **parts))
    assert (cause.storage, cause.finding.kind) == (Storage.NOT_THE_CAUSE, CauseKind.LITTLE_IO)
    assert cause.finding.facts["other_part"] == "cpu" and cause.finding.facts["cpu_share"]


def test_single_runs_are_judged_by_what_single_runs_differ_by(slow, fast):
    assert explain([slow], [fast]).storage == Storage.CAUSE
    a_little = repeated(slow, [0.03])
    assert explain([slow], a_little).finding.kind == CauseKind.UNCHANGED


def test_pairs_show_what_the_drift_of_a_day_hides(slow):
    """Runs drift together by 20 %; B's reads are 5 ms longer each time."""
    drift = (-0.1, 0.0, 0.1)
    read = slow.cause.budget.parts_ms["read"]
    a, b = repeated(slow, drift), repeated(slow, drift, read=read + 5)
    in_pairs, apart = explain(a, b, paired=True), explain(a, b)
    assert in_pairs.storage == Storage.CAUSE and apart.finding.kind == CauseKind.UNCHANGED
    assert all(p.high - p.low < q.high - q.low for p, q in zip(in_pairs.parts[:2], apart.parts[:2], strict=True))


def test_without_looks_at_sessions_the_cause_is_not_known(slow, fast):
    blind = changed_step(slow, cause=StepCause(None))
    cause = explain([blind], [fast])
    assert (cause.storage, cause.finding.kind) == (Storage.NOT_KNOWN, CauseKind.NOT_LOOKED_AT)
    assert {(one.figure, one.source) for one in cause.evidence} >= {
        (ComparedFigure.READ_TIME, Source.SERVER),
        (ComparedFigure.CPU_BUSY, None),
    }
    assert explain([changed_step(slow, cause=None)], [fast]).storage == Storage.NOT_KNOWN
