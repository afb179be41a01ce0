"""The sentences of refusals and notes: each is used, with the facts that it names."""

import ast
import string
from pathlib import Path

import stallmark
from stallmark.record.formats.sample import load_yaml

ROOMS = [Path(stallmark.__file__).parent / "record" / room for room in ("formats", "imports")]


def test_each_refusal_is_used_with_its_facts():
    table = load_yaml("sentences")
    needed = {
        kind: {field.partition(".")[0] for _, field, _, _ in string.Formatter().parse(sentence) if field}
        - table["commands"].keys()
        for kind, sentence in (table["refusals"] | table["notes"]).items()
    }
    used = set[str]()
    for path in sorted(path for room in ROOMS for path in room.glob("*.py")):
        for call in ast.walk(ast.parse(path.read_text())):
            name = getattr(call.func, "id", getattr(call.func, "attr", "")) if isinstance(call, ast.Call) else ""
            if name in ("refusal", "note"):
                kinds = {
                    text.value for text in ast.walk(call.args[0]) if isinstance(text, ast.Constant)
                } & needed.keys()
                facts = {str(fact.arg) for fact in call.keywords} | ({"path"} if len(call.args) > 1 else set())
                assert all(needed[kind] <= facts for kind in kinds), (path.name, kinds)
                used |= kinds
    # Chosen by a variable.
    by_variable = {"no_device", "no_numbered_device", "stacked_disks", "numbered_disks"}
    by_variable |= {"left_out", "converted", "unknown", "absent", "partial"}
    assert needed.keys() - used == by_variable
