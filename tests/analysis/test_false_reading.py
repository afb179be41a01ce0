"""Sentences on records that were read, of laws, and on predictions: beside a record in which it would be false.

As test_false_sentences.py: a case gives two summaries that differ in one thing. With the first the kind is told, with
the second, of which its sentence would be false, it is not.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from support import external_files
from support.flash_records import REAL, on_array
from support.manifests import changed, on
from support.steps import changed_step
from support.synthetic import EMULATED, MIB, Brokerage, Step, Truth, make_run
from support.synthetic_brokerage import CARDS
from support.synthetic_loads import alone_and_together, make_loads_run
from support.synthetic_queries import make_query_run
from support.synthetic_shapes import Shape, make_shaped_run
from support.synthetic_steps import STEADY, WAITS, only_step, step_of
from support.tables import get, put
from support.wording import kinds_in

from stallmark.analysis.attribution import wait_laws
from stallmark.analysis.experiment import summarise
from stallmark.analysis.finding import Kind, info
from stallmark.analysis.prediction import predict_throughputs
from stallmark.analysis.read.io_latency import HistogramSamples, summarise_io_latency
from stallmark.analysis.read.server_summary import IoSummary
from stallmark.analysis.read.server_views import ServerWait
from stallmark.analysis.read.statements import Dropped, QueryStore, State, Statements
from stallmark.analysis.read.throughput import Load
from stallmark.analysis.read.times import Interval, ReadKind
from stallmark.analysis.read.transactions import Errors, Key
from stallmark.analysis.step_summary import Law, LawKind, NoteKind, StepCause, StepSummary
from stallmark.attach.attach import Request, Wanted, attach
from stallmark.attach.summary import AttachKind
from stallmark.record.reader import LoadRecord, Record
from stallmark.report.text import sentence

pytestmark = pytest.mark.thorough

MINUTE = Interval(0, 0, 60, 60.0, False)


@dataclass(frozen=True)
class Given:
    """A step of known truth, and folders for others."""

    slow: StepSummary
    folder: Callable[[], Path]  # a new one


Summary = Callable[[Given], Any]
CASES: dict[Kind, tuple[Summary, Summary]] = {}


@pytest.fixture
def given(slow, tmp_path_factory) -> Given:
    return Given(slow, lambda: tmp_path_factory.mktemp("false"))


def of_truths(kind: Kind, true: Mapping[str, Any], false: Mapping[str, Any]) -> None:
    """Register the steps of records of these truths."""
    CASES[kind] = (
        lambda given: step_of(given.folder(), replace(STEADY, **true)),
        lambda given: step_of(given.folder(), replace(STEADY, **false)),
    )


# What was recorded. ------------------------------------------------------------------------------------------


def histogram(slots: int = 3, lost: float = 0.0, files_ms: float = 3.0) -> Any:
    """10,000 reads of 2 and 9 ms; the file counters' mean."""
    ios = {0: np.zeros(2), 1: np.array([9000.0, 1000.0])}
    dropped = np.array([0.0, lost])
    read = HistogramSamples(np.array([0.0, 60.0]), np.array([2.0, 9.0]), ios, np.full(2, slots), dropped, np.zeros(2))
    files = IoSummary("server", 60.0, 10_000, 8192, files_ms, files_ms, 0, 0, None, None, None, None)
    return summarise_io_latency({"read": {"": read}}, MINUTE, files, None, lambda database: (None, None))


CASES[ReadKind.HISTOGRAM_FULL] = lambda _: histogram(slots=2), lambda _: histogram()
CASES[ReadKind.HISTOGRAM_LOST_EVENTS] = lambda _: histogram(lost=900.0), lambda _: histogram(lost=9.0)
CASES[ReadKind.HISTOGRAM_UNIT_UNKNOWN] = lambda _: histogram(files_ms=90.0), lambda _: histogram()


def jumped(given: Given, jump_s: float) -> StepSummary:
    shape = Shape(clock_jump_at=20, clock_jump_s=jump_s)
    return only_step(make_shaped_run(given.folder() / "run", shape, STEADY))


CASES[ReadKind.CLOCK_JUMPED] = lambda given: jumped(given, 60.0), lambda given: jumped(given, 0.5)


def server_io(given: Given, change: Callable[[pa.Table], pa.Table]) -> StepSummary:
    """The step of a record with this change to the view of files."""
    folder = make_run(given.folder() / "run", STEADY)
    return only_step(put(folder, "server_io", change(get(folder, "server_io"))))


def without(begin: float, end: float) -> Callable[[pa.Table], pa.Table]:
    def change(rows: pa.Table) -> pa.Table:
        t = rows["t"].to_numpy()
        return rows.filter(pa.array((t < begin) | (t > end)))

    return change


def slow_calls(until: float) -> Callable[[pa.Table], pa.Table]:
    """Calls take 3 s up to a second; the interval begins at 5."""
    return lambda rows: rows.append_column("took_s", pa.array(np.where(rows["t"].to_numpy() < until, 3.0, 0.01)))


CASES[ReadKind.NOT_READ] = (
    lambda given: server_io(given, without(12, 25)),
    lambda given: server_io(given, without(0, 0)),
)
CASES[ReadKind.DATED_ROUGHLY] = (
    lambda given: server_io(given, slow_calls(8.0)),
    lambda given: server_io(given, slow_calls(2.0)),
)


def burst(share: float, retried: bool = True) -> Any:
    """In one second `share` of 100 calls fail, in another, of 10,000 calls, 500."""
    done = np.full(60, 10_000.0)
    done[30] = 100 * (1 - share)
    load = Load(60, {"transfer": {"committed": done, "rolled_back": np.zeros(60)}})
    failed = np.zeros(60)
    failed[[30, 40]] = 100 * share, 500
    key = Key("transfer", "deadlock", "40P01")
    given_up = np.zeros(60) if retried else failed
    return list(Errors(60, {key: failed}, {key: given_up}, {key: ""}).bursts(load, MINUTE))


CASES[ReadKind.ERROR_BURST] = lambda _: burst(0.5), lambda _: burst(0.05)


def on_real_array(given: Given, **array: int) -> StepSummary:
    """Of at most 20 MiB some are active."""
    truth = Truth(database_bytes=20 * MIB, pool_bytes=8 * MIB, **REAL)
    return only_step(on_array(make_run(given.folder() / "run", truth), **array))


CASES[ReadKind.ACTIVE_FITS_DRAM] = (
    lambda given: on_real_array(given, dram_bytes=64 * MIB),
    lambda given: on_real_array(given, dram_bytes=MIB),
)
CASES[ReadKind.ACTIVE_FITS_FLASH] = (
    lambda given: on_real_array(given, flash_cache_bytes=64 * MIB),
    lambda given: on_real_array(given, flash_cache_bytes=MIB),
)


def store(state: str = "READ_WRITE", gone: float = 99.0, capture: str = "ALL") -> Any:
    """Query Store whose state is this from the middle on, and with a plan that was gone at a second."""
    later = [State(t, state, 65536, {"QUERY_CAPTURE_MODE": capture}) for t in (30.0, 70.0)]
    states = [State(0.0, "READ_WRITE", 0, {"QUERY_CAPTURE_MODE": "ALL"}), *later]
    dropped = [Dropped("bank.transfer", gone - 10, gone)]
    return list(QueryStore(states={"": states}, dropped=dropped).findings(MINUTE))


def plans(gone: float) -> Any:
    dropped = [Dropped("planned", gone - 10, gone)]
    return list(Statements({}, {"planned": {"procedure": "bank.transfer"}}, dropped).findings(MINUTE))


CASES[ReadKind.QUERY_STORE_STOPPED] = lambda _: store("READ_ONLY"), lambda _: store()
CASES[ReadKind.QUERY_STORE_CHANGED] = lambda _: store(capture="NONE"), lambda _: store()
CASES[ReadKind.QUERY_STORE_DROPPED] = lambda _: store(gone=40.0), lambda _: store(gone=0.0)
CASES[ReadKind.PLANS_LEFT] = lambda _: plans(gone=40.0), lambda _: plans(gone=0.0)
of_truths(ReadKind.COUNTERS_RESTARTED, {"epoch_change_at": 20.0}, {"epoch_change_at": 2.0})


def measured_elsewhere(given: Given, clock_s: float) -> Any:
    truth = Truth(noise=0.1, steps=(Step(10, 330.0, name="10"), Step(30, 520.0, name="30")), measured_s=60)
    run = make_run(given.folder() / "run", truth)
    file = external_files.perfmon(run.parent / "measured", *external_files.disk_of(run, 1, clock_s, around_s=80))
    attach([Record(run)], Wanted(file), Request())
    [summary] = summarise([Record(run)]).runs
    return summary.external


CASES[AttachKind.CLOCK_OFFSET] = (
    lambda given: measured_elsewhere(given, 12.0),
    lambda given: measured_elsewhere(given, 0.0),
)


def queries(given: Given, **of_run: Any) -> Any:
    [run] = summarise([Record(make_query_run(given.folder() / "run", **of_run))]).runs
    return run.queries


CASES[ReadKind.QUERY_FAILED] = lambda given: queries(given, failed={"Q9": "timeout"}), queries
CASES[ReadKind.PHASE_CUT] = lambda given: queries(given, cut="stopped by Ctrl-C"), queries


# Laws, and why there is no prediction. -----------------------------------------------------------------------


def of_loads(given: Given, name: str, change: Callable[[Path], Any] = lambda folder: None) -> StepSummary:
    """The step of this name of one of two loads, in a record with this change."""
    steps = alone_and_together({"mail": (60.0, 30.0), "bank": (200.0, 80.0)})
    folder = make_loads_run(given.folder() / "run", steps)
    change(folder)
    return next(step for step in summarise([LoadRecord(Record(folder), "bank")]).steps if step.step == name)


def with_waits(folder: Path) -> Path:
    rows = [
        {
            "t": float(t), "server_time": float(t), "epoch": "start", "wait_type": "LCK_M_X", "wait_class": "lock",
            "benign": False, "waits": 10 * t, "wait_ms": 4000.0 * t, "signal_ms": 0.0, "max_ms": 9.0,
        }
        for t in range(76)
    ]  # fmt: skip
    return put(folder, "server_waits", pa.Table.from_pylist(rows))


def without_applications(folder: Path) -> Path:
    return put(folder, "waits", get(folder, "waits").drop_columns("application"))


def on_device(given: Given, **more: float) -> StepSummary:
    folder = make_run(given.folder() / "run", STEADY)
    return only_step(changed(folder, devices=on(EMULATED | more)))


of_truths(LawKind.USERS, {}, {"arrivals": "poisson"})
of_truths(LawKind.READS, {}, {"epoch_change_at": 20.0})
CASES[LawKind.DEVICE] = on_device, lambda given: on_device(given, rpm=10_000.0)
CASES[LawKind.CPU] = lambda given: of_loads(given, "bank alone"), lambda given: of_loads(given, "together")
CASES[LawKind.WAITS] = (
    lambda given: of_loads(given, "bank alone", with_waits),
    lambda given: of_loads(given, "together", with_waits),
)
of_truths(NoteKind.NOT_LOOKED_AT, {"off": ("waits",)}, {})
of_truths(NoteKind.OPEN_LOOP, {"arrivals": "poisson"}, {})
of_truths(NoteKind.NO_READS, {"reads_per_transaction": 0.0}, {})
of_truths(NoteKind.CPU_UNKNOWN, {"off": ("server_cpu",)}, {})
CASES[NoteKind.OTHER_LOADS] = lambda given: of_loads(given, "together"), lambda given: of_loads(given, "bank alone")
CASES[NoteKind.OTHER_USERS] = (
    lambda given: of_loads(given, "together", without_applications),
    lambda given: of_loads(given, "together"),
)


def brokerage(given: Given, **of_market: Any) -> StepSummary:
    truth = Truth(tps=250, noise=0.0, warm_up_s=12, measured_s=40, waits=WAITS, brokerage=Brokerage(**of_market))
    return step_of(given.folder(), truth)


CASES[NoteKind.NOTHING_ENDED] = (
    lambda given: brokerage(given, skipped=dict.fromkeys(CARDS, 1.0)),
    lambda given: brokerage(given, skipped=dict.fromkeys(CARDS, 0.5)),
)
CASES[NoteKind.NOTHING_COUNTED] = lambda given: brokerage(given, lost_results=1.0), brokerage


def unpredicted(given: Given, cause: StepCause | None) -> Any:
    return predict_throughputs([changed_step(given.slow, cause=cause)], [4.0])


NOT_SAMPLED = StepCause(None, notes=[info(NoteKind.NOT_LOOKED_AT)])
CASES[NoteKind.QUERIES] = lambda given: unpredicted(given, None), lambda given: unpredicted(given, NOT_SAMPLED)
CASES[NoteKind.NOT_PREDICTED] = (
    lambda given: unpredicted(given, NOT_SAMPLED),
    lambda given: unpredicted(given, given.slow.cause),
)


@pytest.mark.parametrize("kind", [pytest.param(kind, id=str(kind)) for kind in CASES])
def test_a_sentence_that_would_be_false_is_not_told(kind, given):
    true, false = (kinds_in([summary(given)]) for summary in CASES[kind])
    assert kind in true and kind not in false


# Kinds that are told in several cases: their words in each. --------------------------------------------------


def reading(waiting: float, uncertainty: float) -> Law:
    """The law of waits of 4 sessions by the counters, and so many that were sampled."""
    wait = ServerWait("PAGEIOLATCH_SH", "io", 60.0, 1000, 240_000.0, 0.0, uncertainty or None)
    [law] = wait_laws([wait], {"read": waiting})
    return law


@pytest.mark.parametrize(
    ("waiting", "uncertainty", "closed", "words"),
    [
        (4.2, 0.0, True, "agree on the time of waiting"),
        (2.0, 0.0, None, "more waiting"),
        (8.0, 0.0, False, "Does not close"),
        (5.4, 0.2, None, "unknown"),  # sessions waited for longer, and no task of the server's did
        (2.6, 0.2, None, "unknown"),
    ],
)
def test_waits_within_the_uncertainty_of_few_samples_are_not_explained(waiting, uncertainty, closed, words):
    law = reading(waiting, uncertainty)
    assert law.closed is closed and words in sentence(law.finding)
    assert law.finding.facts["few"] == (uncertainty or None)


@pytest.mark.parametrize(("every", "streams", "words"), [(4, 0, "unknown"), (1, 0, "Does not"), (1, 2, "other loads")])
def test_other_loads_are_said_to_read_only_where_there_are_some(tmp_path, every, streams, words):
    """The server counts 40 % more time of reads than sessions were seen in; every 4th sample is ± 20 %."""
    truth = Truth(read_ms=27 * 1.55, waits=WAITS, steps=(Step(30), Step(30)), measured_s=20, noise=0.0)
    folder = make_run(tmp_path / "run", truth)
    rows = get(folder, "server_io")
    put(folder, "server_io", rows.filter(pa.array(np.floor(rows["t"].to_numpy()) % every == 0)))
    if streams:
        changed(folder, concurrent_streams={"streams": streams})
    cause = summarise([Record(folder)]).steps[0].cause
    [law] = [law for law in cause.laws if law.kind is LawKind.READS]
    assert words in sentence(law.finding)


def test_a_burst_tells_only_of_the_seconds_in_it():
    [found] = burst(0.5)
    assert found.facts["seconds"] == 1 and found.facts["most_in_a_second"] == 50
    assert "every one of them was retried" in sentence(found)
    assert "retried" not in sentence(burst(0.5, retried=False)[0])


def test_reads_that_were_counted_but_not_timed_are_not_said_to_be_none(tmp_path):
    folder = make_run(tmp_path / "run", replace(STEADY, off=("device",)))
    rows = get(folder, "server_io")
    for number, name in enumerate(rows.column_names):
        if name.endswith("_stall_ms"):
            rows = rows.set_column(number, name, pa.nulls(rows.num_rows, pa.float64()))
    put(folder, "server_io", rows)
    step = only_step(folder)
    assert step.storage.data.reads and step.storage.data.read_ms is None
    [note] = step.cause.notes
    assert note.kind is NoteKind.NO_READS and "the duration of reads is unknown" in sentence(note)


@pytest.mark.parametrize("share", [1.0, 0.001])
def test_sessions_of_which_few_were_seen_are_not_said_to_be_unsampled(tmp_path, share):
    """Sampled ten times a second, of which next to nothing was seen at a server that idles."""
    folder = make_run(tmp_path / "run", STEADY)
    rows = get(folder, "waits")
    samples = np.floor(rows["samples"].to_numpy() * share).astype(np.int32)
    put(folder, "waits", rows.set_column(rows.schema.get_field_index("samples"), "samples", pa.array(samples)))
    notes = [note for note in only_step(folder).cause.notes if note.kind is NoteKind.NOT_LOOKED_AT]
    assert bool(notes) is (share < 1) and all("not sampled often enough" in sentence(note) for note in notes)
