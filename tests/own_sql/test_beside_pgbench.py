"""Scripts of pgbench beside pgbench itself, on one server: row effects, draws and expressions are the same."""

import os
import random
import re
import subprocess
from collections import Counter

import pytest
import scipy  # its parts are imported when first asked for
from support.clusters import ClusterEngine
from support.own_sql import executed

from stallmark.own_sql.command import scripts_definition
from stallmark.own_sql.folder import read_definition
from stallmark.own_sql.pgbench_expressions import compile_expression
from stallmark.own_sql.pgbench_functions import random_exponential, random_gaussian, random_zipfian
from stallmark.transactions import define

pytestmark = pytest.mark.server


TPCB = r"""
\set aid random(1, 1000 * :scale)
\set bid random(1, 1 * :scale)
\set tid random(1, 10 * :scale)
\set delta random(-5000, 5000)
BEGIN;
UPDATE acc SET balance = balance + :delta WHERE id = :aid;
SELECT balance FROM acc WHERE id = :aid;
UPDATE tel SET balance = balance + :delta WHERE id = :tid;
UPDATE bra SET balance = balance + :delta WHERE id = :bid;
INSERT INTO his (tid, bid, aid, delta, mtime) VALUES (:tid, :bid, :aid, :delta, CURRENT_TIMESTAMP);
END;
"""


def pgbench(engine: ClusterEngine, script, times: int, *options: str) -> str:
    cluster = engine.cluster
    argv = [*cluster.prefix, cluster.binaries / "pgbench", "-n", "-M", "prepared", "-f", script, "-t", str(times)]
    done = subprocess.run(
        [*argv, *options, "-h", cluster.folder, "-U", "stallmark", "postgres"],
        env=os.environ | {"PGOPTIONS": "-c synchronous_commit=off"},  # thousands of commits, none of which is to last
        capture_output=True, text=True, check=True,
    )  # fmt: skip
    return done.stdout + done.stderr


def test_a_script_has_the_row_effects_that_it_has_in_pgbench(empty, engine, tmp_path):
    script = tmp_path / "tpcb.sql"
    script.write_text(TPCB)
    for table, rows in (("acc", 2000), ("tel", 20), ("bra", 2)):
        engine.execute(f"CREATE TABLE {table} (id int PRIMARY KEY, balance int NOT NULL)")
        engine.execute(f"INSERT INTO {table} SELECT n, 0 FROM generate_series(1, {rows}) n")
    engine.execute("CREATE TABLE his (tid int, bid int, aid int, delta int, mtime timestamp)")

    def effects():
        sums = [engine.query(f"SELECT sum(balance) FROM {table}")[0][0] for table in ("acc", "tel", "bra")]
        [history] = engine.query("SELECT count(*), sum(delta), min(aid), max(aid), max(bid), max(tid) FROM his")
        assert set(sums) == {history[1]}
        return history

    pgbench(engine, script, 200, "-D", "scale=2")
    theirs = effects()
    executed(engine, define(read_definition(scripts_definition([str(script)], ["scale=2"]))), 200)
    both = effects()
    assert (theirs[0], both[0]) == (200, 400)
    assert both[4:] == (2, 20)


DRAWS = {
    "random_zipfian(1, 40, 1.2)": lambda rng: random_zipfian(rng, 1, 40, 1.2),
    "random_exponential(1, 40, 3.0)": lambda rng: random_exponential(rng, 1, 40, 3.0),
    "random_gaussian(1, 40, 2.5)": lambda rng: random_gaussian(rng, 1, 40, 2.5),
}


@pytest.mark.parametrize("text", DRAWS)
def test_draws_are_distributed_as_those_of_pgbench(text, empty, engine, tmp_path):
    engine.execute("DROP TABLE IF EXISTS drawn; CREATE TABLE drawn (n int)")
    script = tmp_path / "draw.sql"
    script.write_text("\\set n " + text + "\n" + "INSERT INTO drawn VALUES (:n);\n" * 1)
    pgbench(engine, script, 4000, "--random-seed=7")
    theirs = Counter(value for (value,) in engine.query("SELECT n FROM drawn"))
    rng = random.Random(7)
    ours = Counter(DRAWS[text](rng) for _ in range(4000))
    shared = [n for n in range(1, 41) if theirs[n] + ours[n] >= 20]
    assert len(shared) > 10
    assert scipy.stats.chi2_contingency([[one[n] for n in shared] for one in (theirs, ours)]).pvalue > 1e-3


EXPRESSIONS = [
    "-7 / 2", "-7 % 4", "7.5 / 2", "int(2.5)", "hash(42, 7)", "hash_fnv1a(-42, 7)", "hash_murmur2(0, -1)",
    "~ 1 + 2", "1 << 40", "5 # 3 | 8", "case when 0 then 1 when 2 > 1 then 3 end", "greatest(1, 2.5)", "pi()",
    "sqrt(2)", "2 <> 2 or 3 >= 3", "null is null", "pow(2, 0.5)", "abs(-3)", "mod(-9, 4)", "not 1 = 2 and true",
]  # fmt: skip


PERMUTED = ((0, 10, 1), (5, 1000, -3), (77, 2**40, 99), (1, 2, 5))


EXPRESSIONS += [f"permute({number}, {size}, {seed})" for number, size, seed in PERMUTED]


def test_expressions_have_the_values_that_pgbench_gives_them(empty, engine, tmp_path):
    texts = EXPRESSIONS
    script = tmp_path / "debug.sql"
    script.write_text("".join(f"\\set v{n} debug({text})\n" for n, text in enumerate(texts)) + "SELECT 1;\n")
    shown = re.findall(r"debug\(.*?\): (\w+) ?(.*)", pgbench(engine, script, 1))
    assert len(shown) == len(texts)
    for text, (kind, theirs) in zip(texts, shown, strict=True):
        ours = compile_expression(text)({}, random.Random(1))
        said = {bool: "boolean", int: "int", float: "double", type(None): "null"}[type(ours)]
        assert said == kind, text
        if kind == "double":
            assert f"{ours:.15g}" == theirs, text
        elif kind != "null":
            assert str(ours).lower() == theirs, text
