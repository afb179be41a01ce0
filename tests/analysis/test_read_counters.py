"""Counters read a batch at a time, against the same rules on a whole table; and as many groups as there are files."""

from dataclasses import replace
from io import StringIO
from itertools import pairwise
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st
from rich.console import Console
from support.comparisons import QUIET, made, only, with_step
from support.findings import facts_of
from support.pages import render, table
from support.synthetic import Step, Truth, make_run
from support.synthetic_steps import WAITS
from support.tables import InMemory, get, put
from support.whole_counters import whole_counters

from stallmark.analysis.compare.summary import CheckKind, PairKind
from stallmark.analysis.experiment import summarise
from stallmark.analysis.read import counters
from stallmark.analysis.read.counters import Counters, read_counters
from stallmark.analysis.read.server_io import read_server_io
from stallmark.analysis.read.times import Interval, ReadKind
from stallmark.analysis.step_summary import StepSummary
from stallmark.record.reader import Record
from stallmark.report.experiment import experiment_in_json
from stallmark.stats.thresholds import GAP_S, REPORT_DELAY_S

pytestmark = pytest.mark.thorough

COLUMNS = ["reads", "stall_ms", "syncs", "nowhere"]
VALUE = st.one_of(st.none(), st.integers(0, 50), st.integers(900, 1000))


@st.composite
def tables(draw: st.DrawFn, moves: bool | None = None) -> pa.Table:
    """Tables of few entities that come and go, begin anew, fall, and lack values for a while, or for ever. In calm ones
    most samples have all entities in one order, and no counter falls."""
    entities = draw(st.lists(st.sampled_from("abcde"), min_size=1, max_size=4, unique=True))
    without = draw(st.sets(st.sampled_from(entities)))
    calm = draw(st.booleans())
    moves = draw(st.booleans()) if moves is None else moves  # whether an entity is in several groups
    rows, t, totals = [], 0.0, dict.fromkeys(entities, 100)
    for _ in range(draw(st.integers(1, 25))):
        t += draw(st.sampled_from([0.5, 1.0, 1.0, 1.0, 4.0]))
        disturbed = not calm or draw(st.integers(0, 5)) == 5
        some = st.lists(st.sampled_from(entities), min_size=1, max_size=4, unique=True)
        for entity in draw(some) if disturbed else entities:
            totals[entity] += draw(st.integers(0, 30))
            total = totals[entity]
            rows.append({
                "t": t,
                "entity": entity,
                "kind": draw(st.sampled_from(["data", "wal", None])) if moves else "data" if entity < "c" else "wal",
                "epoch": draw(st.sampled_from(["x", "x", "x", "x", "x", "y"])) if disturbed else "x",
                "reads": draw(VALUE) if disturbed and draw(st.booleans()) else total,
                "stall_ms": None if entity in without else total * 0.25,
                "syncs": draw(st.one_of(st.none(), st.just(total))) if disturbed else total,
            })  # fmt: skip
    return pa.Table.from_pylist(rows)


WHOLE = {"t": [0, 0, 1, 1, 2, 2, 3, 3, 4, 4], "entity": "ababababab", "kind": "dwdwdwdwdw", "epoch": "xxxxxxxxxx"}
"""Five samples of two entities, which the second batch adds as a grid: both entities are known by then."""


@pytest.mark.parametrize(
    "changed",
    [
        {},
        {"entity": "ababbababa"},
        {"entity": "ababababac"},
        {"entity": "aaaaaaaaaa"},
        {"kind": "dwdwdwwdwd"},
        {"epoch": "xxxxxxyyyy"},
        {"epoch": "xxyyyyyyyy"},
        {"t": [0, 0, 1, 1, 2, 2, 2, 2, 4, 4]},
        {"t": [0, 0, 1, 1, 2, 2, 3, 4, 5, 5]},
        {"reads": {3: None}},
        {"reads": {5: None}},
        {"reads": {1: None, 3: None}},
        {"reads": {6: 3}},
    ],
    ids=str,
)
@pytest.mark.parametrize("sizes", [[4, 6], [6, 4]])
@pytest.mark.parametrize("group", [None, "kind", "entity"])
def test_rows_that_only_look_like_whole_samples(group, sizes, changed, monkeypatch):
    """Another order, an entity twice, another one, a new group or epoch, samples of other lengths, nulls, a fall."""
    grids = []
    add_grid = counters.Samples.add_grid
    monkeypatch.setattr(counters.Samples, "add_grid", lambda *given: grids.append(given) or add_grid(*given))
    reads = [20 * number + number % 3 for number in range(10)]
    for place, value in changed.get("reads", {}).items():
        reads[place] = value
    columns = {name: list(changed.get(name, values)) for name, values in WHOLE.items()}
    rows = pa.table(columns | {"t": np.array(columns["t"], float), "reads": pa.array(reads, pa.int64())})
    found = read_counters(InMemory({"any": rows}, sizes), "any", ["reads"], group)
    expected = whole_counters(rows, ["reads"], group, "entity", _longest_s(rows), 0.0)
    assert found.keys() == expected.keys()
    for name, one in found.items():
        _same(one, expected[name])
    if not changed:
        assert grids


SIZES = st.lists(st.integers(1, 12), min_size=1, max_size=4)
GROUPS = st.sampled_from([None, "kind", "entity"])


@given(tables(), SIZES, GROUPS, st.sampled_from([0.0, 0.9]))
def test_batches_give_the_numbers_of_the_whole_table(rows, sizes, group, delay_s):
    found = read_counters(InMemory({"any": rows}, sizes), "any", COLUMNS, group, delay_s=delay_s)
    expected = whole_counters(rows, COLUMNS, group, "entity", _longest_s(rows), delay_s)
    assert found.keys() == expected.keys()
    for name, one in found.items():
        _same(one, expected[name])


@given(tables(), SIZES, st.sets(st.sampled_from(["data", "wal", "other"]), min_size=1))
def test_groups_that_are_not_asked_for_change_no_figure_of_the_others(rows, sizes, only):
    found = read_counters(InMemory({"any": rows}, sizes), "any", COLUMNS, "kind", only=sorted(only))
    expected = whole_counters(rows, COLUMNS, "kind", "entity", _longest_s(rows), 0.0)
    assert found.keys() == expected.keys() & only
    for name, one in found.items():
        _same(one, expected[name])


@given(tables(), SIZES, GROUPS, st.lists(st.floats(-2, 40), min_size=2, max_size=6), st.integers(0, 20))
def test_what_is_left_out_changes_no_figure_of_the_intervals_asked_for(rows, sizes, group, ends, many):
    intervals = [Interval(0, *sorted(pair), 1.0, False) for pair in pairwise(ends)]
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(counters, "MANY", many)
        found = read_counters(InMemory({"any": rows}, sizes), "any", COLUMNS, group, within=intervals)
    expected = whole_counters(rows, COLUMNS, group, "entity", _longest_s(rows), 0.0)
    assert found.keys() == expected.keys()
    for name, one in found.items():
        for interval in intervals:
            _alike(one, expected[name], interval)


@given(tables(moves=False), SIZES, st.lists(st.floats(-2, 40), min_size=2, max_size=6), st.integers(0, 20), st.data())
def test_one_reading_gives_the_counters_by_kind_and_by_file_and_when_files_grew(rows, sizes, ends, many, data):
    intervals = [Interval(0, *sorted(pair), 1.0, False) for pair in pairwise(ends)]
    rows = rows.rename_columns({"stall_ms": "read_stall_ms"})
    size = data.draw(st.lists(st.sampled_from([8, 16]), min_size=len(rows), max_size=len(rows)))
    rows = rows.append_column("size_bytes", pa.array(size, pa.int64()))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(counters, "MANY", many)
        patch.setattr(counters, "PARTS", many)
        record = InMemory({"server_io": rows}, sizes)
        found = read_server_io(record, intervals)
    delay_s = REPORT_DELAY_S.get(record.manifest.server.product, 0.0)
    columns = ["reads", "read_stall_ms", "syncs"]
    kinds = whole_counters(rows, columns, "kind", "entity", _longest_s(rows), delay_s)
    files = whole_counters(rows, columns[:2], "entity", "entity", _longest_s(rows), delay_s)
    assert found.kinds.keys() == kinds.keys() and found.entities.keys() == files.keys()
    for name, one in found.kinds.items():
        _same(one, kinds[name])
    for name, one in found.entities.items():
        for interval in intervals:
            _alike(one, files[name], interval)
    assert found.file_kinds == {row["entity"]: row["kind"] for row in rows.to_pylist()}
    last, grown = {}, {}
    for row in rows.to_pylist():
        epoch, size = last.get(row["entity"], (None, 0))
        if epoch == row["epoch"] and row["size_bytes"] > size:
            grown.setdefault(row["entity"], []).append(row["t"])
        last[row["entity"]] = row["epoch"], row["size_bytes"]
    assert {name: times.tolist() for name, times in found.growths.items()} == grown


@pytest.mark.parametrize("sizes", [[1], [2], [9]])
def test_a_file_that_changes_its_kind_has_not_read_its_whole_total_anew(sizes):
    rows = [
        {"t": float(t), "entity": name, "kind": kind, "epoch": "x", "reads": reads, "size_bytes": 8}
        for t, a, moved in ((0, 1000, "data"), (1, 1010, "data"), (2, 1030, "foreign"), (3, 1070, "foreign"))
        for name, kind, reads in (("a", moved, a), ("b", "data", 50 + t), ("c", "foreign", 90 + t))
    ]
    found = read_server_io(InMemory({"server_io": pa.Table.from_pylist(rows)}, sizes), [Interval(0, 0, 3, 3.0, False)])
    assert sum(float(one.totals["reads"][-1]) for one in found.kinds.values()) == 70 + 3 + 3
    assert found.kinds["foreign"].totals["reads"][-1] >= 20 + 40 + 3
    assert found.entities["a"].delta(0, 3)["reads"] == 70


def _same(one: Counters, other: Counters) -> None:
    assert one.t.tolist() == other.t.tolist()
    assert one.breaks.tolist() == other.breaks.tolist()
    assert one.gaps.tolist() == other.gaps.tolist()
    assert one.totals.keys() == other.totals.keys()
    for column, total in one.totals.items():
        assert total == pytest.approx(other.totals[column], rel=1e-9, abs=1e-9)


def _alike(one: Counters, other: Counters, interval: Interval) -> None:
    mine, theirs = (of.delta(interval.begin, interval.end) for of in (one, other))
    assert (mine is None) == (theirs is None)
    if mine and theirs:
        assert (mine.begin, mine.end, mine.broken) == (theirs.begin, theirs.end, theirs.broken)
        assert mine.values == pytest.approx(theirs.values, rel=1e-9, abs=1e-9)


def _longest_s(rows: pa.Table) -> dict[float, float]:
    """Return how far from the one before it a sample is no gap, by its time: from the nine distances around it."""
    times = np.unique(rows["t"].to_numpy())
    apart = np.diff(times).tolist()
    longest = {}
    for place, t in enumerate(times[1:]):
        first = max(0, min(place - 4, len(apart) - 9))
        around = sorted(apart[first : first + 9])
        usual = around[(len(around) - 1) // 2] if len(apart) > 1 else 0.0
        longest[t] = GAP_S * max(1.0, usual)
    return longest


@pytest.mark.parametrize("group", [None, "entity"])
def test_samples_that_are_kept_do_not_grow_with_rows(group, monkeypatch):
    """Ten times the samples of fifty files: as many stay."""
    monkeypatch.setattr(counters, "MANY", 1000)
    kept = []
    for times in (60, 600):
        files = [f"f{number}" for number in range(50)]
        rows = pa.table({
            "t": np.repeat(np.arange(float(times)), len(files)),
            "entity": files * times,
            "reads": np.repeat(np.arange(times) * 10, len(files)),
        })  # fmt: skip
        interval = Interval(0, 10, 30, 20.0, False)
        found = read_counters(InMemory({"any": rows}, [1000]), "any", ["reads"], group, within=[interval])
        kept.append(sum(len(one.t) for one in found.values()))
        for one in found.values():
            assert one.delta(10, 30)["reads"] == 200 * (1 if group else len(files))
    assert kept[0] == kept[1] <= 10 * len(found)


def test_more_texts_than_a_short_number_holds():
    """A long run has more plans than 32,767."""
    count = 40_000
    rows = pa.table({"t": np.zeros(count), "entity": [f"plan {n}" for n in range(count)], "reads": np.ones(count)})
    assert len(read_counters(InMemory({"any": rows}, [1 << 16]), "any", ["reads"], "entity", within=[])) == count


# Views of I/O that answer late: figures with their uncertainty, and no verdict within it.


TWICE = Truth(steps=(Step(30), Step(60)), measured_s=20)


def late(folder: Path, truth: Truth, every: int = 4) -> Path:
    """Return a run whose view of files was read every few seconds, although planned every second."""
    made_run = make_run(folder, truth)
    rows = get(made_run, "server_io")
    kept = np.floor(rows["t"].to_numpy()) % every == 0
    return put(made_run, "server_io", rows.filter(pa.array(kept)))


def first_step(folder: Path) -> StepSummary:
    return summarise([Record(folder)]).runs[0].steps[0]


def test_figures_of_few_samples_are_given_with_their_uncertainty(tmp_path):
    step = first_step(late(tmp_path / "late", TWICE))
    dense = first_step(make_run(tmp_path / "dense", TWICE))
    assert dense.storage.uncertainty == 0 and not facts_of(dense.validity.gaps, ReadKind.FEW_SAMPLES)
    assert step.storage.uncertainty == pytest.approx(0.2, abs=0.01)
    [few] = facts_of(step.validity.gaps, ReadKind.FEW_SAMPLES)
    assert few["seconds"] == pytest.approx(4) and few["measured_s"] == 20
    for name in ("reads", "writes", "read_bytes"):
        assert getattr(step.storage.data, name) == pytest.approx(getattr(dense.storage.data, name), rel=0.2)
    assert step.storage.data.read_ms == pytest.approx(dense.storage.data.read_ms, rel=0.02)
    assert not step.validity.invalid


def test_the_uncertainty_stands_in_terminal_page_and_json(tmp_path):
    experiment = summarise([Record(late(tmp_path / "late", TWICE))])
    console = Console(width=4000, file=StringIO(), record=True)
    console.print(table(experiment))
    shown, page = console.export_text(), render(experiment)
    assert "±" in shown and "20 %" in shown and "few samples" in shown and "few samples" in page
    told = experiment_in_json(experiment)
    assert told["runs"][0]["steps"][0]["data_io"]["uncertainty"] == pytest.approx(0.2, abs=0.01)


@pytest.mark.parametrize(("device_share", "above"), [(0.1, True), (0.85, False)])
def test_time_above_the_device_is_more_than_few_samples_leave_open(tmp_path, device_share, above):
    real = {"name": "vda", "model": None, "rotational": True}
    truth = Truth(
        read_ms=27,
        device_share=device_share,
        waits=WAITS,
        emulated=False,
        device=real,
        steps=(Step(30), Step(30)),
        measured_s=20,
    )
    assert first_step(late(tmp_path / "late", truth)).cause.budget.is_above("read") is above


@pytest.mark.parametrize(("uncertainty", "passed"), [(None, False), (0.2, None), (0.01, False)])
def test_reads_that_differ_less_than_few_samples_leave_open_are_not_known_to_differ(sound, uncertainty, passed):
    runs = [
        with_step(
            run,
            reads_per_transaction=2.0 + (0.6 if run.steps[0].variant == "B" else 0) + run.manifest.repeat / 100,
            data_io=replace(run.steps[0].storage.data, uncertainty=uncertainty),
        )
        for run in made(sound, **QUIET)
    ]
    pair = only(runs)
    [check] = [one for one in pair.checks if one.kind is CheckKind.READS]
    assert check.passed is passed
    [reads] = [one for one in pair.others if one.name == "reads per transaction"]
    assert reads.is_shown is (False if passed is None else None), "sides that are not comparable have no ratio"
    if passed is None:
        assert any(CheckKind.READS in facts["checks"] for facts in facts_of(pair.cautions, PairKind.CHECKS_UNKNOWN))
