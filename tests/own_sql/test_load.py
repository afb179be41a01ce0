"""SQL of a user's own on a PostgreSQL by URL: what a load executes, and what is recorded; nothing of ours is left."""

import json
import re
import subprocess
import sys
from contextlib import nullcontext, suppress
from pathlib import Path

import psutil
import pytest
from support.command_line import stallmark
from support.own_sql import REFUSES, executed, newest, workload_of
from support.waiting import eventually

from stallmark.engines.base import ROWS_AT_ONCE, Isolation
from stallmark.errors import CallFailed, ErrorClass, StallmarkError
from stallmark.own_sql.command import STARTER
from stallmark.own_sql.examine import examine
from stallmark.own_sql.folder import read_definition
from stallmark.record.reader import find_records
from stallmark.transactions import define
from stallmark.transactions.workload import Outcome

pytestmark = pytest.mark.server
THINKS = ("--set", "think_time={mean: 50ms}")


@newest
def test_a_quick_run_is_recorded_and_its_report_needs_no_folder(shop, engine, tmp_path):
    folder = tmp_path / "mine"
    assert stallmark("new", "--workload", folder).exit_code == 0
    given = ("run", "--sql", folder, "--server", shop, "--users", 3, "--duration", "2s", "--out", tmp_path / "runs")
    refused = stallmark(*given)
    assert refused.exit_code == 3 and "--shared" in refused.output
    result = stallmark(*given, "--shared", "--json", "--set", "warm_up=0s", *THINKS)
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


def scheduled_run(empty, folder, yaml: str, *options: str):
    """Run a folder for five seconds, and return its step."""
    folder.mkdir()
    for name, sql in (("look", "SELECT 1"), ("order", "SELECT 2"), ("slow", "SELECT pg_sleep(0.4)")):
        (folder / f"{name}.sql").write_text(sql)
    (folder / "workload.yaml").write_text(f"transactions: {yaml}")
    given = ("run", "--sql", folder, "--server", empty, "-c", 3, "-T", 5, "--out", folder / "runs")
    result = stallmark(*given, "--json", "--set", "warm_up=1s", *(options or THINKS))
    assert result.exit_code == 0, result.output
    [run] = json.loads(result.stdout)["runs"]
    return run["steps"][0]


@newest
def test_a_rate_is_kept_beside_the_users(empty, tmp_path):
    step = scheduled_run(empty, tmp_path / "kept", "{look: 1, order: {rate: 40/s}, slow: {every: 1s}}")
    ended = {kind["name"]: (kind["committed"], kind["source"]) for kind in step["transactions"]}
    assert ended["order"] == (pytest.approx(200, abs=10), "rate") and ended["slow"][0] in (4, 5, 6)
    assert ended["look"][0] > 100
    assert "background_lag" not in {finding["kind"] for finding in step["invalid"]}
    [gate] = [gate for gate in step["gates"] if gate["name"] == "background_lag"]
    assert gate["passed"] and "missed" not in gate["facts"]


@newest
@pytest.mark.parametrize(
    ("yaml", "missed"),
    [("{look: 1, order: 0, slow: {rate: 20/s}}", False), ("{look: 1, order: 0, slow: {every: 200ms}}", True)],
)
def test_a_schedule_that_is_not_kept_makes_a_step_invalid(empty, tmp_path, yaml, missed):
    """Three sessions do 7.5 per second of those that take 0.4 s; a timer's one session 2.5."""
    step = scheduled_run(empty, tmp_path / "missed", yaml)
    [finding] = [finding for finding in step["invalid"] if finding["kind"] == "background_lag"]
    if missed:
        [[name, ended, due]] = finding["facts"]["missed"]
        assert name == "slow" and 5 < ended < 20 and due == 25
    else:
        assert finding["facts"]["value"] > 0.5 and finding["facts"]["grows"]


@newest
@pytest.mark.parametrize(
    ("yaml", "options"),
    [("{look: 1, order: 0, slow: {rate: 20/s}}", THINKS), ("{look: 0, order: 0, slow: 1}", ("--rate", 20))],
)
def test_arrivals_that_no_session_is_free_for_are_missed(yaml, options, empty, tmp_path):
    """Three sessions do 7.5 per second: of the other 12.5 each waits for a second, and is given up."""
    step = scheduled_run(empty, tmp_path / "mine", yaml, *options, "--set", "call_timeout=1s")
    [slow] = [kind for kind in step["transactions"] if kind["name"] == "slow"]
    [missed] = [error for error in step["errors"] if error["error_class"] == "missed"]
    assert missed["transaction"] == "slow" and missed["attempts"] == missed["given_up"] == slow["failed"]
    assert slow["committed"] == pytest.approx(37, abs=8) and slow["failed"] == pytest.approx(62, abs=25)
    assert "transactions_failed" in {finding["kind"] for finding in step["invalid"]}


@pytest.mark.parametrize("isolation", ["read committed", "repeatable read"])
@pytest.mark.parametrize(
    "sql",
    ["SELECT write_above(:n::int)", "SELECT 1; SELECT write_above(:n::int)", "BEGIN; SELECT write_above(:n); END;"],
)
def test_a_write_that_the_trial_does_not_meet_is_refused_in_the_load(sql, isolation, empty, engine):
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


def test_parameters_are_bound_and_never_pasted(empty, engine):
    engine.execute("CREATE TABLE word (id int, w text)")
    evil = "'); DROP TABLE word; --"
    sql = "INSERT INTO word VALUES (1, :w); UPDATE word SET w = w || :w WHERE w = :w"
    executed(engine, workload_of(write={"sql": sql, "parameters": {"w": {"values": [evil]}}}))
    assert engine.query("SELECT w FROM word") == [(evil + evil,)]


def test_a_transaction_is_whole_or_each_statement_by_itself(empty, engine):
    engine.execute("CREATE TABLE word (id int PRIMARY KEY)")
    sql = "INSERT INTO word VALUES (:n); INSERT INTO word SELECT 1 / (:n::int - 7)"
    parameters = {"n": {"from": 7, "to": 7}}
    for one_transaction, rows in ((True, []), (False, [(7,)])):
        workload = workload_of(write={"sql": sql, "parameters": parameters, "one_transaction": one_transaction})
        with pytest.raises(CallFailed, match=r"write\.sql, line 1: .*division by zero"):
            executed(engine, workload)
        assert engine.query("SELECT * FROM word") == rows


def test_a_source_of_a_transaction_goes_before_one_of_all(empty, engine):
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
def test_many_rows_are_counted_and_not_kept(given, empty, engine):
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


def test_the_first_row_of_many_is_read(empty, engine):
    engine.execute("CREATE TABLE word (a int, b text)")
    sql = "SELECT n, 'w' || n FROM generate_series(7, 90000) AS n; INSERT INTO word VALUES (:a, :b)"
    executed(engine, workload_of(look={"sql": sql, "parameters": {"a, b": {"result": 1}}}))
    assert engine.query("SELECT * FROM word") == [(7, "w7")]


@pytest.mark.parametrize(("rows", "said"), [(1, None), (0, "0 came"), (2, "2 came"), (90_000, "90,000 came")])
def test_a_script_keeps_the_one_row(rows, said, empty, engine):
    sql = f"SELECT n AS my, 5 AS five FROM generate_series(4, {rows + 3}) AS n \\gset a_\nSELECT :a_my::int, :a_five;"
    workload = workload_of(look={"sql": sql, "script": "pgbench"})
    if not said:
        assert [one.rows for one in examine(engine, workload)] == [1, 1]
        assert executed(engine, workload) == [Outcome.COMMITTED]
        return
    with pytest.raises(StallmarkError, match=f"expects one row, and {said}"):
        examine(engine, workload)


@pytest.mark.parametrize("in_transaction", [True, False])
def test_rows_are_counted_up_to_an_error_and_the_session_goes_on(in_transaction, empty, engine):
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


def test_a_connection_that_is_lost_under_rows_is_of_unknown_outcome_or_lost(empty, engine):
    for commits, kind in ((True, ErrorClass.UNKNOWN_OUTCOME), (False, ErrorClass.CONNECTION_LOST)):
        session = engine.session(30.0)
        session.prepare("end", "SELECT n, pg_terminate_backend(pg_backend_pid()) FROM generate_series(1, $1::int) AS n")
        with pytest.raises(CallFailed) as failed:
            session.call_head("end", (9000,), commits=commits)
        assert session.is_lost and failed.value.kind in (kind, ErrorClass.CONNECTION_LOST)


@newest
def test_a_killed_driver_leaves_whole_transactions_alone(shop, engine, tmp_path):
    options = ("--server", shop, "--shared", "-c", "4", "-T", "60")
    command = [sys.executable, "-m", "stallmark.cli.main", "run", "--sql", STARTER, *options]
    run = subprocess.Popen(command, cwd=tmp_path, stdout=subprocess.DEVNULL)
    try:
        eventually(lambda: run.poll() is not None or engine.query("SELECT count(*) > 200 FROM rental")[0][0])
        assert run.poll() is None
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


# Secrets: in no message, record or report.

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
def test_an_error_of_the_load_has_no_secret(look, empty, engine):
    engine.execute(REFUSES)
    sources = {"id": {"from": 1, "to": 9}, "p": {"values": ["hush-hush", "hush-hush-2"]}}
    more = {"define": {"p": "hush-hush", "id": 1}} if "script" in look else {"parameters": sources}
    workload = define(read_definition({"name": "own", "transactions": {"look": look}} | more))
    with pytest.raises(CallFailed, match=r"look\.sql, line \d: not \(hidden\)!"):
        executed(engine, workload)


@newest
def test_a_record_has_no_secret(empty, engine, tmp_path):
    engine.execute(REFUSES)
    folder = tmp_path / "mine"
    folder.mkdir()
    (folder / "log_in.sql").write_text(f"{LOG_IN} -- password: hush-1")
    (folder / "look.sql").write_text("SELECT 1 FROM login WHERE password = 'hush-2' AND id = 7")
    (folder / "k.csv").write_text("id,p\n1,hush-3\n2,open-4\n")
    (folder / "workload.yaml").write_text("parameters: {'id, p': {file: k.csv}}")
    checked = stallmark("check-sql", folder, "--server", empty, "--json")
    assert checked.exit_code == 0 and "hush" not in checked.output, checked.output
    given = (
        "run",
        "--sql",
        folder,
        "--server",
        empty,
        "--shared",
        "-c",
        1,
        "-T",
        1,
        "--out",
        tmp_path / "runs",
        "--json",
    )
    result = stallmark(*given, "--set", "warm_up=0s", *THINKS)
    assert "hush" not in result.output and "not (hidden)!" in result.output
    [record] = find_records([next((tmp_path / "runs").iterdir())])
    made = record.manifest.model_dump_json()
    assert "hush" not in made and "open-4" not in made and made.count("(hidden)") >= 4
    failed = record.table("errors").to_pylist()
    assert failed and not [row for row in failed if "hush" in row["message"]]
