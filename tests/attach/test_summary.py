"""External counters: what they measure, how they go with TPS, and whether a clock is off."""

import json
import shutil
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from support import external_files
from support.pages import render
from support.synthetic import Step, Truth, make_run

from stallmark.analysis.experiment import summarise
from stallmark.analysis.read.times import Interval
from stallmark.attach.attach import Request, Wanted, attach
from stallmark.attach.section import clocks, correlations, figures, hints
from stallmark.attach.summary import Sampled, choose, correlate, kind_of
from stallmark.errors import StallmarkError
from stallmark.record.reader import Record
from stallmark.report.experiment import experiment_in_json
from stallmark.stats.inference import correlate_changes

pytestmark = pytest.mark.thorough

TRUTH = Truth(warm_up_s=5, noise=0.1, steps=(Step(10, 330.0, name="10"), Step(30, 520.0, name="30")), measured_s=60)


@pytest.fixture(scope="module")
def made(tmp_path_factory) -> Path:
    """The record that every file is attached to, each to a copy of it."""
    return make_run(tmp_path_factory.mktemp("made") / "run", TRUTH)


@pytest.fixture
def copied(made, tmp_path) -> Path:
    return Path(shutil.copytree(made, tmp_path / "run"))


@pytest.fixture(scope="module")
def perfmon_apart(made, tmp_path_factory):
    """A clock that is off by 12 s, of which the user corrected 3 the wrong way."""
    run = shutil.copytree(made, tmp_path_factory.mktemp("apart") / "run")
    return attached(Path(run), external_files.perfmon, clock_s=12, offset_s=3.0)


def attached(run: Path, write: external_files.Write, every: int = 1, clock_s: float = 0.0, **request):
    """The summary of a run with one file attached."""
    ends, latency = external_files.disk_of(run, every, clock_s, around_s=80)
    file = write(run.parent / "measured", ends, latency)
    attach([Record(run)], Wanted(file), Request(**request))
    return summarise([Record(run)])


@pytest.mark.parametrize(
    ("counter", "kind"),
    [
        ("PhysicalDisk Avg. Disk sec/Read", "read_latency"),
        ("LogicalDisk Avg. Disk sec/Write", "write_latency"),
        ("PhysicalDisk Avg. Disk sec/Transfer", "latency"),
        ("PhysicalDisk Disk Transfers/sec", "IOPS"),
        ("PhysicalDisk Disk Reads/sec", "read_IOPS"),
        ("PhysicalDisk Disk Bytes/sec", "throughput"),
        ("PhysicalDisk Disk Write Bytes/sec", "write_throughput"),
        ("PhysicalDisk Avg. Disk Queue Length", "queue"),
        ("PhysicalDisk Avg. Disk Bytes/Read", ""),
        ("PhysicalDisk % Disk Read Time", ""),
        ("PhysicalDisk Split IO/Sec", ""),
        ("SQLServer:Buffer Manager Buffer cache hit ratio", "cache_hits"),
        ("SQLServer:Buffer Manager Page reads/sec", ""),
        ("Memory Page Reads/sec", ""),
        ("Process IO Read Bytes/sec", ""),
        ("Network Interface Bytes Total/sec", ""),
        ("r_await", "read_latency"),
        ("d_await", ""),
        ("r/s", "read_IOPS"),
        ("rrqm/s", ""),
        ("wkB/s", "write_throughput"),
        ("aqu-sz", "queue"),
        ("rareq-sz", ""),
        ("disk tps", "IOPS"),
        ("disk await", "latency"),
        ("io io-writes wtps", "write_IOPS"),
        ("io io-discard dtps", ""),
        ("us/op (read)", "read_latency"),
        ("Queue us/op", ""),
        ("B/s (write)", "write_throughput"),
        ("op/s (read)", "read_IOPS"),
        ("Read Response Time", "read_latency"),
        ("Peak Read Response Time", ""),
        ("Total IO Rate", "IOPS"),
        ("Total Data Rate", "throughput"),
        ("Read Hits", "cache_hits"),
        ("usec_per_write_op", "write_latency"),
        ("reads_per_sec", "read_IOPS"),
    ],
)  # fmt: skip
def test_what_counters_say(counter, kind):
    assert kind_of(counter) == kind


def sampled(counter: str, value: float, instance: str = "sda", unit: str = "ms", source: str = "db1") -> Sampled:
    return Sampled(source, counter, instance, unit, np.arange(5.0), np.full(5, value))


def test_the_instance_that_did_most_is_drawn_and_not_the_total_of_all():
    counters = [
        *(sampled("r/s", v, i, "1/s") for i, v in (("sda", 10.0), ("nvme0n1", 900.0), ("_Total", 910.0))),
        *(sampled("r_await", v, i) for i, v in (("sda", 1.0), ("nvme0n1", 2.0), ("_Total", 1.9))),
    ]
    assert [(kind, one.instance) for kind, one in choose(counters)] == [
        ("read_latency", "nvme0n1"),
        ("IOPS", "nvme0n1"),
    ]


def test_reads_and_writes_make_iops_and_units_become_common_ones():
    chosen = dict(
        choose(
            [
                sampled("r/s", 10, unit="1/s"),
                sampled("w/s", 5, unit="1/s"),
                sampled("rkB/s", 1000, unit="KiB/s"),
                sampled("PhysicalDisk Avg. Disk sec/Read", 0.004, unit="s"),
            ]
        )
    )
    assert (chosen["IOPS"].counter, chosen["IOPS"].values[0]) == ("r/s + w/s", 15)
    assert (chosen["throughput"].unit, chosen["throughput"].values[0]) == ("MB/s", pytest.approx(1.024))
    assert (chosen["read_latency"].unit, chosen["read_latency"].values[0]) == ("ms", pytest.approx(4.0))


def test_at_most_six_are_drawn_the_rest_named_and_a_missing_table_is_said(copied):
    summary = attached(copied, external_files.perfmon)
    (run,) = summary.runs
    (source,) = run.external
    kinds = ["read_latency", "write_latency", "IOPS", "throughput", "queue"]
    assert [counter.kind for counter in source.counters] == kinds
    assert {counter.instance for counter in source.counters} == {"1 D:"}
    assert source.others == ["Memory Available MBytes"]
    (copied / "external_sql01.parquet").unlink()
    with pytest.raises(StallmarkError, match=r"external_sql01\.parquet is missing"):
        summarise([Record(copied)])


def test_iostat_s_busiest_device_is_drawn(copied):
    (run,) = attached(copied, external_files.iostat, zone="UTC").runs
    (source,) = run.external
    assert {counter.instance for counter in source.counters} == {"nvme0n1"}
    assert source.notes and source.hint is None


@pytest.mark.parametrize(("every", "n"), [(1, 118), (5, 22), (10, 10)])
def test_throughput_is_taken_over_the_intervals_between_samples(copied, every, n):
    """The disk's latency follows from TPS, so the correlation is nearly −1 at any interval; pairs that span the
    two steps, or the warm-up between them, are none."""
    (run,) = attached(copied, external_files.array_csv, every).runs
    (source,) = run.external
    counter = source.counters[0]
    whole = [(counter.t - every >= begin - 1e-6) & (counter.t <= end + 1e-6) for begin, end in ((5, 65), (70, 130))]
    assert counter.mean == pytest.approx(counter.values[whole[0] | whole[1]].mean())  # of measured intervals only
    found = counter.correlation
    assert source.interval_s == every and source.hint is None
    if found is None:
        assert n < 20
    else:
        assert found.n == pytest.approx(n, abs=2)
        assert found.high < -0.6


@given(st.integers(0, 10_000))
def test_at_one_second_it_is_the_plain_correlation_of_changes(seed):
    rng = np.random.default_rng(seed)
    tps, values = rng.normal(400, 20, 60), rng.normal(8, 1, 60)
    counter = Sampled("h", "c", "", "ms", np.arange(1.0, 61.0), values)
    found = correlate(counter, 1.0, tps, [Interval(0, 0, 60, 60.0, False)])
    plain = correlate_changes(tps, values, "", "", "ms")
    assert (found.n, found.r) == (plain.n, pytest.approx(plain.r))


@pytest.mark.parametrize("clock_s", [-37.0, 12.4, 58.0])
def test_a_clock_that_is_off_is_hinted_at_and_nothing_moved(copied, clock_s):
    (run,) = attached(copied, external_files.perfmon, clock_s=clock_s).runs
    (source,) = run.external
    lag = round(-clock_s)
    assert (source.hint.facts["lag_s"], source.hint.facts["offset_s"]) == (lag, lag)
    assert source.offset_s == 0
    assert abs(source.counters[0].correlation.r) < 0.4


def test_with_the_offset_there_is_no_hint(copied):
    (run,) = attached(copied, external_files.perfmon, clock_s=12.0, offset_s=-12.0).runs
    (source,) = run.external
    assert source.hint is None and source.counters[0].correlation.r < -0.8


@pytest.mark.thorough
def test_what_has_nothing_to_do_with_the_run_gives_no_hint(copied, tmp_path):
    """121 offsets are tried: the best of them is large by chance alone."""
    ends, latency = external_files.disk_of(copied, around_s=80)
    for seed in range(12):
        noise = np.random.default_rng(seed).normal(0.008, 0.001, len(latency)).clip(0.001)
        file = external_files.array_csv(tmp_path / "a.csv", ends, noise)
        attach([Record(copied)], Wanted(file), Request(name=f"noise {seed}"))
    (summary,) = summarise([Record(copied)]).runs
    assert [source.hint for source in summary.external] == [None] * 12


def test_for_machines_without_the_samples(perfmon_apart):
    text = json.dumps(experiment_in_json(perfmon_apart))
    (source,) = json.loads(text)["runs"][0]["external"]
    assert source["time_zone"].startswith("UTC+01:00, as the file says") and "--offset" in source["hint"]["sentence"]
    assert source["counters"][0].keys() == {
        "kind", "name", "instance", "unit", "mean", "correlation",
    }  # fmt: skip


def test_the_report_says_whose_clock_it_is(perfmon_apart):
    experiment = perfmon_apart
    (figure,) = figures(experiment)
    clock = "UTC+01:00, as the file says (bias -60 min, W. Europe Standard Time); +3 s added"
    assert clock in figure.reading
    assert clock in clocks(experiment).rows[0]
    assert [row[1] for row in correlations(experiment).rows][:2] == ["read latency", "write latency"]
    assert len(figure.plotly["data"]) == 6 and figure.emulated
    assert all(len(row) == len(figure.header) for row in figure.rows)
    page = render(experiment)
    assert 'id="external"' in page and "Measured elsewhere" in page and "<strong>Hint:</strong>" in page
    assert len(hints(experiment)) == 1


def test_names_from_files_are_no_mark_up(perfmon_apart):
    experiment = perfmon_apart
    source = replace(experiment.runs[0].external[0], name="<script>hurt()</script>")
    bad = replace(source.counters[0], name="<b>x</b>", instance="</script><i>")
    run = replace(experiment.runs[0], external=[replace(source, counters=[bad], others=["<u>y</u>"])])
    page = render(replace(experiment, runs=[run]))
    assert "<script>hurt" not in page and "<b>x" not in page and "</script><i>" not in page and "<u>y" not in page


def test_without_anything_attached_there_is_no_section(made):
    experiment = summarise([Record(made)])
    assert 'id="external"' not in render(experiment)
    assert clocks(experiment) is None and correlations(experiment) is None
