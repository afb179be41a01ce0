"""Statements of own SQL in a step: what the driver counted, and the pages that the server counted for each."""

import numpy as np
import pytest
from support.synthetic import Truth, make_run
from support.tables import With

from stallmark.analysis.experiment import summarise
from stallmark.record import histogram as hdr
from stallmark.report.sections import transactions

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
