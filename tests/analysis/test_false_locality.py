"""Each kind of finding on how a load reads, beside records in which its sentence would be false, and is not told."""

from collections.abc import Callable, Iterator
from dataclasses import replace
from itertools import count
from pathlib import Path

import numpy as np
import pytest
from support.findings import facts_of
from support.manifests import changed
from support.synthetic import MIB, Step, make_run
from support.traces import FILES, PAGE, TRUTH, put_trace

from stallmark.analysis.locality import Locality, LocalityKind, characterise
from stallmark.record.reader import find_records

pytestmark = pytest.mark.thorough

BEGIN, END = 5, 35  # of the measured interval
PAGES = sum(file[4] for file in FILES) // PAGE
COUNTED = round(TRUTH.tps * TRUTH.reads_per_transaction * (END - BEGIN))
Case = Callable[[Path], Locality]


def run_of(folder: Path, share: float = 0.02, **truth) -> Path:
    """Write a run with a pool of this share of the data, which has no trace."""
    return make_run(folder, replace(TRUTH, pool_bytes=round(share * 320 * MIB), **truth))


def untraced(*shares: float, **truth) -> Case:
    """A load with runs at these sizes of the pool."""

    def read(folder: Path) -> Locality:
        for number, share in enumerate(shares or (0.02,), 1):
            run_of(folder / str(number), share, sequence=number, **truth)
        return characterise(find_records([folder]))

    return read


def traced(
    reads: int = 2000,
    share: float = 0.02,
    *,
    file: int = 0,
    pages: int = 500,
    lost: int = 0,
    beside: float | None = None,
) -> Case:
    """A load with a traced run, whose reads go round `pages` of a file, and one `beside` with a pool of this share."""

    def read(folder: Path) -> Locality:
        seconds = np.linspace(BEGIN, END, reads, endpoint=False)
        put_trace(run_of(folder / "1", share), seconds, np.full(reads, file), np.arange(reads) % pages, lost=lost)
        if beside:
            run_of(folder / "2", beside, sequence=2)
        return characterise(find_records([folder]))

    return read


SCAN = 10_000
CASES: dict[LocalityKind, tuple[Case, Case]] = {
    LocalityKind.READS: (traced(), untraced(off=("server_io",))),
    LocalityKind.NOT_MEASURED: (untraced(off=("server_io",)), untraced()),
    LocalityKind.FLASH: (traced(), traced(20)),
    LocalityKind.SKEW: (traced(), traced(20)),
    LocalityKind.FOOTPRINT: (traced(), traced(20)),
    LocalityKind.TABLES: (traced(), traced(file=3)),  # a file that no table is known to have
    LocalityKind.NO_TRACE: (untraced(), traced()),
    LocalityKind.FEW_READS: (traced(29), traced(30)),
    LocalityKind.ESTIMATED: (traced(), traced(share=0.9)),  # a pool that no size of flash goes beyond
    LocalityKind.ERROR: (traced(beside=0.08), traced(beside=0.02)),
    LocalityKind.SHORT: (traced(SCAN, pages=SCAN), traced(SCAN)),
    LocalityKind.LOST: (traced(lost=7), traced()),
    LocalityKind.UNLIKE_COUNTED: (traced(), traced(COUNTED)),
    LocalityKind.FEW_SIZES: (untraced(0.04, 0.08), untraced(0.04, 0.08, 0.16)),
    LocalityKind.INVALID: (untraced(foreign_reads_per_second=5000), untraced()),
}


@pytest.fixture
def folders(tmp_path) -> Iterator[Path]:
    return (tmp_path / str(number) for number in count())


@pytest.mark.parametrize("kind", [pytest.param(kind, id=str(kind)) for kind in CASES])
def test_a_sentence_that_would_be_false_is_not_told(kind, folders):
    true, false = ([*found.findings, *found.cautions] for found in (case(next(folders)) for case in CASES[kind]))
    assert kind in {one.kind for one in true} and kind not in {one.kind for one in false}


def test_a_run_with_several_steps_that_must_not_be_compared_is_one_run(tmp_path):
    steps = (Step(tps=100, name="few"), Step(users=60, tps=100, name="many"))
    found = untraced(steps=steps, foreign_reads_per_second=5000)(tmp_path)
    assert len(found.experiment.steps) == 2
    assert [len(facts["runs"]) for facts in facts_of(found.cautions, LocalityKind.INVALID)] == [1]


def test_a_trace_that_gives_no_figures_is_not_called_missing(tmp_path):
    assert facts_of(untraced()(tmp_path / "none").cautions, LocalityKind.NO_TRACE) == [{"unused": None}]
    traced()(tmp_path / "sizes")
    changed(tmp_path / "sizes" / "1", database={})
    found = characterise(find_records([tmp_path / "sizes"]))
    assert facts_of(found.cautions, LocalityKind.NO_TRACE) == [{"unused": "size"}]
    traced(beside=0.08)(tmp_path / "steps")
    changed(tmp_path / "steps" / "1", steps=[])
    found = characterise(find_records([tmp_path / "steps"]))
    assert facts_of(found.cautions, LocalityKind.NO_TRACE) == [{"unused": "interval"}]


def test_what_reads_per_transaction_lack_is_named(tmp_path):
    blind = untraced(off=("server_io",))(tmp_path / "blind")
    assert facts_of(blind.findings, LocalityKind.NOT_MEASURED) == [{"lacking": ["counters"]}]
    untraced()(tmp_path / "pool")
    changed(tmp_path / "pool" / "1", database={})
    found = characterise(find_records([tmp_path / "pool"]))
    assert facts_of(found.findings, LocalityKind.NOT_MEASURED) == [{"lacking": ["pool"]}]


@pytest.mark.parametrize(("share", "late"), [(0.1, False), (0.94, True), (1.06, True), (1.2, False)])
def test_late_reports_are_the_cause_of_what_they_can_explain(tmp_path, share, late):
    found = traced(round(COUNTED * share))(tmp_path)
    [facts] = facts_of(found.cautions, LocalityKind.UNLIKE_COUNTED)
    assert facts["reported_late"] is late
