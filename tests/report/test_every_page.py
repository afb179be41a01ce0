"""Pages, terminals and Markdown of records of every kind, as the golden check keeps them: no reader meets a name of
ours. And results that stand in one report."""

import json
import math
import re
from collections.abc import Iterator
from typing import Any, get_args

import numpy as np
import pytest
from benchmarks.golden import GOLDEN
from support.manifests import changed
from support.pages import render
from support.synthetic import Brokerage, Truth, make_run
from support.wording import golden as worded_examples

from stallmark import capabilities
from stallmark.analysis.cautions import CautionKind
from stallmark.analysis.experiment import summarise
from stallmark.analysis.finding import ExperimentKind
from stallmark.errors import StallmarkError
from stallmark.record.manifest import Manifest
from stallmark.record.reader import find_records
from stallmark.record.schema import TABLES
from stallmark.report.kinds import KINDS, RecordKind, find_kind
from stallmark.report.renderers import dumped, in_json

RECORDS = (
    "pools", "ramp", "repeats", "flash", "array", "brokerage", "beside", "killed", "cut_in_warm_up", "reset",
    "nothing_collected", "sqlserver", "power", "each_query", "throughput", "attached",
)  # fmt: skip
GOLDEN_FACTS: dict[str, list[set[str]]] = {}
for _, worded, _ in worded_examples():
    GOLDEN_FACTS.setdefault(str(worded.kind), []).append(set(worded.facts))
# A file of the database, columns of iostat, and what a SQL Server calls its own.
WRITTEN_BY_OTHERS = {"bank_log", "r_await", "w_await", "query_store", "system_health", "accounts_pkey"}
WRITTEN_BY_OTHERS |= {"auto_update_statistics"}
NAMES = re.compile(r"\b[a-z]+(?:_[a-z0-9]+)+\b")


def parts(value: Any) -> Iterator[Any]:
    """Yield a value and all that is in it."""
    yield value
    for part in value.values() if isinstance(value, dict) else value if isinstance(value, list) else ():
        yield from parts(part)


@pytest.mark.parametrize("name", RECORDS)
def test_no_reader_meets_a_name_of_ours_and_every_finding_has_the_facts_of_an_example(name):
    golden = json.loads((GOLDEN / f"{name}.json").read_text(encoding="utf-8"))
    shown = [result for command, result in golden.items() if command.startswith(("report", "compare"))]
    told = [part for result in shown for part in parts(result.get("json")) if isinstance(part, dict)]
    settings = {key for part in told for key in part.get("settings") or ()}
    texts = " ".join(
        part
        for result in shown
        for key, seen in result.items()
        if key != "json"
        for part in parts(seen.get("text") if isinstance(seen, dict) else seen)
        if isinstance(part, str)
    )
    columns = {column for schema in TABLES.values() for column in schema.names}
    assert texts and set(NAMES.findall(texts)) - settings - columns - WRITTEN_BY_OTHERS == set()
    for finding in told:
        if finding.keys() == {"kind", "severity", "facts", "sentence"} and finding["kind"] in GOLDEN_FACTS:
            assert set(finding["facts"]) in GOLDEN_FACTS[finding["kind"]], finding


def test_every_kind_of_record_has_a_report():
    kinds = {*get_args(Manifest.model_fields["kind"].annotation), "loads", "profile"}
    assert kinds == KINDS.keys()
    assert all(isinstance(kind, RecordKind) for kind in (*map(find_kind, kinds), *capabilities.parts("report")))
    assert find_kind("attach") is None


@pytest.mark.thorough
def test_two_experiments_in_one_report_have_a_title_and_a_question_each(tmp_path):
    asked = {"one": "Which disk?", "two": "How much memory?"}
    for number, (name, title) in enumerate(asked.items()):
        scenario = {"name": name, "title": title, "answers": f"The question of {name}."}
        for repeat in range(1, number + 2):
            folder = make_run(tmp_path / f"{name}{repeat}", Truth(variant="small", sequence=repeat, seed=repeat))
            changed(folder, scenario=scenario, experiment=name, repeat=repeat)
    summary = summarise(find_records([tmp_path]))
    assert [(one.title, one.variants) for one in summary.questions] == [
        ("Which disk?", ["small (one)"]),
        ("How much memory?", ["small (two)"]),
    ]
    assert not any(finding.kind == ExperimentKind.ONE_RUN_EACH for finding in summary.findings)
    [few] = [one for one in summary.cautions if one.kind == CautionKind.FEW_RUNS]
    assert few.facts == {"fewest": 1, "most": 2}
    html = render(summary)
    assert all(title in html and f"The question of {name}." in html for name, title in asked.items())


@pytest.mark.thorough
def test_results_that_are_different_things_are_refused(tmp_path):
    make_run(tmp_path / "bank", Truth(variant="a", sequence=1))
    make_run(tmp_path / "brokerage", Truth(variant="b", sequence=2, brokerage=Brokerage()))
    with pytest.raises(StallmarkError, match="name only runs that have the same result"):
        summarise(find_records([tmp_path]))


def test_json_holds_no_number_that_is_none() -> None:
    values = {"read_ms": float("nan"), "share": np.float64("inf"), "facts": [{"r": -math.inf}, 1.5, np.int64(3)]}
    assert json.loads(dumped(in_json(values))) == {"read_ms": None, "share": None, "facts": [{"r": None}, 1.5, 3]}
    with pytest.raises(ValueError, match="not JSON compliant"):
        dumped({"read_ms": math.nan})
