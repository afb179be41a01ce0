"""A lint of our own language: names and docstrings, room by room. The counts in `wording.yaml` may only fall.

A function is a verb phrase or the noun it returns, a variable the singular of its collection, and a docstring names the
thing or says what to do. `python tests/test_docstrings.py` lists all faults and lowers the counts to what is left.
"""

import ast
import re
from collections import Counter
from collections.abc import Iterable, Iterator
from pathlib import Path

import pytest
import yaml

ROOT = Path(__file__).parents[1]
LINKED = ("driver", "loaders", "scenarios", "schema", "transactions")
COUNTS = ROOT / "tests" / "wording.yaml"
OPENINGS = {"What", "Whether", "Who"}
SUSPECT = re.compile(rf"""["']\s*({"|".join(OPENINGS)})\b""")

NAMES = {
    "preposition": re.compile(
        r"(?!_?(as|by|with|without|from|to|on|in)_\w)_?(of|on|in|by|from|with|without|besides?|beneath|behind|among|against"
        r"|between|over|under|to|at|until|before|after|within|apart|together|alone|beyond|across|instead|no|and|whose|which"
        r"|what|who|where|how|why|off|so|much|more|less|ever|its|own|half)(_|$)"
    ),
    "participle": re.compile(
        r"_?(asked|wanted|held|kept|met|seen|left|done|made|found|known|drawn|dated|grown|settled|matched|reached|fitted"
        r"|carried|attended|unserved|fruitless|judged|counted|noted|named|needed|missed|expected|given|taken|begun|ended"
        r"|lost|gone|moved|placed|shown|spread|stated|marked|examined|described|limited|declared|confirmed|dealt)_?$"
    ),
    "speech": re.compile(r"_?take(_|$)|(.*_)?(said|told|tells?|says?|spoken|unheard|untold)(_|$)"),
}
VAGUE = {"one", "found", "said", "told", "some", "what", "at", "of", "why", "there", "each"}
PROSE = {
    "return-clause": re.compile(r"\A(Return|Yield)s? (what|how|why|which|when|where|by|for|from|that|if)\b"),
    "none-where": re.compile(r"\b(None|NaN|empty|nothing|False|True) where\b|\bRaises? \w+(,[^.]*?)? where\b"),
    "tell-whether": re.compile(r"\ATell (whether|if)\b"),
    "there-is": re.compile(r"\bthat there (is|are|was|were)\b|\bthere (is|are|was|were) none\b"),
    "is-no-x": re.compile(r"\b(is|are|was|were|be) (none\b|no (?!(longer|more|less|other|further|larger|later)\b))"),
}
Fault = tuple[str, int, str]
"""A rule, a line and the words that break the rule."""


def texts(nodes: Iterable[ast.AST]) -> Iterator[ast.Constant]:
    """Yield the docstrings of modules, classes, functions and attributes."""
    for node in nodes:
        body = getattr(node, "body", None)
        for child in body if isinstance(body, list) else ():
            if (
                isinstance(child, ast.Expr)
                and isinstance(child.value, ast.Constant)
                and isinstance(child.value.value, str)
            ):
                yield child.value


def faults(tree: ast.AST) -> Iterator[Fault]:
    nodes = [*ast.walk(tree)]  # once: this takes longer than all rules
    for text in texts(nodes):
        words = " ".join(text.value.split())
        yield from ((rule, text.lineno, words) for rule, regex in PROSE.items() if regex.search(words))
    for node in nodes:
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef) and not node.name.startswith("__"):
            if rule := next((rule for rule, regex in NAMES.items() if regex.match(node.name)), None):
                yield rule, node.lineno, node.name
        elif isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store) and node.id in VAGUE:
            yield "variable", node.lineno, node.id
        elif isinstance(node, ast.arg) and node.arg in VAGUE:
            yield "variable", node.lineno, node.arg


def rooms() -> dict[str, list[Path]]:
    """Return the product's files by room: a folder of the package, or `modules` for its single files."""
    files: dict[str, list[Path]] = {room: sorted((ROOT / room).rglob("*.py")) for room in LINKED}
    for path in sorted((ROOT / "src" / "stallmark").rglob("*.py")):
        room, *rest = path.relative_to(ROOT / "src" / "stallmark").parts
        if room not in LINKED:  # pathlib does not follow the links to them, except on Python 3.13 and later
            files.setdefault(room if rest else "modules", []).append(path)
    return files


def faults_by_room() -> dict[str, dict[str, list[str]]]:
    """Return the places of all faults, by room and rule."""
    all_faults: dict[str, dict[str, list[str]]] = {}
    for room, paths in rooms().items():
        places = all_faults.setdefault(room, {})
        for path in paths:
            for rule, line, words in faults(ast.parse(path.read_text())):
                places.setdefault(rule, []).append(f"{path.relative_to(ROOT)}:{line}: {words[:100]}")
    return all_faults


def wrong_openings(source: str) -> list[str]:
    """Return the docstrings, those of attributes too, that open with a question word."""
    if not SUSPECT.search(source):  # parsing takes long
        return []
    opened = [text.value.strip() for text in texts(ast.walk(ast.parse(source)))]
    return [text for text in opened if text.split(maxsplit=1)[0] in OPENINGS]


@pytest.mark.thorough
def test_no_docstring_opens_with_a_question_word():
    files = [path for paths in rooms().values() for path in paths]
    files += [path for room in ("tests", "benchmarks") for path in (ROOT / room).rglob("*.py")]
    assert len(files) > 500
    assert {str(path): texts for path in files if (texts := wrong_openings(path.read_text()))} == {}


@pytest.mark.thorough
def test_the_faults_of_a_room_only_become_fewer():
    allowed = yaml.safe_load(COUNTS.read_text())
    for room, places in faults_by_room().items():
        for rule, lines in places.items():
            assert len(lines) <= allowed.get(room, {}).get(rule, 0), "\n".join([f"{room}, {rule}:", *lines])


def test_each_rule_finds_its_fault():
    source = '''
class Array:
    size = 1
    """What it holds."""
    def hit(self):
        "Whether it is there."
def _beneath(device): "Tell whether a disk is no array."
def judged(levels): "Return what there is of a level that there is; None where it is not known."
def tell(why): said = [each for each in why]
def from_scale(scale): pass
def by_name(name): "Return whether a name is no longer in use."
'''
    assert wrong_openings(source) == ["What it holds.", "Whether it is there."]
    assert Counter(rule for rule, _, _ in faults(ast.parse(source))) == {
        "preposition": 1,
        "participle": 1,
        "speech": 1,
        "variable": 3,
        "tell-whether": 1,
        "is-no-x": 1,
        "return-clause": 1,
        "there-is": 1,
        "none-where": 1,
    }


if __name__ == "__main__":
    left = faults_by_room()
    print(*(place for places in left.values() for lines in places.values() for place in lines), sep="\n")
    counts = {
        room: {rule: len(lines) for rule, lines in sorted(places.items())} for room, places in sorted(left.items())
    }
    known = yaml.safe_load(COUNTS.read_text()) if COUNTS.exists() else counts
    lower = {
        room: {rule: min(count, known.get(room, {}).get(rule, count)) for rule, count in rules.items()}
        for room, rules in counts.items()
    }
    COUNTS.write_text(yaml.safe_dump({room: rules for room, rules in lower.items() if rules}))
