"""How a load reads: figures of traces that are known, and shares of no fewer than 30 samples."""

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from support.synthetic import Truth, make_run
from support.traces import FILES, MIB, PAGE, READ, SYNC, TRUTH, WRITE, make_pools, make_traced, put_samples, put_trace

from stallmark.analysis.finding import Severity
from stallmark.analysis.locality import (
    PUBLISHED,
    Locality,
    LocalityKind,
    PoolReads,
    Quantity,
    characterise,
    reads_at,
    slope_of,
)
from stallmark.analysis.locality_trace import COLD, stack_distances
from stallmark.errors import StallmarkError
from stallmark.record.manifest.workload import Workload
from stallmark.record.reader import find_records
from stallmark.stats.thresholds import SHARE_SAMPLES
from stallmark.transactions import WORKLOADS, find_workload

pytestmark = pytest.mark.thorough

PAGES = sum(file[4] for file in FILES) // PAGE
BEGIN, END = 5, 35  # of the measured interval


def read(*folders) -> Locality:
    return characterise(find_records(folders))


def kinds(found: Locality) -> set[LocalityKind]:
    return {one.kind for one in [*found.findings, *found.cautions]}


def traced(folder, seconds, files, pages, **more):
    made = make_run(folder, replace(TRUTH, pool_bytes=8 * MIB))
    return read(put_trace(made, np.asarray(seconds), np.asarray(files), np.asarray(pages), **more)).traced


def test_flash_answers_what_is_read_again_within_its_size(tmp_path):
    """A cycle over 2 % of all pages: flash of 4 % answers all of it once it is warm, one of 1 % nothing."""
    cycle = PAGES // 50
    seconds = np.linspace(0, END, 4 * cycle, endpoint=False)
    found = traced(tmp_path / "run", seconds, np.zeros(4 * cycle, int), np.arange(4 * cycle) % cycle)
    answers = {one.share: (one.least, one.most) for one in found.flash}
    assert answers[0.01] == (0, 0)
    assert answers[0.04] == answers[0.64] == (1, 1)
    assert found.judged_by == pytest.approx(2 * cycle * 30 / 35 * 7 / 6, rel=0.3)
    assert found.footprint[-1][1] == cycle * PAGE and found.footprint[0][1] == 0
    assert found.footprint_share == pytest.approx(0.02, rel=0.01)


def test_a_page_met_first_is_a_miss_only_of_flash_that_cannot_hold_it_any_more(tmp_path):
    """A scan that reads nothing twice: of flash that is smaller than what was read nothing is unknown."""
    count = PAGES // 4
    found = traced(tmp_path / "run", np.linspace(0, END, count, endpoint=False), np.full(count, 2), np.arange(count))
    answers = {one.share: (one.least, one.most) for one in found.flash}
    assert answers[0.08] == (0, 0)  # a half of it is warmed by 14 % of the data
    assert answers[0.32] == (0, 1)  # anything may have been read before the trace


def test_reads_of_several_pages_and_their_order_in_a_file(tmp_path):
    seconds = np.linspace(BEGIN, END, 400, endpoint=False)
    pages = np.arange(400) * 2
    found = traced(tmp_path / "run", seconds, np.zeros(400, int), pages, count=2)
    assert [(one.size_bytes, one.reads, one.share) for one in found.sizes] == [(2 * PAGE, 400, 1)]
    assert found.footprint[-1][1] == 800 * PAGE
    assert found.sequential_share == pytest.approx(399 / 400)
    other = traced(tmp_path / "other", seconds, np.zeros(400, int), pages, count=2, pid=np.arange(400) % 2)
    assert other.sequential_share == 0


def test_writes_and_syncs_are_no_reads_and_reads_outside_the_interval_do_not_count(tmp_path):
    seconds = np.r_[np.full(40, 1.0), np.full(60, 10.0), np.full(30, 20.0), np.full(7, 21.0), np.full(50, 35.5)]
    op = np.r_[np.full(100, READ), np.full(30, WRITE), np.full(7, SYNC), np.full(50, READ)]
    found = traced(tmp_path / "run", seconds, np.ones(187, int), np.arange(187), op=op)
    assert (found.reads, found.writes, found.write_bytes) == (60, 30, 30 * PAGE)
    [index] = found.tables
    assert (index.table, index.share, index.index_share) == ("brokerage.trade", 1, 1)
    assert index.data_share == pytest.approx(0.4)


def test_reads_of_a_file_that_no_table_is_known_to_have_are_told_apart(tmp_path):
    found = traced(tmp_path / "run", np.linspace(6, 34, 100), np.r_[np.zeros(60, int), np.full(40, 3)], np.arange(100))
    assert [(one.table, one.share) for one in found.tables] == [("brokerage.trade", 0.6), (None, 0.4)]


def test_the_hottest_pages_are_chosen_beforehand_or_afterwards(tmp_path):
    """Each half reads other pages, so nothing that was hot before is read later."""
    hot = PAGES // 100
    count = 8 * hot
    early, late = np.arange(count) % hot, hot + np.arange(count) % hot
    seconds = np.r_[np.linspace(BEGIN, 19.9, count), np.linspace(20.1, END - 0.1, count)]
    pages, extents = traced(tmp_path / "run", seconds, np.full(2 * count, 2), np.r_[early, late]).skew
    assert pages.units == PAGES and extents.units == PAGES * PAGE // MIB
    beforehand, afterwards = pages.hottest["0.01"]
    assert beforehand == 0 and afterwards == pytest.approx(0.5, abs=0.01)
    assert pages.hottest["0.1"] == (0, 1)
    assert pages.curve[-1] == (1, 0, 1)


def test_uniform_reads_look_skewed_only_afterwards(tmp_path):
    chance = np.random.default_rng(2)
    found = traced(
        tmp_path / "run", np.sort(chance.uniform(BEGIN, END, 20_000)), np.full(20_000, 2),
        chance.integers(0, 192 * MIB // PAGE, 20_000),
    )  # fmt: skip
    beforehand, afterwards = found.skew[0].hottest["0.1"]
    assert beforehand == pytest.approx(0.1 / 0.6, rel=0.1)
    assert afterwards > 1.3 * beforehand


@pytest.mark.parametrize("reads", [0, 1, SHARE_SAMPLES - 1])
def test_no_share_is_of_fewer_than_thirty_samples(tmp_path, reads):
    made = make_run(tmp_path / "run", replace(TRUTH, pool_bytes=8 * MIB))
    put_trace(made, np.linspace(6, 34, reads), np.zeros(reads, int), np.arange(reads))
    found = read(made)
    assert LocalityKind.FEW_READS in kinds(found)
    assert not kinds(found) & {
        LocalityKind.FLASH, LocalityKind.SKEW, LocalityKind.TABLES, LocalityKind.FOOTPRINT, LocalityKind.SHORT,
    }  # fmt: skip
    known = found.traced
    shares = [one.least for one in known.flash] + [one.most for one in known.flash]
    shares += [end for one in known.skew for both in one.hottest.values() for end in both]
    shares += [part for one in known.tables for part in (one.share, one.index_share)]
    shares += [one.share for one in known.sizes] + [known.sequential_share, known.once_share]
    assert set(shares) <= {None} and not known.skew[0].curve


def test_types_that_were_sampled_too_rarely_have_no_share(tmp_path):
    made = make_run(tmp_path / "run", TRUTH)
    put_samples(made, trade_status=SHARE_SAMPLES, market_watch=SHARE_SAMPLES - 1)
    known = {one.transaction: one.share for one in read(made).by_transaction}
    assert known["market_watch"] is None and known["trade_status"] is not None


def test_a_run_at_each_size_gives_the_slope_and_the_error_of_the_estimate(tmp_path):
    found = read(make_pools(tmp_path))
    assert [round(one.share, 2) for one in found.pools] == [0.02, 0.04, 0.08, 0.16, 0.32, 0.64]
    assert found.slope.slope == pytest.approx(-0.5, abs=0.03) and found.slope.deviation < 0.05
    assert (found.slope.sizes, found.slope.estimated) == (5, 0)
    assert all(one.error is not None for one in found.pools[1:]) and found.pools[0].error is None
    assert {LocalityKind.ERROR, LocalityKind.READS} <= kinds(found)
    assert not kinds(found) & {LocalityKind.ESTIMATED, LocalityKind.FEW_SIZES, LocalityKind.NO_TRACE}


def test_one_traced_run_is_estimated_beyond_its_pool(tmp_path):
    found = read(make_traced(tmp_path / "run"))
    assert [one.measured is None for one in found.pools] == [False] + [True] * 5
    ends = [(one.most, one.least) for one in found.pools[1:]]
    assert all(high >= low for high, low in ends) and ends == sorted(ends, reverse=True)
    assert found.slope.estimated == 4
    assert LocalityKind.ESTIMATED in kinds(found) and LocalityKind.ERROR not in kinds(found)


def test_without_a_trace_its_parts_are_missing(tmp_path):
    folders = [make_run(tmp_path / f"{n}", replace(TRUTH, pool_bytes=n * 16 * MIB, sequence=n)) for n in (1, 2, 4)]
    found = read(*folders)
    assert found.traced is None and found.io.reads > 0 and found.slope is not None
    assert {LocalityKind.READS, LocalityKind.NO_TRACE} <= kinds(found)
    assert not kinds(found) & {LocalityKind.FLASH, LocalityKind.ESTIMATED}
    alone = read(folders[0])
    assert alone.slope is None and LocalityKind.FEW_SIZES in kinds(alone)


def test_lost_ios_and_a_trace_unlike_the_counters_are_told(tmp_path):
    found = make_run(tmp_path / "run", replace(TRUTH, pool_bytes=8 * MIB))
    put_trace(found, np.linspace(6, 34, 1000), np.zeros(1000, int), np.arange(1000), lost=7)
    assert {LocalityKind.LOST, LocalityKind.UNLIKE_COUNTED} <= kinds(read(found))
    rate = read(found).io.reads / read(found).io.seconds
    whole = make_traced(tmp_path / "whole", round(rate * TRUTH.seconds / 0.9))  # one in ten is a write
    assert not kinds(read(whole)) & {LocalityKind.LOST, LocalityKind.UNLIKE_COUNTED}


def test_reads_that_are_not_known_are_told(tmp_path):
    off = make_run(tmp_path / "run", replace(TRUTH, off=("server_io",)))
    found = read(off)
    assert found.findings[0].kind is LocalityKind.NOT_MEASURED and found.findings[0].severity is Severity.CAUTION
    assert found.pools == [] and LocalityKind.FEW_SIZES not in kinds(found)


def test_a_run_that_must_not_be_compared_is_told_with_its_reason(tmp_path):
    made = make_run(tmp_path / "run", replace(TRUTH, foreign_reads_per_second=5000))
    assert LocalityKind.INVALID in kinds(read(made))
    assert LocalityKind.INVALID not in kinds(read(make_run(tmp_path / "well", TRUTH)))


def test_runs_of_two_loads_are_refused(tmp_path):
    make_run(tmp_path / "brokerage", TRUTH)
    make_run(tmp_path / "bank", Truth(sequence=2))
    with pytest.raises(StallmarkError, match="several loads"):
        read(tmp_path)


@given(
    st.lists(st.floats(0.021, 0.31), min_size=3, max_size=8, unique_by=lambda one: round(one, 2)),
    st.floats(-1.5, 0.2),
    st.floats(0.5, 50),
)
def test_the_slope_of_a_power_law_is_its_power(shares, power, level):
    pools = [PoolReads(one, 1, 1, level * one**power) for one in sorted(shares)]
    found = slope_of([*pools, PoolReads(0.64, 1, 1, 1e-9)])
    assert found.slope == pytest.approx(power, abs=1e-6) and found.deviation < 1e-6
    assert found.level == pytest.approx(level)
    middle = (pools[0].share * pools[-1].share) ** 0.5
    assert reads_at(pools, pools[0].share / 2) is None
    assert reads_at(pools, pools[0].share) == pytest.approx(pools[0].measured)
    assert min(pools[0].measured, pools[-1].measured) * 0.999 <= reads_at(pools, middle)


def test_published_figures_are_of_the_brokerage_alone():
    published = {name: PUBLISHED.get(find_workload(name).derived_from, ()) for name in WORKLOADS}
    assert {name for name, figures in published.items() if figures} == {"brokerage"} and None not in PUBLISHED
    older = {name: Workload(name=name).benchmark for name in ("bank", "brokerage", "mail", "warehouse", "bank+mail")}
    assert older == {name: find_workload(name).derived_from for name in older}
    by_quantity = {one.quantity: one for one in published["brokerage"]}
    assert set(by_quantity) == set(Quantity) and by_quantity[Quantity.SLOPE].low == -0.5
    assert by_quantity[Quantity.READ_WRITE].low == 9.7
    assert (by_quantity[Quantity.READ_BYTES].low, by_quantity[Quantity.READ_BYTES].high) == (8100, 8200)
    assert dict(by_quantity[Quantity.MISSES].points) == {
        0.027: 0.666, 0.059: 0.56, 0.076: 0.47, 0.083: 0.44, 0.088: 0.41, 0.53: 0.001,
    }  # fmt: skip
    assert all(one.source and one.of for one in published["brokerage"])


# Stack distances, against a list that is kept in the order of use


def naive(pages: list[int]) -> list[int]:
    stack: list[int] = []
    found = []
    for page in pages:
        found.append(stack.index(page) + 1 if page in stack else COLD)
        if page in stack:
            stack.remove(page)
        stack.insert(0, page)
    return found


@given(st.lists(st.integers(0, 12), max_size=200) | st.lists(st.integers(0, 2**40), max_size=60))
def test_distances_are_those_of_a_stack(pages: list[int]):
    assert stack_distances(np.array(pages, dtype=np.int64)).tolist() == naive(pages)


@given(st.lists(st.integers(0, 30), max_size=300), st.integers(1, 40))
def test_a_cache_answers_what_is_no_further_than_its_size(pages: list[int], size: int):
    cache: list[int] = []
    hits = 0
    for page in pages:
        hits += page in cache
        cache = [page, *(one for one in cache if one != page)][:size]
    distances = stack_distances(np.array(pages, dtype=np.int64))
    assert ((distances != COLD) & (distances <= size)).sum() == hits
