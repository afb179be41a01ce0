"""Every kind of finding has its wording, which is written here once: in one file for each module of report.text."""

import ast
from collections import Counter
from pathlib import Path

import pytest
from support.wording import golden, kinds

import stallmark.analysis
from stallmark.analysis.finding import Kind
from stallmark.report.text import sentence, writers

WORDS = list(golden())
ANALYSIS = Path(stallmark.analysis.__file__).parent


@pytest.mark.parametrize(("module", "finding", "says"), WORDS, ids=lambda one: getattr(one, "kind", None))
def test_a_finding_is_worded_as_it_was_agreed(module, finding, says):
    assert sentence(finding).replace("\u00a0", " ") == says
    assert writers()[finding.kind].__module__.endswith(f".{module}")


def test_every_kind_has_one_wording_and_its_example():
    every = Counter(str(kind) for room in Kind.__subclasses__() for kind in room)
    assert [value for value, times in every.items() if times > 1] == []
    assert set(writers()) == set(kinds().values())
    assert {str(finding.kind) for _, finding, _ in WORDS} == set(every)


def test_the_analysis_holds_no_sentence():
    held = [
        f"{file.relative_to(ANALYSIS)}: {node.target.id}"
        for file in ANALYSIS.rglob("*.py")
        for node in ast.walk(ast.parse(file.read_text()))
        if isinstance(node, ast.AnnAssign) and isinstance(node.target, ast.Name) and node.target.id == "sentence"
    ]
    assert held == []
