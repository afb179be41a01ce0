"""Mutants of code (benchmarks/mutants.py): each is a change of one thing, and it is known again elsewhere."""

import ast
from dataclasses import asdict

import pytest
from benchmarks.mutants import again, drawn, mutants_in

CODE = b'''
def knee(users, tps: "float | None" = 1.5):
    """Return 3 < 4."""
    if not tps or len(users) <= 2:
        return None
    for user in users:
        if user.late:
            raise ValueError(f"{user + 1}")
    return best(users, tps - 1)
'''


def test_each_kind_of_change_is_made_of_what_is_run():
    found = {(one.kind, one.before, one.after) for one in mutants_in(CODE)}
    assert found == {
        ("constant", "1.5", "3.0"),
        ("and or", "or", "and"),
        ("not", "not tps", "tps"),
        ("comparison", "<=", ">"),
        ("boundary", "<=", "<"),
        ("constant", "2", "3"),
        ("condition", "user.late", "not (user.late)"),
        ("return", "best(users, tps - 1)", "None"),
        ("arguments", "users, tps - 1", "tps - 1, users"),
        ("operator", "-", "+"),
        ("constant", "1", "2"),
    }


@pytest.mark.parametrize("one", mutants_in(CODE), ids=lambda one: f"{one.kind} {one.line}")
def test_a_mutant_is_python_and_other_code(one):
    changed = CODE[: one.begin] + one.text.encode() + CODE[one.end :]
    assert ast.dump(ast.parse(changed)) != ast.dump(ast.parse(CODE))


def test_a_mutant_is_known_again_where_its_code_was_moved_and_not_where_it_was_changed():
    killed = [asdict(one) | {"test": "tests/test_knee.py::test"} for one in mutants_in(CODE, "analysis/conclusions.py")]
    moved = b"LONG = 1\n" + CODE.replace(b"len(users) <= 2", b"len(users) <= 5")
    found = again(mutants_in(moved, "analysis/ramp.py"), killed)
    assert {(one.kind, one.before) for one, _ in found} == {
        (one["kind"], one["before"]) for one in killed if one["statement"].startswith(("return", "def", "if user"))
    }
    assert all(one.file == "analysis/ramp.py" and one.line > 1 and test for one, test in found)


def test_the_same_seed_draws_the_same_mutants_of_code_that_was_moved():
    here, there = (mutants_in(code, "analysis/conclusions.py") for code in (CODE, b"import os\n" + CODE))
    assert [one.code for one in drawn(here, 4, 1)] == [one.code for one in drawn(there, 4, 1)]
    assert len(drawn(here, 4, 1)) == 4
