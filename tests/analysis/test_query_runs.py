"""Runs of queries, from records of known truth: figures, relative run times, plans, parallelism, what is lacking."""

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st
from support.findings import facts_of, kinds_of
from support.synthetic import Truth, make_run
from support.synthetic_queries import GAP_S, make_query_run

from stallmark.analysis.compare.summary import PairKind, ReasonKind
from stallmark.analysis.experiment import summarise
from stallmark.analysis.queries import QueryKind, is_io
from stallmark.analysis.read.queries import (
    composite_metric,
    counted_s,
    in_order,
    power_metric,
    rounded,
    throughput_metric,
)
from stallmark.analysis.read.times import ReadKind
from stallmark.errors import StallmarkError
from stallmark.record.reader import find_records
from stallmark.report.experiment import experiment_in_json

BARE = {"name": "nvme0n1"}


def of(folder):
    return summarise(find_records([folder]))


def test_the_figures_of_a_run_of_both(tmp_path):
    make_query_run(tmp_path / "1", run="both", streams=2, seconds={"RF1": 2.0, "RF2": 2.0})
    experiment = of(tmp_path)
    [run] = experiment.runs
    figures = run.queries.figures
    assert figures.power == pytest.approx(3600 / 4 ** (1 / 24))
    elapsed = round(22 + 21 * GAP_S, 1)
    assert figures.throughput == pytest.approx(2 * 22 * 3600 / elapsed)
    assert figures.composite == pytest.approx((figures.power * figures.throughput) ** 0.5)
    assert list(run.queries.phases) == ["power", "throughput"]
    assert run.queries.driver_gap_ms == pytest.approx(GAP_S * 1000)
    assert experiment.queries.names == ["RF1", *(f"Q{n}" for n in range(1, 23)), "RF2"]
    assert [step.users for step in run.steps] == [1, 2], "its phases are steps, for the server's counters"


@pytest.mark.parametrize(
    ("failed", "facts"),
    [
        ({"Q9": "timeout"}, {"query": "Q9", "timeout": True, "error": None, "others": 0}),
        ({"Q2": "other"}, {"query": "Q2", "timeout": False, "error": "it went wrong (other)", "others": 0}),
        ({"Q2": "timeout", "Q9": "timeout"}, {"query": "Q2", "timeout": True, "error": None, "others": 1}),
    ],
)
def test_a_query_that_failed_or_took_too_long_leaves_no_figure(tmp_path, failed, facts):
    make_query_run(tmp_path / "1", failed=failed)
    experiment = of(tmp_path)
    figures = experiment.runs[0].queries.figures
    assert figures.power is None and experiment.queries.variants[0].power is None
    assert figures.power_lacks.kind == ReadKind.QUERY_FAILED
    assert figures.power_lacks.facts == {"figure": "power"} | facts
    assert facts_of(experiment.findings, QueryKind.LACKS) == [{"run": "disks", "because": figures.power_lacks}]
    cell = experiment.queries.variants[0].cell(next(iter(failed)), None)
    assert cell.seconds is None and cell.failed == 1


def test_a_run_that_was_cut_has_no_figure(tmp_path):
    make_query_run(tmp_path / "1", run="both", cut="stopped by Ctrl-C")
    figures = of(tmp_path).runs[0].queries.figures
    assert figures.power is None and figures.throughput is None and figures.composite is None
    lacks = [figures.power_lacks, figures.throughput_lacks]
    assert facts_of(lacks, ReadKind.PHASE_CUT) == [{"figure": "power"}, {"figure": "throughput"}]


def test_run_times_are_held_against_the_first_variant(tmp_path):
    make_query_run(tmp_path / "1", variant="disks", seconds={"RF1": 9.0})
    seconds = {"Q1": 0.25, "Q2": 0.25, "Q3": 2.0}
    make_query_run(tmp_path / "2", variant="flash", sequence=2, seconds=seconds, plans={"Q9": "other"})
    experiment = of(tmp_path)
    compared = experiment.queries
    disks, flash = compared.variants
    assert compared.baseline == "disks" and (disks.emulated, flash.emulated) == (True, True)
    assert disks.relative == pytest.approx(1) and disks.compared == 22
    assert flash.cell("Q1", None).relative == pytest.approx(0.25)
    assert flash.relative == pytest.approx((0.25 * 0.25 * 2) ** (1 / 22)), "refreshes are left out"
    assert [c.query for c in flash.cells if c.plan_changed] == ["Q9"]
    assert not any(c.plan_changed for c in disks.cells)
    [told] = facts_of(experiment.findings, QueryKind.RELATIVE)
    assert (told["faster"], told["alike"], told["slower"]) == (2, 19, 1)
    assert told["fastest"] == {"Q1": 0.25, "Q2": 0.25} and told["slowest"] == {"Q3": 2.0}
    [plans] = facts_of(experiment.findings, QueryKind.PLANS)
    assert plans == {"queries": ["Q9"], "variant": "flash", "baseline": "disks"}
    assert {QueryKind.FIGURE, QueryKind.FEW_RUNS} <= set(kinds_of(experiment.findings))
    assert QueryKind.NO_TPC_RESULT in kinds_of(experiment.cautions)


def test_an_emulated_device_is_not_held_against_a_real_one(tmp_path):
    make_query_run(tmp_path / "1", variant="disks")
    make_query_run(tmp_path / "2", variant="flash", sequence=2, seconds={"Q1": 0.25}, device=BARE)
    experiment = of(tmp_path)
    _, flash = experiment.queries.variants
    assert flash.relative is None and not any(cell.relative or cell.plan_changed for cell in flash.cells)
    assert facts_of(experiment.findings, QueryKind.RELATIVE) == []
    assert {len(one["variants"]) for one in facts_of(experiment.findings, QueryKind.FIGURE)} == {1}
    [apart] = facts_of(experiment.findings, PairKind.NOT_COMPARABLE)
    assert [one.kind for one in apart["reasons"]] == [ReasonKind.DEVICES_DIFFER]


def test_of_repeats_the_geometric_mean_and_the_lowest_figure(tmp_path):
    make_query_run(tmp_path / "1", seconds={"Q1": 1.0})
    make_query_run(tmp_path / "2", sequence=2, repeat=2, seconds={"Q1": 4.0}, plans={"Q1": "other"})
    [variant] = of(tmp_path).queries.variants
    assert variant.runs == 2
    assert variant.cell("Q1", None).seconds == pytest.approx(2.0)
    assert variant.cell("Q1", None).plans == ["other", "usual"]
    assert variant.power == pytest.approx(3600 / 4 ** (1 / 24))


def test_a_query_that_failed_in_the_baseline_is_not_held_against_anything(tmp_path):
    make_query_run(tmp_path / "1", failed={"Q5": "timeout"})
    make_query_run(tmp_path / "2", variant="flash", sequence=2, seconds={f"Q{n}": 0.5 for n in range(1, 23)})
    flash = of(tmp_path).queries.variants[1]
    assert flash.cell("Q5", None).seconds and flash.cell("Q5", None).relative is None
    assert flash.compared == 21 and flash.relative == pytest.approx(0.5)


def test_parallelism(tmp_path):
    make_query_run(tmp_path / "1", run="each", dops=(1, 2, 4), only=(1, 6), speedup=0.5)
    experiment = of(tmp_path)
    compared = experiment.queries
    assert compared.dops == [1, 2, 4] and compared.queries == ["Q1", "Q6"]
    cells = [compared.variants[0].cell("Q6", dop) for dop in compared.dops]
    assert [(cell.seconds, cell.actual_dop) for cell in cells] == [(1.0, 1), (0.5, 2), (0.25, 4)]
    [told] = facts_of(experiment.findings, QueryKind.PARALLEL)
    assert told["dops"] == [1, 4] and told["ratio"] == pytest.approx(0.25) and told["slower"] == []
    assert compared.variants[0].power is None and experiment.runs[0].queries.figures.power_lacks is None


def test_what_the_server_does_not_tell_stays_unknown(tmp_path):
    make_query_run(tmp_path / "1", measures=False)
    cell = of(tmp_path).queries.variants[0].cell("Q1", None)
    assert cell.seconds == 1.0 and cell.plans == [] and not cell.waits_known
    assert [cell.logical_reads, cell.read_bytes, cell.spill_bytes, cell.io_wait_ms, cell.actual_dop] == [None] * 5


def test_everything_is_json(tmp_path):
    make_query_run(tmp_path / "1", run="both")
    said = json.loads(json.dumps(experiment_in_json(of(tmp_path))))
    assert said["queries"]["variants"][0]["cells"][1]["query"] == "Q1"
    assert said["runs"][0]["queries"]["figures"]["composite"] > 0


def test_runs_of_queries_and_of_transactions_do_not_mix(tmp_path):
    make_query_run(tmp_path / "1")
    make_run(tmp_path / "2", Truth(measured_s=5))
    with pytest.raises(StallmarkError, match="name those of one kind"):
        of(tmp_path)


def test_queries_are_in_the_order_of_their_numbers():
    assert sorted(["RF2", "Q10", "Q2", "RF1"], key=in_order) == ["RF1", "Q2", "Q10", "RF2"]


@pytest.mark.parametrize(
    ("wait", "io"),
    [("data file read", True), ("temporary file write", True), ("PAGEIOLATCH_SH", True), ("IO_COMPLETION", True),
     ("CXPACKET", False), ("SOS_SCHEDULER_YIELD", False), ("LCK_M_S", False)],
)  # fmt: skip
def test_which_waits_are_for_io(wait, io):
    assert is_io(wait) is io


# The formulas of the figures, against numbers worked out by hand and what must hold for any times.


TIMES = st.lists(st.floats(0.001, 10_000), min_size=22, max_size=22)


def test_power_is_by_the_geometric_mean_of_queries_and_refreshes():
    assert power_metric(1, [2.0] * 22, [2.0, 2.0]) == pytest.approx(1800)
    assert power_metric(10, [2.0] * 22) == pytest.approx(18_000)
    assert power_metric(1, [1.0] * 21 + [8.0], [1.0, 8.0]) == pytest.approx(3600 / 8 ** (2 / 24))


def test_a_query_is_never_counted_as_more_than_a_thousand_times_faster_than_the_slowest():
    assert counted_s([500.0] + [0.1] * 21) == [500.0] + [0.5] * 21
    assert counted_s([100.0] + [0.1] * 21) == [100.0] + [0.1] * 21
    assert power_metric(1, [500.0] + [0.1] * 21) == pytest.approx(3600 / (500 * 0.5**21) ** (1 / 22))
    assert power_metric(1, [500.0] + [1.0] * 21, [0.1, 0.1]) == pytest.approx(3600 / (500 * 0.01) ** (1 / 24)), (
        "queries alone"
    )


@pytest.mark.parametrize(("seconds", "counts"), [(0.0, 0.1), (0.04, 0.1), (0.14, 0.1), (0.16, 0.2), (23.74, 23.7)])
def test_times_count_in_tenths_and_never_as_nothing(seconds, counts):
    assert rounded(seconds) == pytest.approx(counts)


def test_a_power_run_has_22_queries():
    with pytest.raises(ValueError, match="21 queries, not 22"):
        power_metric(1, [1.0] * 21)


def test_throughput_is_queries_per_hour():
    assert throughput_metric(1, streams=2, elapsed_s=158.4) == pytest.approx(1000)
    assert throughput_metric(10, streams=2, elapsed_s=158.4) == pytest.approx(10_000)
    assert composite_metric(400, 900) == pytest.approx(600)


@given(TIMES, st.floats(1.01, 5))
def test_whoever_is_slower_everywhere_has_no_more_power(times, times_slower):
    assert power_metric(1, [one * times_slower for one in times]) <= power_metric(1, times) * (1 + 1e-9)


@given(TIMES)
def test_power_lies_between_that_of_the_fastest_and_of_the_slowest(times):
    found = power_metric(1, times)
    assert 3600 / rounded(max(times)) * (1 - 1e-9) <= found <= 3600 / min(counted_s(times)) * (1 + 1e-9)
