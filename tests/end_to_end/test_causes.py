"""Causes that are known because they were put there: a device's delay, and devices that nobody waits for."""

from collections.abc import Iterator

import pytest
from support.tool import Tool

from stallmark.analysis.bottleneck.summary import Source
from stallmark.analysis.cause.evidence import ChangeKind, ComparedFigure, Storage
from stallmark.analysis.cause.explain import explain
from stallmark.analysis.experiment import summarise
from stallmark.analysis.step_summary import StepSummary
from stallmark.record.reader import find_records

SLOW_MS, FAST_MS = 30, 4


def variant(name: str, pool: str, read_ms: float) -> dict[str, object]:
    """Many spindles, so that hardly any I/O queues and a read takes what it is served."""
    data = {"spindles": 64, "read_ms": read_ms, "write_ms": 0, "sync_ms": 0, "mb_per_s": 1000}
    return {"name": name, "buffer_pool": pool, "emulated_array": {"data": data}}


@pytest.fixture(scope="module")
def steps(tmp_path_factory: pytest.TempPathFactory) -> Iterator[list[StepSummary]]:
    """Two users on 16 MiB of accounts: with half of them in the pool, slow and fast, and with all."""
    tool = Tool(tmp_path_factory.mktemp("causes"))
    variants = [
        variant(f"{pool}, {read_ms} ms", pool, read_ms) for pool in ("8MiB", "200 %") for read_ms in (SLOW_MS, FAST_MS)
    ]
    measured = {"start_cache": "prefilled", "think_time": None, "warm_up": "3s", "measure": "4s"}
    scenario = tool.scenario(variants=variants, **measured)
    code, said = tool.run("run", scenario)
    assert code in (0, 4), said
    yield summarise(find_records([tool.newest()])).steps
    tool.nothing_left()


def test_an_injected_delay_is_found_blamed_on_reads_and_measured(steps):
    cause = explain(steps[:1], steps[1:2])
    assert cause.storage in (Storage.CAUSE, Storage.ONE_OF_SEVERAL), cause.finding  # beside a busy CPU one of several
    assert cause.finding.facts["io_reason"].kind == ChangeKind.READ_TIME
    [found] = [one for one in cause.evidence if (one.figure, one.source) == (ComparedFigure.READ_TIME, Source.DEVICE)]
    # benchmarks/causes.py measures how exactly; a busy machine wakes late who waits for 12 ms.
    assert found.change == pytest.approx(FAST_MS - SLOW_MS, rel=0.3)
    assert max(cause.parts[1:], key=lambda part: part.share or 0.0).part == "read"
    causes = [step.cause for step in steps[:2]]
    assert all(one and one.predictions for one in causes), "faster reads can be asked about"


def test_devices_that_nobody_waits_for_are_not_the_cause(steps):
    cause = explain(steps[2:3], steps[3:])
    assert cause.storage == Storage.NOT_THE_CAUSE, cause.finding
