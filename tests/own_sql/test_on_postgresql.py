"""SQL of a user's own on a PostgreSQL by URL: tried, driven and recorded; nothing of ours is left in the database."""

import json
import random
import re
import subprocess
import sys
from collections import Counter
from contextlib import closing, nullcontext, suppress
from pathlib import Path

import psutil
import pytest
from scipy import stats
from support.clusters import ClusterEngine
from support.command_line import stallmark
from support.remote import free_port
from support.waiting import eventually

from stallmark.engines.base import ROWS_AT_ONCE, Isolation
from stallmark.errors import CallFailed, ErrorClass, StallmarkError
from stallmark.own_sql.examine import examine
from stallmark.own_sql.folder import read_definition
from stallmark.own_sql.new_options import STARTER
from stallmark.own_sql.pgbench.expressions import compile_expression
from stallmark.own_sql.pgbench.functions import random_exponential, random_gaussian, random_zipfian
from stallmark.own_sql.run_options import scripts_definition
from stallmark.own_sql.transaction import OwnTransaction
from stallmark.record.reader import find_records
from stallmark.transactions import checks, define
from stallmark.transactions.workload import Outcome, WorkloadContext

pytestmark = pytest.mark.server


@pytest.fixture
def shop(engine: ClusterEngine):
    """The URL of a database with the shop in it, of which nothing is left afterwards."""
    engine.execute("DROP SCHEMA IF EXISTS public CASCADE; CREATE SCHEMA public")
    engine.execute((STARTER / "setup.sql").read_text())
    yield engine.cluster.url()
    engine.execute("DROP SCHEMA public CASCADE; CREATE SCHEMA public")


def workload_of(**transactions):
    return define(read_definition({"name": "own", "transactions": transactions}))


def test_every_statement_is_tried_with_its_types_and_nothing_stays(shop, engine):
    result = stallmark("check-sql", STARTER, "--server", shop, "--json")
    assert result.exit_code == 0, result.output
    tried = {(one["transaction"], one["line"]): one for one in json.loads(result.stdout)}
    assert tried["rent_film", 2]["types"] == ["integer"]
    assert tried["rent_film", 2]["text"].startswith("SELECT copy_id"), "without the comment above it"
    assert tried["rent_film", 2]["rows"] == 1
    assert tried["return_film", 9]["rows"] is None, "no rental was open"
    assert engine.query("SELECT count(*) FROM rental")[0][0] == 0


def test_a_quick_run_is_recorded_and_its_report_needs_no_folder(shop, engine, tmp_path):
    folder = tmp_path / "mine"
    assert stallmark("new", "--workload", folder).exit_code == 0
    given = ("run", "--sql", folder, "--server", shop, "--users", 3, "--duration", "2s", "--out", tmp_path / "runs")
    refused = stallmark(*given)
    assert refused.exit_code == 3 and "--shared" in refused.output
    result = stallmark(*given, "--shared", "--json", "--set", "warm_up=0s")
    assert result.exit_code == 0, result.output
    for file in sorted(folder.rglob("*.*"), reverse=True):
        file.unlink()
    [run] = json.loads(result.stdout)["runs"]
    assert {one["name"] for one in run["steps"][0]["transactions"]} >= {"rent_film", "browse_films"}
    executed = {one["name"]: one for one in run["steps"][0]["own_statements"]}
    assert executed["browse_films 1"]["executions"] > 0 and 9 < executed["browse_films 1"]["rows"] <= 10
    assert executed["rent_film 2"]["rows"] == 1, "changed"
    assert executed["browse_films 1"]["text"].startswith("SELECT film_id") and executed["rent_film 2"]["line"] == 3
    again = stallmark("report", next((tmp_path / "runs").iterdir()), "--json")
    assert again.exit_code == 0 and json.loads(again.stdout)["runs"][0]["steps"]
    # Whole transactions: the condition of the folder, and a customer's count.
    assert engine.query((STARTER / "conditions/copies_out.sql").read_text()) == []
    [(rented, counted)] = engine.query("SELECT (SELECT count(*) FROM rental), sum(rentals) FROM customer")
    assert rented == counted > 0
    assert engine.query("SELECT nspname FROM pg_namespace WHERE nspname = 'stallmark'") == []


THINKS = ("--set", "think_time={mean: 50ms}")


def scheduled_run(shop, folder, yaml: str, *options: str):
    """Run a folder for five seconds, and return its step."""
    folder.mkdir()
    for name, sql in (("look", "SELECT 1"), ("order", "SELECT 2"), ("slow", "SELECT pg_sleep(0.4)")):
        (folder / f"{name}.sql").write_text(sql)
    (folder / "workload.yaml").write_text(f"transactions: {yaml}")
    given = ("run", "--sql", folder, "--server", shop, "-c", 3, "-T", 5, "--out", folder / "runs")
    result = stallmark(*given, "--json", "--set", "warm_up=1s", *(options or THINKS))
    assert result.exit_code == 0, result.output
    [run] = json.loads(result.stdout)["runs"]
    return run["steps"][0]


def test_a_rate_is_kept_beside_the_users(shop, tmp_path):
    step = scheduled_run(shop, tmp_path / "kept", "{look: 1, order: {rate: 40/s}, slow: {every: 1s}}")
    ended = {kind["name"]: (kind["committed"], kind["source"]) for kind in step["transactions"]}
    assert ended["order"] == (pytest.approx(200, abs=10), "rate") and ended["slow"][0] in (4, 5, 6)
    assert ended["look"][0] > 100
    assert "background_lag" not in {finding["kind"] for finding in step["invalid"]}
    [gate] = [gate for gate in step["gates"] if gate["name"] == "background_lag"]
    assert gate["passed"] and "missed" not in gate["facts"]


@pytest.mark.parametrize(
    ("yaml", "missed"),
    [("{look: 1, order: 0, slow: {rate: 20/s}}", False), ("{look: 1, order: 0, slow: {every: 200ms}}", True)],
)
def test_a_schedule_that_is_not_kept_makes_a_step_invalid(shop, tmp_path, yaml, missed):
    """Three sessions do 7.5 per second of those that take 0.4 s; a timer's one session 2.5."""
    step = scheduled_run(shop, tmp_path / "missed", yaml)
    [finding] = [finding for finding in step["invalid"] if finding["kind"] == "background_lag"]
    if missed:
        [[name, ended, due]] = finding["facts"]["missed"]
        assert name == "slow" and 5 < ended < 20 and due == 25
    else:
        assert finding["facts"]["value"] > 0.5 and finding["facts"]["grows"]


@pytest.mark.parametrize(
    ("yaml", "options"),
    [("{look: 1, order: 0, slow: {rate: 20/s}}", THINKS), ("{look: 0, order: 0, slow: 1}", ("--rate", 20))],
)
def test_arrivals_that_no_session_is_free_for_are_missed(yaml, options, shop, tmp_path):
    """Three sessions do 7.5 per second: of the other 12.5 each waits for a second, and is given up."""
    step = scheduled_run(shop, tmp_path / "mine", yaml, *options, "--set", "call_timeout=1s")
    [slow] = [kind for kind in step["transactions"] if kind["name"] == "slow"]
    [missed] = [error for error in step["errors"] if error["error_class"] == "missed"]
    assert missed["transaction"] == "slow" and missed["attempts"] == missed["given_up"] == slow["failed"]
    assert slow["committed"] == pytest.approx(37, abs=8) and slow["failed"] == pytest.approx(62, abs=25)
    assert "transactions_failed" in {finding["kind"] for finding in step["invalid"]}


@pytest.mark.parametrize(
    ("sql", "named"),
    [
        ("SELECT nothing FROM film", "line 1: the server does not take it"),
        ("SELECT 1;\nSELECT * FROM nowhere", "line 2"),
        ("SELECT 1\nSELECT 2", r"\(42601\). If a second statement begins on a later line, end the one before"),
        ("SELECT $1::int", r"line 1 has a `\$1`: write :name"),
        ("SELECT 1 / 0", "division by zero"),
        ("SELECT 'x'::integer", "invalid input"),
        ("SELECT write_a_row()", "its words do not show that: write `reads_only: false`"),
        ({"sql": "UPDATE film SET minutes = 1", "reads_only": True}, "line 1: it writes: leave out `reads_only: true`"),
        ({"sql": "\\if 1\nBEGIN;\n\\endif\nSELECT 1;", "script": "pgbench"}, r"^look\.sql: it leaves a transaction"),
        ({"sql": "SELECT :id::int", "parameters": {"id": {"query": "SELECT 1 FROM write_a_row()"}}},
         "The query for id writes"),
    ],
)  # fmt: skip
def test_what_the_server_does_not_take_is_refused_before_the_load(sql, named, shop, engine):
    engine.execute(
        "CREATE FUNCTION write_a_row() RETURNS void LANGUAGE sql AS $$ INSERT INTO film VALUES (0, '', 0, '') $$"
    )
    with pytest.raises(StallmarkError, match=named):
        examine(engine, workload_of(look={"sql": sql} if isinstance(sql, str) else sql))


@pytest.mark.parametrize("isolation", ["read committed", "repeatable read"])
@pytest.mark.parametrize(
    "sql",
    ["SELECT write_above(:n::int)", "SELECT 1; SELECT write_above(:n::int)", "BEGIN; SELECT write_above(:n); END;"],
)
def test_a_write_that_the_trial_does_not_meet_is_refused_in_the_load(sql, isolation, shop, engine):
    engine.execute(
        "CREATE TABLE word (id int); CREATE FUNCTION write_above(n int) RETURNS void LANGUAGE plpgsql AS "
        "$$ BEGIN IF n > 3 THEN INSERT INTO word VALUES (n); END IF; END $$"
    )
    parameters = {"n": {"values": [1, 2, 3, 4], "draw": "in order"}}
    look = {"sql": sql, "parameters": parameters, "isolation": isolation}
    if sql.startswith("BEGIN"):
        look = {"sql": "\\set n 4\n" + sql, "script": "pgbench"}
    else:
        examine(engine, workload_of(look=look))
    with pytest.raises(CallFailed, match=r"look\.sql, line \d: .*read-only") as refused:
        executed(engine, workload_of(look=look), 4)
    assert refused.value.kind is ErrorClass.OTHER, "no server was lost"
    assert engine.query("SELECT * FROM word") == []
    executed(engine, workload_of(look=look | {"reads_only": False}), 4)
    assert engine.query("SELECT DISTINCT id FROM word") == [(4,)]


def test_a_slow_condition_is_tried_for_a_moment(shop, engine, monkeypatch):
    monkeypatch.setattr("stallmark.own_sql.examine.CONDITION_S", 0.1)
    given = {"name": "own", "transactions": {"look": {"sql": "SELECT 1"}}}
    slow = {"slow": "SELECT pg_sleep(100000)::text", "wrong": "SELECT 1 / 0"}
    with pytest.raises(StallmarkError, match=r"conditions/wrong\.sql, within FROM \(…\): .*division by zero"):
        examine(engine, define(read_definition(given | {"conditions": slow})))


def test_changed_rows_are_counted_in_the_trial(shop, engine):
    sql = "UPDATE film SET title = '' WHERE film_id < 4; DELETE FROM customer WHERE false; SELECT * FROM film LIMIT 7"
    assert [one.rows for one in examine(engine, workload_of(change={"sql": sql}))] == [3, 0, 7]


def test_a_condition_that_writes_is_refused(shop, engine):
    engine.execute(
        "CREATE FUNCTION write_a_row() RETURNS int LANGUAGE sql AS "
        "$$ INSERT INTO film VALUES (0, '', 0, '') RETURNING 1 $$"
    )
    given = {"name": "own", "transactions": {"look": {"sql": "SELECT 1"}}}
    workload = define(read_definition(given | {"conditions": {"well": "SELECT write_a_row()"}}))
    with pytest.raises(StallmarkError, match=r"conditions/well\.sql: it writes, by a function"):
        examine(engine, workload)
    [finding] = checks.run(engine, workload, {}, driven=True)
    assert finding.holds is None and "read-only" in finding.refused
    assert engine.query("SELECT * FROM film WHERE film_id = 0") == []


@pytest.mark.parametrize(
    ("type_name", "source", "named"),
    [
        ("integer", {"values": [*range(500), "seven", *range(500)]}, "'seven' in place 501 of its values"),
        ("integer", {"values": [1, 2**31]}, "'2147483648' in place 2"),
        ("smallint", {"from": 1, "to": 40_000}, "'40000' of its source"),
        ("integer", {"from": 1, "to": 2, "decimals": 1}, "'1.0' of its source"),
        ("date", {"values": ["2026-02-28", None, "2026-02-29"]}, "'2026-02-29' in place 3"),
        ("uuid", {"faker": "name", "distinct": 20}, "of its source"),
        ("integer", {"query": "SELECT CASE n WHEN 77 THEN 'x' ELSE n::text END FROM generate_series(1, 90) n"},
         "'x' of its query"),
        ("even", {"values": [2, 4, 5]}, "'5' in place 3"),
        ('"Odd one"', {"values": [2]}, "'2' in place 1"),
        ("boolean[]", {"values": ["{t,f}", "{t"]}, "in place 2"),
        # Errors of other classes than 22: a syntax error, and a table that is not there.
        ("tsquery", {"values": ["a & b", "a b"]}, "'a b' in place 2"),
        ("regclass", {"values": ["film", "nowhere"]}, "'nowhere' in place 2"),
    ],
)  # fmt: skip
def test_a_value_that_does_not_fit_its_type_is_refused(type_name, source, named, shop, engine):
    engine.execute("DROP DOMAIN IF EXISTS even; CREATE DOMAIN even AS int CHECK (VALUE % 2 = 0)")
    engine.execute('DROP DOMAIN IF EXISTS "Odd one"; CREATE DOMAIN "Odd one" AS int CHECK (VALUE % 2 = 1)')
    look = {"sql": f"SELECT 1;\nSELECT :id::{type_name}", "parameters": {"id": source}}
    with pytest.raises(StallmarkError, match=r"look\.sql, line 2: :id is of type") as refused:
        examine(engine, workload_of(look=look))
    assert named in str(refused.value) and type_name in str(refused.value)


def test_values_of_every_type_that_the_server_takes_are_no_misfits(shop, engine):
    taken = {
        "integer": [1, "2", True and 3], "numeric": ["1.5", "NaN"], "boolean": [True, "f"], "bytea": ["\\x00"],
        "timestamp": ["2026-02-28 10:00"], "text": ["a\nb", "", 'q"\\', "ü"], '"char"': ["x"], "jsonb": ['{"a": 1}'],
        "int4range": ["[1,2)"], "varchar(3)": ["abcdef"], "xid": ["7"], "name": ["n"], "regclass": ["film"],
    }  # fmt: skip
    for type_name, values in taken.items():
        sql = f"SELECT :id::{type_name}, :other::int"
        parameters = {"id": {"values": values}, "other": {"from": 1, "to": 3}}
        [tried] = examine(engine, workload_of(look={"sql": sql, "parameters": parameters}))
        assert tried.rows == 1


def test_the_row_of_a_file_is_named(shop, engine, tmp_path):
    folder = tmp_path / "mine"
    folder.mkdir()
    (folder / "look.sql").write_text("SELECT :a::int, :b::text")
    (folder / "workload.yaml").write_text("parameters:\n  b, a: {file: keys.csv, columns: [b, a]}\n")
    (folder / "keys.csv").write_text("a,b\n" + "".join(f"{n},x\n" for n in range(1, 60)) + ",x\n")
    result = stallmark("check-sql", folder, "--server", shop)
    assert result.exit_code == 3 and "does not take '' in row 60 of keys.csv" in " ".join(result.output.split())


def test_a_parameter_query_with_too_many_rows_is_not_read_to_its_end(shop, engine, monkeypatch):
    for module in ("engines.postgres.engine", "own_sql.sources"):
        monkeypatch.setattr(f"stallmark.{module}.MOST_READ", 1_000)
    sources = {"id": {"query": "SELECT generate_series(1, 100000000000)"}}
    with pytest.raises(StallmarkError, match="returns more than 1,000 rows"):
        examine(engine, workload_of(look={"sql": "SELECT :id::bigint", "parameters": sources}))
    sources = {"id": {"query": "SELECT generate_series(1, 1000)"}}
    examine(engine, workload_of(look={"sql": "SELECT :id::bigint", "parameters": sources}))


# Procedures that commit by themselves.

PAY = (
    "CREATE TABLE word (a int); CREATE PROCEDURE pay(n int, INOUT last int) LANGUAGE plpgsql AS "
    "$$ BEGIN INSERT INTO word VALUES (n); COMMIT; INSERT INTO word VALUES (n + 1); last := n; END $$"
)


@pytest.mark.parametrize("sql", ["CALL pay(:n, 0)", "SELECT 1; CALL pay(:n, 0); INSERT INTO word VALUES (9)"])
def test_a_procedure_that_commits_is_prepared_and_called_in_the_load(sql, shop, engine):
    engine.execute(PAY)
    given = {"sql": sql, "one_transaction": False, "parameters": {"n": {"from": 3, "to": 3}}}
    workload = workload_of(buy=given)
    *_, tried = (one for one in examine(engine, workload) if one.text.startswith("CALL"))
    assert (tried.commits, tried.rows, tried.types) == (True, None, ["integer"])
    assert engine.query("SELECT * FROM word") == []
    executed(engine, workload)
    assert engine.query("SELECT a FROM word WHERE a < 9") == [(3,), (4,)]


def test_a_procedure_that_commits_is_refused_within_a_transaction(shop, engine):
    engine.execute(PAY)
    for given, remedy in (
        ({"sql": "SELECT 1; CALL pay(1, 0)"}, "write `one_transaction: false` below buy"),
        ({"sql": "BEGIN; CALL pay(1, 0); END;", "script": "pgbench"}, "call it outside BEGIN and END"),
    ):
        with pytest.raises(StallmarkError, match=rf"buy\.sql, line 1: its procedure commits by itself.*{remedy}"):
            examine(engine, workload_of(buy=given))
    [tried] = examine(engine, workload_of(buy={"sql": "CALL pay(1, 0);", "script": "pgbench"}))
    assert tried.commits


def test_check_sql_names_a_procedure_that_commits(shop, engine, tmp_path):
    engine.execute(PAY)
    folder = tmp_path / "mine"
    folder.mkdir()
    (folder / "buy.sql").write_text("SELECT 1;\nCALL pay(1, 0)")
    (folder / "workload.yaml").write_text("transactions:\n  buy: {one_transaction: false}\n")
    result = stallmark("check-sql", folder, "--server", shop)
    assert result.exit_code == 0, result.output
    assert "buy.sql, line 2 commits by itself: it was prepared, and not executed" in " ".join(result.output.split())
    result = stallmark("check-sql", folder, "--server", shop, "--json")
    assert [one["commits"] for one in json.loads(result.stdout)] == [False, True]


def test_users_apart_need_rows_enough(shop, engine):
    source = {"query": "SELECT film_id FROM film WHERE film_id < 3", "apart": True}
    workload = workload_of(look={"sql": "SELECT :id::int", "parameters": {"id": source}})
    examine(engine, workload, users=2)
    with pytest.raises(StallmarkError, match="apart"):
        examine(engine, workload, users=3)


def executed(engine, workload, times: int = 1, seed: int = 1, report=lambda samples: None):
    """Execute the one transaction of a workload."""
    context = WorkloadContext({}, seed, engine.query, lambda *_: None, report_statements=report)
    shared = workload.users.share(context)
    [kind] = workload.transactions
    assert issubclass(kind, OwnTransaction)
    transaction, rng = kind(shared), random.Random(seed)
    # Closed after an error, too: the traceback keeps a session alive, and later tests count the sessions of users.
    with closing(engine.session(30.0)) as session:
        workload.prepare(session, [kind])
        return [transaction.execute(session, transaction.inputs(rng)) for _ in range(times)]


def test_parameters_are_bound_and_never_pasted(shop, engine):
    engine.execute("CREATE TABLE word (id int, w text)")
    evil = "'); DROP TABLE word; --"
    sql = "INSERT INTO word VALUES (1, :w); UPDATE word SET w = w || :w WHERE w = :w"
    executed(engine, workload_of(write={"sql": sql, "parameters": {"w": {"values": [evil]}}}))
    assert engine.query("SELECT w FROM word") == [(evil + evil,)]


def test_a_transaction_is_whole_or_each_statement_by_itself(shop, engine):
    engine.execute("CREATE TABLE word (id int PRIMARY KEY)")
    sql = "INSERT INTO word VALUES (:n); INSERT INTO word SELECT 1 / (:n::int - 7)"
    parameters = {"n": {"from": 7, "to": 7}}
    for one_transaction, rows in ((True, []), (False, [(7,)])):
        workload = workload_of(write={"sql": sql, "parameters": parameters, "one_transaction": one_transaction})
        with pytest.raises(CallFailed, match=r"write\.sql, line 1: .*division by zero"):
            executed(engine, workload)
        assert engine.query("SELECT * FROM word") == rows


def test_a_source_of_a_transaction_goes_before_one_of_all(shop, engine):
    engine.execute("CREATE TABLE word (a int, b int, c int, d int)")
    write = {
        "sql": "SELECT 5, 6; INSERT INTO word VALUES (:a, :b, :c, :d)",
        "parameters": {"a": {"values": [10]}, "c": {"values": [30]}},
    }
    shared = {"a, b": {"query": "SELECT 1, 2"}, "c, d": {"result": 1}}
    given = {"name": "own", "transactions": {"write": write}, "parameters": shared}
    executed(engine, define(read_definition(given)))
    assert engine.query("SELECT * FROM word") == [(10, 2, 30, 6)]


@pytest.mark.parametrize(
    "given",
    [
        {"sql": "SELECT n, repeat('x', 100) FROM generate_series(1, 300000) AS n; SELECT :n::int",
         "parameters": {"n": {"result": 1}}},
        {"sql": "SELECT n, repeat('x', 100) FROM generate_series(1, 300000) AS n", "one_transaction": False},
        {"sql": "INSERT INTO word SELECT n, repeat('x', 100) FROM generate_series(1, 300000) AS n RETURNING *;"
                "INSERT INTO word VALUES (:n, '')", "parameters": {"n": {"result": 1}}},
    ],
)  # fmt: skip
def test_many_rows_are_counted_and_not_kept(given, shop, engine):
    engine.execute("CREATE TABLE word (id int, w text)")
    reported: list[int] = []
    Path("/proc/self/clear_refs").write_text("5")  # the peak of memory begins anew
    before = peak_kb()
    assert executed(engine, workload_of(look=given), 2, report=reported.extend) == [Outcome.COMMITTED] * 2
    assert reported[1] == 300_000, "rows of the first statement"
    # Kept whole, they would be 40 MB or more, which the process gives back at the end.
    assert peak_kb() - before < 20_000


def peak_kb() -> int:
    """The most memory of this process since its peak began anew."""
    return int(re.search(r"VmHWM:\s+(\d+) kB", Path("/proc/self/status").read_text())[1])


def test_the_first_row_of_many_is_read(shop, engine):
    engine.execute("CREATE TABLE word (a int, b text)")
    sql = "SELECT n, 'w' || n FROM generate_series(7, 90000) AS n; INSERT INTO word VALUES (:a, :b)"
    executed(engine, workload_of(look={"sql": sql, "parameters": {"a, b": {"result": 1}}}))
    assert engine.query("SELECT * FROM word") == [(7, "w7")]


@pytest.mark.parametrize(("rows", "said"), [(1, None), (0, "0 came"), (2, "2 came"), (90_000, "90,000 came")])
def test_a_script_keeps_the_one_row(rows, said, shop, engine):
    sql = f"SELECT n AS my, 5 AS five FROM generate_series(4, {rows + 3}) AS n \\gset a_\nSELECT :a_my::int, :a_five;"
    workload = workload_of(look={"sql": sql, "script": "pgbench"})
    if not said:
        assert [one.rows for one in examine(engine, workload)] == [1, 1]
        assert executed(engine, workload) == [Outcome.COMMITTED]
        return
    with pytest.raises(StallmarkError, match=f"expects one row, and {said}"):
        examine(engine, workload)


@pytest.mark.parametrize("in_transaction", [True, False])
def test_rows_are_counted_up_to_an_error_and_the_session_goes_on(in_transaction, shop, engine):
    session = engine.session(30.0)
    session.prepare("count", "SELECT 1 / (5000 - n) FROM generate_series(1, $1::int) AS n")
    engine.execute("CREATE TABLE word (a int)")
    session.prepare("insert", "INSERT INTO word VALUES ($1)")
    session.prepare("isolation", "SHOW transaction_isolation")
    opened = session.transaction(Isolation.SERIALIZABLE) if in_transaction else nullcontext()
    count, rows = session.call_head("count", (4999,))
    assert count == 4999 and len(rows) == ROWS_AT_ONCE
    with pytest.raises(CallFailed, match="division by zero"), opened:
        assert session.call_head("insert", (1,)) == (1, [])
        assert list(session.call_head("isolation", ())[1]) == [
            ("serializable" if in_transaction else "read committed",)
        ]
        session.call_head("count", (9000,))
    assert session.count("count", (3,)) == 3
    session.close()
    assert engine.query("SELECT count(*) FROM word") == [(0 if in_transaction else 1,)]


def test_a_connection_that_is_lost_under_rows_is_of_unknown_outcome_or_lost(shop, engine):
    for commits, kind in ((True, ErrorClass.UNKNOWN_OUTCOME), (False, ErrorClass.CONNECTION_LOST)):
        session = engine.session(30.0)
        session.prepare("end", "SELECT n, pg_terminate_backend(pg_backend_pid()) FROM generate_series(1, $1::int) AS n")
        with pytest.raises(CallFailed) as failed:
            session.call_head("end", (9000,), commits=commits)
        assert session.is_lost and failed.value.kind in (kind, ErrorClass.CONNECTION_LOST)


# Secrets: in no message, record or report.

REFUSES = """
CREATE TABLE login (id int, password text);
CREATE FUNCTION refuse(text) RETURNS text LANGUAGE plpgsql AS $$ BEGIN
    IF current_setting('application_name') <> 'stallmark-check' AND $1 LIKE 'hush%' THEN RAISE 'not %!', $1; END IF;
    RETURN $1; END $$
"""
LOG_IN = "INSERT INTO login (id, password) VALUES (:id, refuse(:p))"


@pytest.mark.parametrize(
    "look",
    [
        {"sql": LOG_IN},
        {"sql": f"SELECT 1; {LOG_IN}"},
        {"sql": "SELECT refuse(:password)", "parameters": {"password": {"values": ["hush-hush"]}}},
        {"sql": "\\set id 5\n" + LOG_IN, "script": "pgbench"},
        {"sql": "SELECT 1;\n" + LOG_IN, "script": "pgbench"},
    ],
)
def test_an_error_of_the_load_has_no_secret(look, shop, engine):
    engine.execute(REFUSES)
    sources = {"id": {"from": 1, "to": 9}, "p": {"values": ["hush-hush", "hush-hush-2"]}}
    more = {"define": {"p": "hush-hush", "id": 1}} if "script" in look else {"parameters": sources}
    workload = define(read_definition({"name": "own", "transactions": {"look": look}} | more))
    with pytest.raises(CallFailed, match=r"look\.sql, line \d: not \(hidden\)!"):
        executed(engine, workload)


@pytest.mark.parametrize(
    ("sql", "named"),
    [
        ("SELECT 1 FROM login WHERE password::int = :p::int", r":p is of type integer, which does not take \(hidden\)"),
        ("SELECT 1 FROM login WHERE password = check_password(:p)", r"the server does not take it: not \(hidden\)!"),
    ],
)
def test_a_refusal_before_the_load_has_no_secret(sql, named, shop, engine):
    engine.execute(REFUSES + "; CREATE FUNCTION check_password(text) RETURNS text LANGUAGE plpgsql AS "
                   "$$ BEGIN RAISE 'not %!', $1; END $$; INSERT INTO login VALUES (1, 'x')")  # fmt: skip
    look = {"sql": sql, "parameters": {"p": {"values": ["hush-hush"]}}}
    with pytest.raises(StallmarkError, match=named) as refused:
        examine(engine, workload_of(look=look))
    assert "hush" not in str(refused.value)


def test_a_record_has_no_secret(shop, engine, tmp_path):
    engine.execute(REFUSES)
    folder = tmp_path / "mine"
    folder.mkdir()
    (folder / "log_in.sql").write_text(f"{LOG_IN} -- password: hush-1")
    (folder / "look.sql").write_text("SELECT 1 FROM login WHERE password = 'hush-2' AND id = 7")
    (folder / "k.csv").write_text("id,p\n1,hush-3\n2,open-4\n")
    (folder / "workload.yaml").write_text("parameters: {'id, p': {file: k.csv}}")
    checked = stallmark("check-sql", folder, "--server", shop, "--json")
    assert checked.exit_code == 0 and "hush" not in checked.output, checked.output
    given = (
        "run",
        "--sql",
        folder,
        "--server",
        shop,
        "--shared",
        "-c",
        1,
        "-T",
        1,
        "--out",
        tmp_path / "runs",
        "--json",
    )
    result = stallmark(*given, "--set", "warm_up=0s")
    assert "hush" not in result.output and "not (hidden)!" in result.output
    [record] = find_records([next((tmp_path / "runs").iterdir())])
    made = record.manifest.model_dump_json()
    assert "hush" not in made and "open-4" not in made and made.count("(hidden)") >= 4
    failed = record.table("errors").to_pylist()
    assert failed and not [row for row in failed if "hush" in row["message"]]


# Beside pgbench itself, on one server.

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
        capture_output=True, text=True, check=True,
    )  # fmt: skip
    return done.stdout + done.stderr


def test_a_script_has_the_row_effects_that_it_has_in_pgbench(shop, engine, tmp_path):
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
def test_draws_are_distributed_as_those_of_pgbench(text, shop, engine, tmp_path):
    engine.execute("DROP TABLE IF EXISTS drawn; CREATE TABLE drawn (n int)")
    script = tmp_path / "draw.sql"
    script.write_text("\\set n " + text + "\n" + "INSERT INTO drawn VALUES (:n);\n" * 1)
    pgbench(engine, script, 4000, "--random-seed=7")
    theirs = Counter(value for (value,) in engine.query("SELECT n FROM drawn"))
    rng = random.Random(7)
    ours = Counter(DRAWS[text](rng) for _ in range(4000))
    shared = [n for n in range(1, 41) if theirs[n] + ours[n] >= 20]
    assert len(shared) > 10
    assert stats.chi2_contingency([[one[n] for n in shared] for one in (theirs, ours)]).pvalue > 1e-3


EXPRESSIONS = [
    "-7 / 2", "-7 % 4", "7.5 / 2", "int(2.5)", "hash(42, 7)", "hash_fnv1a(-42, 7)", "hash_murmur2(0, -1)",
    "~ 1 + 2", "1 << 40", "5 # 3 | 8", "case when 0 then 1 when 2 > 1 then 3 end", "greatest(1, 2.5)", "pi()",
    "sqrt(2)", "2 <> 2 or 3 >= 3", "null is null", "pow(2, 0.5)", "abs(-3)", "mod(-9, 4)", "not 1 = 2 and true",
]  # fmt: skip
PERMUTED = ((0, 10, 1), (5, 1000, -3), (77, 2**40, 99), (1, 2, 5))
EXPRESSIONS += [f"permute({number}, {size}, {seed})" for number, size, seed in PERMUTED]


def test_expressions_have_the_values_that_pgbench_gives_them(shop, engine, tmp_path):
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


# Processes of their own: load machines, and a driver that is killed.


def command(*arguments, cwd) -> subprocess.Popen:
    argv = [sys.executable, "-m", "stallmark.cli.main", *map(str, arguments)]
    return subprocess.Popen(argv, cwd=cwd, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)


def test_a_killed_driver_leaves_whole_transactions_alone(shop, engine, tmp_path):
    run = command("run", "--sql", STARTER, "--server", shop, "--shared", "-c", 4, "-T", 60, cwd=tmp_path)
    try:
        eventually(lambda: run.poll() is not None or engine.query("SELECT count(*) > 200 FROM rental")[0][0])
        assert run.poll() is None, run.communicate()[0]
    finally:
        for process in [*psutil.Process(run.pid).children(recursive=True), psutil.Process(run.pid)]:
            with suppress(psutil.NoSuchProcess):
                process.kill()
        run.wait()
    sessions = "SELECT count(*) = 0 FROM pg_stat_activity WHERE application_name LIKE 'stallmark-user%'"
    eventually(lambda: engine.query(sessions)[0][0])
    assert engine.query((STARTER / "conditions/copies_out.sql").read_text()) == []
    [(rented, counted)] = engine.query("SELECT (SELECT count(*) FROM rental), sum(rentals) FROM customer")
    assert rented == counted > 200


def test_a_load_machine_needs_no_folder(shop, tmp_path):
    port = free_port()
    (elsewhere := tmp_path / "elsewhere").mkdir()
    worker = command("worker", "--server", shop, "--master-host", "127.0.0.1", "--master-port", port, cwd=elsewhere)
    try:
        given = ("--server", shop, "--shared", "-c", 2, "-T", 2, "--out", tmp_path / "runs", "--json")
        machines = ("--expect-workers", 1, "--master-bind-host", "127.0.0.1", "--master-bind-port", port)
        result = stallmark("run", "--sql", STARTER, *given, *machines)
    finally:
        worker.terminate()
        said, _ = worker.communicate(timeout=30)
    assert result.exit_code == 0, result.output + said
    [run] = json.loads(result.stdout)["runs"]
    assert run["steps"][0]["tps"] > 0 and sum(one["executions"] for one in run["steps"][0]["own_statements"]) > 0


def test_a_column_that_a_result_lacks_is_refused(shop, engine):
    given = {"sql": "SELECT 1; SELECT :id::int", "parameters": {"id": {"result": 1, "column": 3}}}
    with pytest.raises(StallmarkError, match="line 1: it returns 1 columns, and a parameter is of column 3"):
        examine(engine, workload_of(look=given))


def test_a_condition_and_a_parameter_query_are_tried_before_the_load(shop, engine):
    given = {"name": "own", "transactions": {"look": {"sql": "SELECT :id::int"}}}
    for keys, reason in (
        ({"conditions": {"held": "SELECT nothing FROM film"}, "parameters": {"id": {"from": 1, "to": 2}}}, "held.sql"),
        ({"parameters": {"id": {"query": "SELECT nothing FROM film"}}}, "The query for id failed: column"),
    ):
        with pytest.raises(StallmarkError, match=reason):
            examine(engine, define(read_definition(given | keys)))
