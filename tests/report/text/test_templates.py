"""Templates of sentences: their formats, and that the facts they name are those with which findings are made."""

import ast
import json
import re
from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping
from importlib import import_module
from pathlib import Path
from string import Formatter
from typing import Any

import pytest
from support.wording import kinds

import stallmark.analysis
import stallmark.report.text
from stallmark.analysis.finding import Kind, info
from stallmark.format import percent
from stallmark.report.text import FORMATS, NameFirst, Template, clause, sentence, writers
from stallmark.stats import thresholds

ANALYSIS, TEXT = (Path(package.__path__[0]) for package in (stallmark.analysis, stallmark.report.text))
GOLDEN = Path(__file__).parents[2] / "golden"
TEMPLATES = {kind: writer for kind, writer in writers().items() if isinstance(writer, Template)}
MAKERS = ("info", "caution", "invalid", "check")
OF_PYTHON = re.compile(r"[+]?,?(\.\d)?[dfg]?")


def fields(template: Template) -> Iterator[tuple[str, str]]:
    """Yield the name and the format of each fact and threshold in a template."""
    for _, name, spec, conversion in Formatter().parse(template.text):
        if name is not None:
            assert conversion is None
            yield name.partition("[")[0], spec or ""


def facts_of(kind: Kind) -> set[str]:
    """Return the facts that the sentence of a kind names."""
    return {name for name, _ in fields(TEMPLATES[kind]) if name != "facts" and not name.isupper()}


def written_in_rules() -> Mapping[Kind, list[set[str]]]:
    """Return the facts of each place in the analysis that makes findings of a kind, if all are written there."""
    rooms = {room.__name__: room for room in Kind.__subclasses__()}
    facts = defaultdict(list)
    for path in ANALYSIS.rglob("*.py"):
        for node in ast.walk(ast.parse(path.read_text())):
            if not (isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id in MAKERS):
                continue
            names = {keyword.arg for keyword in node.keywords}
            for kind in ast.walk(node.args[0]) if node.args and None not in names else ():
                if isinstance(kind, ast.Attribute) and isinstance(kind.value, ast.Name) and kind.value.id in rooms:
                    facts[rooms[kind.value.id][kind.attr]].append(names)
    return facts


def findings_in(value: Any) -> Iterator[tuple[str, set[str]]]:
    """Yield kind and facts of every finding in JSON that a command wrote."""
    if isinstance(value, dict):
        if value.keys() == {"kind", "severity", "facts", "sentence"}:
            yield value["kind"], set(value["facts"])
        value = list(value.values())
    for part in value if isinstance(value, list) else ():
        yield from findings_in(part)


def in_records() -> Mapping[Kind, list[set[str]]]:
    """Return the facts of each finding on the frozen records."""
    by_value, facts = kinds(), defaultdict(list)
    for path in sorted(GOLDEN.glob("*.json")):
        for kind, names in findings_in(json.loads(path.read_text())):
            facts[by_value[kind]].append(names)
    return facts


@pytest.mark.thorough
@pytest.mark.parametrize("made", [written_in_rules, in_records])
def test_a_template_names_facts_that_every_finding_of_its_kind_has(made):
    found = made()
    assert len(found.keys() & TEMPLATES.keys()) > 50
    lacking = {
        kind: wanted - names
        for kind in TEMPLATES
        for names in found.get(kind, ())
        if not (wanted := facts_of(kind)) <= names
    }
    assert lacking == {}


@pytest.mark.parametrize("kind", TEMPLATES)
def test_formats_and_thresholds_of_a_template_are_there(kind):
    for name, spec in fields(TEMPLATES[kind]):
        assert hasattr(thresholds, name) or not name.isupper()
        assert spec in TEMPLATES[kind].formats or OF_PYTHON.fullmatch(spec), f"{name}:{spec}"


def test_every_format_of_a_module_is_used_in_it():
    for path in TEXT.glob("*.py"):
        if path.stem not in ("__init__", "templates"):
            words, source = import_module(f"stallmark.report.text.{path.stem}"), path.read_text()
            assert [name for name in getattr(words, "FORMATS", {}) if f":{name}}}" not in source] == [], path.stem


def test_no_kind_has_two_sentences():
    """A key that a mapping has twice would hide the sentence of the first."""
    written = Counter[str]()
    for path in TEXT.glob("*.py"):
        for node in ast.walk(ast.parse(path.read_text())):
            if isinstance(node, ast.AnnAssign) and ast.unparse(node.target) == "SENTENCES":
                assert isinstance(node.value, ast.Dict)
                written.update(ast.unparse(key) for key in node.value.keys if key is not None)
            elif isinstance(node, ast.FunctionDef):
                written.update(re.findall(r"^says\((.*)\)$", "\n".join(map(ast.unparse, node.decorator_list)), re.M))
    assert len(written) > 300
    assert [kind for kind, times in written.items() if times > 1] == []


def test_a_fact_is_written_by_its_format_and_a_threshold_by_its_name():
    template = Template("{runs:listed}: {share:percent} of {all:,}, at most {REPLICATES}; {{as it is}}", {})
    expected = f"a and b: 5 % of 1,200, at most {thresholds.REPLICATES}; {{as it is}}"
    assert template(runs=["a", "b"], share=0.05, all=1200) == expected


def test_a_format_of_the_module_stands_before_one_of_the_house_and_may_have_all_facts():
    formats = {"percent": lambda share: f"{share} of 1", "sum": lambda facts: str(facts["a"] + facts["b"])}
    assert Template("{a:percent}, {facts:sum}", formats)(a=1, b=2) == "1 of 1, 3"
    assert FORMATS["percent"] is percent


def test_a_missing_fact_and_an_unknown_format_are_errors():
    with pytest.raises(KeyError):
        Template("{share:percent}", {})(shares=[0.5])
    with pytest.raises(ValueError, match="Invalid format specifier"):
        Template("{share:percentage}", {})(share=0.5)


def test_a_sentence_that_begins_with_a_name_keeps_its_capital(monkeypatch):
    kind = next(iter(TEMPLATES))
    for text, expected in ((NameFirst("{a} failed."), "CPU failed"), ("{a} failed.", "cPU failed")):
        monkeypatch.setitem(writers(), kind, Template(text, {}))
        assert sentence(info(kind, a="CPU")) == "CPU failed."
        assert clause(info(kind, a="CPU")) == expected
