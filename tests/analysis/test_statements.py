"""Plans that were gone while they counted, read a batch at a time, against a look at each sample. Statements of own
SQL in a step: what the driver counted, and the pages that the server counted for each."""

from collections.abc import Mapping, Sequence

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st
from support.synthetic import Truth, make_run
from support.tables import InMemory, With

from stallmark.analysis.experiment import summarise
from stallmark.analysis.read.statements import Dropped, read_dropped
from stallmark.analysis.read.times import Interval
from stallmark.record import histogram as hdr
from stallmark.report.sections import transactions

Sample = Mapping[str, int | None]
"""The counts of the plans in the cache, by name."""
SAMPLES = st.lists(
    st.dictionaries(st.sampled_from("abcd"), st.none() | st.integers(0, 6), max_size=4), min_size=1, max_size=8
)


def record_of(samples: Sequence[Sample], size: int) -> InMemory:
    rows = [
        {"t": 10.0 * i, "planned": f"of {plan}", "plan": plan, "executions": count}
        for i, sample in enumerate(samples)
        for plan, count in sample.items()
    ]
    return InMemory({"statements": pa.Table.from_pylist(rows, schema=SCHEMA)}, [size])


SCHEMA = pa.schema([("t", pa.float64()), ("planned", pa.string()), ("plan", pa.string()), ("executions", pa.int64())])


def looked_at(samples: Sequence[Sample], within_s: float) -> set[tuple[str, float, float]]:
    times = [i for i, sample in enumerate(samples) if sample]  # without a row there was no sample
    found = set()
    for before, last, gone in zip(times, times[1:], times[2:], strict=False):
        for plan, count in samples[last].items():
            earlier = [samples[i][plan] for i in times if i < last and plan in samples[i]]
            rose = count is not None and (not earlier or earlier[-1] is not None) and count > (earlier or [0])[-1]
            later = any(plan in samples[i] for i in times if i > last)
            if rose and not later and 10.0 * (gone - before) < within_s:
                found.add((f"of {plan}", 10.0 * last, 10.0 * gone))
    return found


@given(SAMPLES, st.integers(1, 5), st.sampled_from([25.0, 35.0, 1e9]))
def test_batches_give_what_a_look_at_each_sample_gives(samples, size, within_s):
    record = record_of(samples, size)
    found = read_dropped(record, "statements", "planned", within_s)
    assert {(one.group, one.last, one.gone) for one in found} == looked_at(samples, within_s)


@pytest.mark.parametrize("column", ["planned", "plan", "executions"])
def test_a_table_that_lacks_a_column_tells_nothing(column):
    whole = record_of([{"a": 1}, {"a": 2}, {}, {"b": 1}], 9)
    assert read_dropped(whole, "statements", "planned")
    less = InMemory({"statements": whole.tables["statements"].drop_columns(column)}, [9])
    assert read_dropped(less, "statements", "planned") == []


def test_what_was_lost_belongs_to_the_intervals_that_it_touches():
    dropped = Dropped("a", last=20.0, gone=30.0)
    intervals = [Interval(0, begin, end, 9.0, cut=False) for begin, end in ((0, 20), (20, 25), (29, 40), (30, 40))]
    assert [dropped.overlaps(interval) for interval in intervals] == [False, True, True, False]


TRUTH = Truth(tps=250, noise=0.0, warm_up_s=12, measured_s=40)
TEXT = "SELECT " + "a, " * 40 + "b FROM t"


class WithStatements(With):
    """A record with statements of own SQL, and the rows of some tables."""

    def __init__(self, folder, **tables):
        super().__init__(folder, **tables)
        statements = [{"name": f"look {n}", "transaction": "look", "line": n + 4, "text": TEXT} for n in (1, 2, 3)]
        self.manifest = self.manifest.changed(workload=self.manifest.workload.changed(statements=tuple(statements)))


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return make_run(tmp_path_factory.mktemp("runs") / "run", TRUTH)


def executed():
    """In each second two executions of the first statement, of 3 and 5 ms, and one of the second, which fails."""
    rows = []
    for second in range(52):
        for name, values_us, errors in (("look 1", [3000, 5000], 0), ("look 2", [], 1)):
            row = {"second": second, "load": "own", "statement": name, "executions": len(values_us), "errors": errors}
            row |= {"rows": 3 * len(values_us), "latency_us": sum(values_us)}
            rows.append(row | hdr.columns("latency", hdr.encode(np.array(values_us, dtype=np.int64))))
    return rows


def counted(executions: bool = True, epochs=lambda t: "one", name: str = "look 1"):
    """The first statement asks for 7 pages each time and reads 2, as samples each 4 s have it."""
    times = list(range(0, 53, 4))
    each = [
        {"t": float(t), "took_s": 0.0, "server_time": float(t), "epoch": epochs(t), "statement": name} for t in times
    ]
    return [
        row
        | {"plan": "p", "executions": 2 * t if executions else None}
        | {"logical_reads": 14 * t, "physical_reads": 4 * t}
        for t, row in zip(times, each, strict=True)
    ]


def statements(folder, **tables):
    summary = summarise([WithStatements(folder, own_statements=executed(), **tables)])
    return summary, summary.steps[0].own_statements


def test_a_statement_has_its_own_counts_and_latencies(folder):
    summary, [look, failing] = statements(folder)
    assert (look.executions, look.errors, look.rows, look.latency_mean_ms) == (80, 0, 3, 4)
    assert (look.line, look.per_s) == (5, 2)
    assert look.latency_ms["p50"] == pytest.approx(3, rel=0.001) and look.latency_ms["max"] == pytest.approx(
        5, rel=0.001
    )
    assert look.latency_ms["p99"] is None, "80 are too few"
    assert (failing.executions, failing.errors, failing.rows, failing.latency_mean_ms) == (0, 40, None, None)
    assert look.logical_reads is look.physical_reads is None
    table = transactions.statement_times(summary.steps[0])
    assert table and "asked for" not in table.header
    assert list(table.rows[0])[:4] == ["1", "look.sql, 5", f"{TEXT[:59]}…", "80"]


@pytest.mark.thorough
@pytest.mark.parametrize("executions", [True, False])
@pytest.mark.parametrize("name", ["look 1", "brokerage: look 1", "bank: look 1"])
def test_pages_are_per_execution(folder, executions, name):
    summary, [look, failing] = statements(folder, statement_reads=counted(executions, name=name))
    workload = WithStatements(folder).manifest.workload.name
    known = name.partition(": ")[0] in ("look 1", workload)
    assert [look.logical_reads, look.physical_reads] == ([pytest.approx(7), pytest.approx(2)] if known else [None] * 2)
    assert failing.logical_reads is None
    table = transactions.statement_times(summary.steps[0])
    assert table and ("asked for" in table.header) == known


@pytest.mark.parametrize(("at", "lost"), [(5, False), (30, True)])
def test_pages_are_unknown_where_the_server_dropped_counts(folder, at, lost):
    reset = counted(epochs=lambda t: f"since {t >= at}")
    _, [look, _] = statements(folder, statement_reads=reset)
    assert (look.logical_reads is None) == lost
