"""pgbench's expressions and scripts, as far as they can be judged without a server."""

import math
import random
from collections import Counter

import pytest
import scipy  # its parts are imported when first asked for
from hypothesis import given
from hypothesis import strategies as st

from stallmark.errors import StallmarkError
from stallmark.own_sql import pgbench_functions
from stallmark.own_sql.pgbench_expressions import compile_expression
from stallmark.own_sql.pgbench_functions import ExpressionError, as_value, permute
from stallmark.own_sql.pgbench_scripts import Jump, Query, Set, Sleep, parse_script

BIG = st.integers(pgbench_functions.LEAST, pgbench_functions.MOST)


def value(text: str, **variables):
    return compile_expression(text)({"default_seed": 7, **variables}, random.Random(1))


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("1 + 2 * 3", 7),
        ("(1 + 2) * 3", 9),
        ("-5 / 2", -2),
        ("-5 % 3", -2),
        ("5 / -2", -2),
        ("2 - -3", 5),
        ("- 2 * 3", -6),
        ("1.5 + 1", 2.5),
        ("1.0 / 0", math.inf),
        ("7 / 2.0", 3.5),
        ("1 << 62", 2**62),
        ("~ 1 + 2", -4),
        ("1 | 2 + 4", 7),
        ("5 & 6 = 4", True),
        ("1 = 1.0", True),
        ("2 <> 3 and not 1 > 2", True),
        ("false and 1 / 0 = 1", False),
        ("true or 1 / 0 = 1", True),
        ("null + 1", None),
        ("null is null", True),
        ("1 is not null", True),
        ("1 isnull", False),
        ("true is false", False),
        ("case when 1 > 2 then 3 when null then 4 else 5 end", 5),
        ("case when 1 then 3 end", 3),
        ("greatest(1, 2.5, 2)", 2.5),
        ("least(3, 1, 2)", 1),
        ("int(2.5)", 2),
        ("int(3.5)", 4),
        ("double(2)", 2.0),
        ("abs(-4)", 4),
        ("mod(7, 3)", 1),
        ("pow(2, 10)", 1024.0),
        ("sqrt(2.25)", 1.5),
        (":a + :b", 5),
        ("-9223372036854775808", -(2**63)),
    ],
)
def test_expressions(text, expected):
    found = value(text, a=2, b="3")
    assert found == expected
    assert type(found) is type(expected)


@pytest.mark.parametrize(
    "text",
    ["1 / 0", "1 % 0", "9223372036854775807 + 1", "random(2, 1)", "random_zipfian(1, 10, 1)", "not 1", "1 and true",
     "random_gaussian(1, 10, 1.9)", "random_exponential(1, 10, 0)", "permute(1, 0, 1)", "abs(true)", ":t + 1"],
)  # fmt: skip
def test_what_has_no_value_says_so_as_it_runs(text):
    with pytest.raises(ExpressionError):
        value(text, t="x")


@pytest.mark.parametrize(
    "text", ["", "1 +", "(1", "1 2", "foo(1)", "random(1)", "case end", "1 ? 2", "hash()", "9" * 19]
)
def test_what_is_no_expression_is_refused_as_it_is_read(text):
    with pytest.raises(StallmarkError):
        compile_expression(text)


@given(BIG, BIG)
def test_integers_behave_as_those_of_64_bits(left, right):
    for sign, exact in (("+", left + right), ("-", left - right), ("*", left * right)):
        if pgbench_functions.LEAST <= exact <= pgbench_functions.MOST:
            assert value(f":l {sign} :r", l=left, r=right) == exact
        else:
            with pytest.raises(ExpressionError):
                value(f":l {sign} :r", l=left, r=right)
    if right and (left, right) != (pgbench_functions.LEAST, -1):
        quotient, remainder = value(":l / :r", l=left, r=right), value(":l % :r", l=left, r=right)
        assert quotient * right + remainder == left
        assert remainder == math.fmod(left, right) or abs(left) >= 2**53
        assert abs(remainder) < abs(right)


@given(st.integers(1, 300), BIG)
def test_permutations_have_each_number_once(size, seed):
    assert sorted(permute(number, size, seed) for number in range(size)) == list(range(size))


@given(BIG, BIG)
def test_hashes_are_bigints(number, seed):
    for name in ("hash", "hash_murmur2", "hash_fnv1a"):
        assert pgbench_functions.LEAST <= value(f"{name}(:n, :s)", n=number, s=seed) <= pgbench_functions.MOST
    assert value("hash(:n)", n=number) == value("hash_murmur2(:n, 7)", n=number)


def _p_value(draw, expected: list[float]) -> float:
    rng, count = random.Random(11), 40_000
    seen = Counter(draw(rng) for _ in range(count))
    total = sum(expected)
    observed = [seen[place] for place in range(1, len(expected) + 1)]
    assert sum(observed) == count
    return scipy.stats.chisquare(observed, [count * share / total for share in expected]).pvalue


@pytest.mark.thorough
def test_draws_have_the_distributions_that_pgbench_documents():
    low, high = 1, 50
    zipf = [k**-1.3 for k in range(low, high + 1)]
    assert _p_value(lambda rng: pgbench_functions.random_zipfian(rng, low, high, 1.3), zipf) > 1e-3
    exponential = [math.exp(-4 * (k - 1) / 50) - math.exp(-4 * k / 50) for k in range(low, high + 1)]
    assert _p_value(lambda rng: pgbench_functions.random_exponential(rng, low, high, 4.0), exponential) > 1e-3
    normal = scipy.stats.norm.cdf([2 * 3.0 * (k / 50) - 3.0 for k in range(high + 1)])
    shares = list(normal[1:] - normal[:-1])
    assert _p_value(lambda rng: pgbench_functions.random_gaussian(rng, low, high, 3.0), shares) > 1e-3
    assert _p_value(lambda rng: pgbench_functions.random_uniform(rng, low, high), [1.0] * 50) > 1e-3


@pytest.mark.parametrize(
    ("text", "expected"),
    [("7", 7), ("-7", -7), ("1.5", 1.5), ("null", None), ("TRUE", True), ("y", True), ("off", False), ("no", False)],
)
def test_texts_become_the_values_that_they_are_written_as(text, expected):
    assert as_value(text) == expected


SCRIPT = r"""-- a comment with \set in it
\set aid random(1, 100 * :scale)
BEGIN;
SELECT balance, 'it''s ;' FROM t WHERE aid = :aid \gset mine_
\if :mine_balance > 0
  UPDATE t SET balance = 0 WHERE aid = :aid;
\elif :mine_balance < 0
  \sleep 10 ms
\else
  \set delta case when :aid > 5 \
     then 1 else 2 end
\endif
END;
"""


def test_a_script_becomes_steps():
    steps = parse_script(SCRIPT)
    assert [type(step) for step in steps] == [Set, Query, Query, Jump, Query, Jump, Jump, Sleep, Jump, Set, Query]
    assert steps[2].prefix == "mine_"
    assert [step.statement.line for step in steps if isinstance(step, Query)] == [3, 4, 6, 13]
    assert [step.to for step in steps if isinstance(step, Jump)] == [6, 10, 9, 10]
    assert steps[7].unit_s == 1e-3


@pytest.mark.parametrize(
    ("text", "named"),
    [
        ("\\startpipeline\nSELECT 1;", "startpipeline"),
        ("SELECT 1 \\aset", "aset"),
        ("\\shell ls\nSELECT 1;", "shell"),
        ("\\setshell x ls\nSELECT 1;", "setshell"),
        ("SELECT 1 \\; SELECT 2;", "joins"),
        ("\\foo\nSELECT 1;", "foo"),
        ("\\set x foo(1)\nSELECT 1;", "line 1: foo()"),
        ("\\set x 1", "no statement"),
        ("SELECT :nothing;", "nothing has no value"),
        ("\\set x :y + 1\nSELECT 1;", "y has no value"),
        ("\\if true\nSELECT 1;", "no \\\\endif"),
        ("SELECT 1;\n\\endif", "line 2: \\\\endif has no"),
        ("\\if 1\n\\else\n\\else\n\\endif\nSELECT 1;", "follows"),
        ("\\sleep 1.5 s\nSELECT 1;", "sleep"),
        ("BEGIN;\nSELECT 1;", "leaves a transaction open"),
        ("\\gset", "follows a statement"),
        ("CREATE TABLE t (a int);", "CREATE"),
    ],
)
def test_what_a_load_cannot_have_is_refused_before_it(text, named):
    with pytest.raises(StallmarkError, match=named.replace("()", r"\(\)")):
        parse_script(text)
