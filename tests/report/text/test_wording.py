"""Every kind of finding has its wording, which is written here once: in one file for each module of report.text."""

import ast
import re
from collections import Counter
from importlib import import_module
from pathlib import Path

import pytest
from support.wording import golden, kinds

import stallmark.analysis
import stallmark.report
from stallmark import probe, sizing
from stallmark.analysis.finding import Kind
from stallmark.report.text import Template, sentence, writers

WORDS = list(golden())
ANALYSIS, REPORT, PROBE, SIZING = (
    Path(room.__file__).parent for room in (stallmark.analysis, stallmark.report, probe, sizing)
)
JUDGE = [
    *(SIZING / f"{name}.py" for name in ("candidate", "reach", "summary", "document")),
    *(PROBE / f"{name}.py" for name in ("summary", "document")),
]
"""The modules of capabilities that judge and show as those of the core do."""


@pytest.mark.parametrize(("module", "finding", "says"), WORDS, ids=lambda one: getattr(one, "kind", None))
def test_a_finding_is_worded_as_it_was_agreed(module, finding, says):
    assert sentence(finding).replace("\u00a0", " ") == says
    writer, words = writers()[finding.kind], import_module(module)
    assert finding.kind in words.SENTENCES if isinstance(writer, Template) else writer.__module__ == words.__name__


def test_every_kind_has_one_wording_and_its_example():
    every = Counter(str(kind) for room in Kind.__subclasses__() for kind in room)
    assert [value for value, times in every.items() if times > 1] == []
    assert set(writers()) == set(kinds().values())
    assert {str(finding.kind) for _, finding, _ in WORDS} == set(every)


WORDS_OF_A_SENTENCE = 7
MAY = [
    ("analysis/compare/plan.py", " are incomplete, invalid or limited by the driver)"),
    ("analysis/metrics.py", "Read time as the server saw it"),
    ("analysis/rules.py", "worse, worse by 5 %, not better, not better by 10 %, or not within 5 %"),
    (
        "analysis/rules.py",
        "enough above 4GiB, ceiling below 200 users, ceiling below 500 per second, or ceiling below 1.5 times the load",
    ),
    ("probe/summary.py", "What does this storage give without a database, and where does it saturate?"),
    ("report/picture.py", "and mean response time, ms, by cause"),
]
"""Texts outside the wording: one of an error, examples in one, the question of a probe that has no scenario, titles of
figures."""


HEADED = ("Section", "TableSection", "Shown", "table_blocks", "Title", "Fold", "Metric")
"""Blocks of a document, whose texts are headings and captions; and metrics, whose formulas are on their page alone."""


def sentences(source: str) -> list[str]:
    """Return the texts that read like sentences and are neither docstrings, nor of errors that are raised, nor headings
    and captions of a document."""
    tree, apart = ast.parse(source), set[ast.AST]()
    for node in ast.walk(tree):
        if isinstance(node, ast.Raise | ast.Assert):
            apart.update(ast.walk(node))
        elif isinstance(node, ast.Expr):
            apart.add(node.value)
        elif isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id in HEADED:
            apart.update(text for one in node.args for text in [one, *getattr(one, "values", [])])
    texts = [node.value for node in ast.walk(tree) if isinstance(node, ast.Constant) and node not in apart]
    return [text for text in texts if isinstance(text, str) and _reads_like_one(text)]


def _reads_like_one(text: str) -> bool:
    words = [word for word in text.split() if re.search(r"[^\W\d_]{2}", word)]
    plain = not re.search(r'[<>{}="|\\]', text)
    return plain and (len(words) >= WORDS_OF_A_SENTENCE or (len(words) > 2 and text.rstrip()[-1] in ".?!"))


@pytest.mark.thorough
def test_no_sentence_stands_outside_the_wording():
    files = [
        *JUDGE,
        *ANALYSIS.rglob("*.py"),
        *(file for file in REPORT.rglob("*.py") if REPORT / "text" not in file.parents),
    ]
    held = [(str(file.relative_to(REPORT.parent)), text) for file in files for text in sentences(file.read_text())]
    assert sorted(held) == sorted(MAY)


def test_a_sentence_is_found_and_a_docstring_an_error_and_a_name_are_none():
    source = """def f(tps):
    "Return a verdict on what was measured here."
    if not tps:
        raise ValueError("There is nothing at all to be judged here.")
    section = Section("reads", f"How did {name} read it all?", [table_blocks(table, "Reads of data files, by class")])
    return "Total Server Memory (KB)", r"^(a b|c d e f g h i)$"
"""
    assert sentences(source) == []
    assert sentences("verdict = 'The storage is too slow.'") == ["The storage is too slow."]
    assert sentences("Section('a', 'b', [Words('The storage is too slow.')])") == ["The storage is too slow."]
    assert sentences("verdict = f'{a} waited for storage most of the time, and {b}'") != []


def texts_of(template: str) -> list[str]:
    """Return the text of a template that is neither mark-up nor made elsewhere."""
    without = re.sub(r"{#.*?#}|{%.*?%}|<(svg|script|style).*?</\1>", "", template, flags=re.S)
    return [text.strip() for text in re.split(r"<[^>]*>", re.sub(r"{{.*?}}", "x", without)) if text.strip()]


@pytest.mark.parametrize("path", sorted((REPORT / "templates").glob("*.html")), ids=lambda path: path.name)
def test_a_template_holds_headings_and_labels_alone(path):
    held = texts_of(path.read_text(encoding="utf-8"))
    assert [text for text in held if " " in text and re.search(r"\w[^\w\s.]?\.(\s|$)", text)] == []


def test_a_sentence_of_a_template_is_found():
    assert texts_of("<p>{{ name }} was not measured.</p><h3>By step</h3>{# Why. #}") == [
        "x was not measured.", "By step",
    ]  # fmt: skip
