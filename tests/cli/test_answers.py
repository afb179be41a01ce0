"""Differences of answers become findings of a check."""

import pytest

from stallmark.cli.check import answers
from stallmark.errors import StallmarkError
from stallmark.scenarios.model import WorkloadChoice

WAREHOUSE = WorkloadChoice(name="warehouse", scale={"factor": 0.01})


def test_every_query_is_a_finding_with_what_differs_first(monkeypatch):
    asked = []

    def validate(engine, factor):
        asked.append((engine, factor))
        yield 1, []
        yield 2, ["row 1: a is 3, not 4", "b", "c", "d"]

    monkeypatch.setattr("stallmark.transactions.warehouse.oracle.validate", validate)
    good, bad = answers("the engine", WAREHOUSE)
    assert asked == [("the engine", 0.01)]
    assert good.holds is True and (good.name, good.offending) == ("Q1 answers as DuckDB does", 0)
    assert bad.holds is False and (bad.offending, bad.counted) == (4, "differences")
    assert bad.detail == "row 1: a is 3, not 4 | b | c"


def test_other_workloads_have_no_answers():
    bank = WorkloadChoice(name="bank", scale={"branches": 1})
    with pytest.raises(StallmarkError, match="bank has no queries whose answers are known: leave out --answers"):
        list(answers("the engine", bank))
