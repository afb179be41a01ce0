"""A docstring names the thing or says what to do; it opens with none of `OPENINGS`."""

import ast
import re
from pathlib import Path

ROOT = Path(__file__).parents[1]
ROOMS = ("src", "driver", "loaders", "scenarios", "schema", "transactions", "tests", "benchmarks")
OPENINGS = {"What", "Whether", "Who"}
SUSPECT = re.compile(rf"""["']\s*({"|".join(OPENINGS)})\b""")


def wrong(source: str) -> list[str]:
    """Return the docstrings, those of attributes too, that open with such a word."""
    if not SUSPECT.search(source):  # parsing takes long
        return []
    texts = [
        node.value.value.strip()
        for node in ast.walk(ast.parse(source))
        if isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant) and isinstance(node.value.value, str)
    ]
    return [text for text in texts if text.split(maxsplit=1)[0] in OPENINGS]


def test_no_docstring_opens_with_a_question_word():
    files = [path for room in ROOMS for path in (ROOT / room).rglob("*.py")]
    assert len(files) > 500
    assert {str(path): found for path in files if (found := wrong(path.read_text()))} == {}


def test_one_that_does_is_found():
    source = 'class Array:\n    size = 1\n    """What it holds."""\n    def hit(self):\n        "Whether it is there."'
    assert wrong(source) == ["What it holds.", "Whether it is there."]
