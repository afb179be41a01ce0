"""Sentences are made in report/text alone: no template and no other module of the report holds one."""

import ast
import re
from pathlib import Path

import pytest

import stallmark.report
from stallmark import sizing

REPORT, SIZING = (Path(room.__file__).parent for room in (stallmark.report, sizing))
TEMPLATES = sorted((REPORT / "templates").glob("*.html"))
MODULES = sorted(path for path in REPORT.rglob("*.py") if path.parent.name != "text")
MODULES += [SIZING / "document.py", SIZING / "tables.py"]
SENTENCE = re.compile(r"\w[^\w\s.]?\.(\s|$)")


def written_in(template: str) -> list[str]:
    """Return the text of a template that is neither mark-up nor made elsewhere."""
    without = re.sub(r"{#.*?#}|{%.*?%}|<(svg|script|style).*?</\1>", "", template, flags=re.S)
    return [text.strip() for text in re.split(r"<[^>]*>", re.sub(r"{{.*?}}", "x", without)) if text.strip()]


def written_by(source: str) -> list[str]:
    """Return the strings of a module, values within them as an x; neither docstrings nor errors, which are raised."""
    tree = ast.parse(source)
    left_out = {
        id(part)
        for node in ast.walk(tree)
        if isinstance(node, ast.Raise) or (isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant))
        for part in ast.walk(node)
    }
    found = []
    for node in ast.walk(tree):
        if isinstance(node, ast.JoinedStr) and id(node) not in left_out:
            left_out |= {id(part) for part in node.values}
            found.append("".join(str(part.value) if isinstance(part, ast.Constant) else "x" for part in node.values))
    texts = (node for node in ast.walk(tree) if isinstance(node, ast.Constant) and isinstance(node.value, str))
    return [*found, *(str(node.value) for node in texts if id(node) not in left_out)]


def sentences(texts: list[str]) -> list[str]:
    return [text for text in texts if " " in text.strip() and SENTENCE.search(text)]


@pytest.mark.parametrize("path", TEMPLATES, ids=lambda path: path.name)
def test_a_template_holds_headings_and_labels_alone(path):
    assert sentences(written_in(path.read_text(encoding="utf-8"))) == []


def test_no_other_module_of_the_report_makes_a_sentence():
    assert len(MODULES) > 30
    found = {path.name: some for path in MODULES if (some := sentences(written_by(path.read_text(encoding="utf-8"))))}
    assert found == {}


def test_a_sentence_elsewhere_is_found():
    assert sentences(written_in("<p>{{ name }} was not measured.</p><h3>By step</h3>{# Why. #}")) == [
        "x was not measured."
    ]
    source = 'def said(name):\n    """Return it."""\n    return f"{name} was not measured."\n\nLABEL = "by step"'
    assert sentences(written_by(source)) == ["x was not measured."]
