"""SQL of a user's own on a PostgreSQL by URL is tried before the load: what is refused, and nothing stays."""

import json

import pytest
from support.command_line import stallmark
from support.own_sql import REFUSES, executed, workload_of

from stallmark.errors import StallmarkError
from stallmark.own_sql.command import STARTER
from stallmark.own_sql.examine import examine
from stallmark.own_sql.folder import read_definition
from stallmark.transactions import checks, define

pytestmark = pytest.mark.server


def test_every_statement_is_tried_with_its_types_and_nothing_stays(shop, engine):
    result = stallmark("check-sql", STARTER, "--server", shop, "--json")
    assert result.exit_code == 0, result.output
    tried = {(one["transaction"], one["line"]): one for one in json.loads(result.stdout)}
    assert tried["rent_film", 2]["types"] == ["integer"]
    assert tried["rent_film", 2]["text"].startswith("SELECT copy_id"), "without the comment above it"
    assert tried["rent_film", 2]["rows"] == 1
    assert tried["return_film", 9]["rows"] is None, "no rental was open"
    assert engine.query("SELECT count(*) FROM rental")[0][0] == 0


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


def test_a_slow_condition_is_tried_for_a_moment(empty, engine, monkeypatch):
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
        ("regclass", {"values": ["pg_class", "nowhere"]}, "'nowhere' in place 2"),
    ],
)  # fmt: skip
def test_a_value_that_does_not_fit_its_type_is_refused(type_name, source, named, empty, engine):
    engine.execute("DROP DOMAIN IF EXISTS even; CREATE DOMAIN even AS int CHECK (VALUE % 2 = 0)")
    engine.execute('DROP DOMAIN IF EXISTS "Odd one"; CREATE DOMAIN "Odd one" AS int CHECK (VALUE % 2 = 1)')
    look = {"sql": f"SELECT 1;\nSELECT :id::{type_name}", "parameters": {"id": source}}
    with pytest.raises(StallmarkError, match=r"look\.sql, line 2: :id is of type") as refused:
        examine(engine, workload_of(look=look))
    assert named in str(refused.value) and type_name in str(refused.value)


def test_values_of_every_type_that_the_server_takes_are_no_misfits(empty, engine):
    taken = {
        "integer": [1, "2", True and 3], "numeric": ["1.5", "NaN"], "boolean": [True, "f"], "bytea": ["\\x00"],
        "timestamp": ["2026-02-28 10:00"], "text": ["a\nb", "", 'q"\\', "ü"], '"char"': ["x"], "jsonb": ['{"a": 1}'],
        "int4range": ["[1,2)"], "varchar(3)": ["abcdef"], "xid": ["7"], "name": ["n"], "regclass": ["pg_class"],
    }  # fmt: skip
    for type_name, values in taken.items():
        sql = f"SELECT :id::{type_name}, :other::int"
        parameters = {"id": {"values": values}, "other": {"from": 1, "to": 3}}
        [tried] = examine(engine, workload_of(look={"sql": sql, "parameters": parameters}))
        assert tried.rows == 1


def test_the_row_of_a_file_is_named(empty, engine, tmp_path):
    folder = tmp_path / "mine"
    folder.mkdir()
    (folder / "look.sql").write_text("SELECT :a::int, :b::text")
    (folder / "workload.yaml").write_text("parameters:\n  b, a: {file: keys.csv, columns: [b, a]}\n")
    (folder / "keys.csv").write_text("a,b\n" + "".join(f"{n},x\n" for n in range(1, 60)) + ",x\n")
    result = stallmark("check-sql", folder, "--server", empty)
    assert result.exit_code == 3 and "does not take '' in row 60 of keys.csv" in " ".join(result.output.split())


def test_a_parameter_query_with_too_many_rows_is_not_read_to_its_end(empty, engine, monkeypatch):
    for module in ("engines.postgres.engine", "own_sql.parameter_sources"):
        monkeypatch.setattr(f"stallmark.{module}.MOST_READ", 1_000)
    sources = {"id": {"query": "SELECT generate_series(1, 100000000000)"}}
    with pytest.raises(StallmarkError, match="returns more than 1,000 rows"):
        examine(engine, workload_of(look={"sql": "SELECT :id::bigint", "parameters": sources}))
    sources = {"id": {"query": "SELECT generate_series(1, 1000)"}}
    examine(engine, workload_of(look={"sql": "SELECT :id::bigint", "parameters": sources}))


# Procedures that commit by themselves


PAY = (
    "CREATE TABLE word (a int); CREATE PROCEDURE pay(n int, INOUT last int) LANGUAGE plpgsql AS "
    "$$ BEGIN INSERT INTO word VALUES (n); COMMIT; INSERT INTO word VALUES (n + 1); last := n; END $$"
)


@pytest.mark.parametrize("sql", ["CALL pay(:n, 0)", "SELECT 1; CALL pay(:n, 0); INSERT INTO word VALUES (9)"])
def test_a_procedure_that_commits_is_prepared_and_called_in_the_load(sql, empty, engine):
    engine.execute(PAY)
    given = {"sql": sql, "one_transaction": False, "parameters": {"n": {"from": 3, "to": 3}}}
    workload = workload_of(buy=given)
    *_, tried = (one for one in examine(engine, workload) if one.text.startswith("CALL"))
    assert (tried.commits, tried.rows, tried.types) == (True, None, ["integer"])
    assert engine.query("SELECT * FROM word") == []
    executed(engine, workload)
    assert engine.query("SELECT a FROM word WHERE a < 9") == [(3,), (4,)]


def test_a_procedure_that_commits_is_refused_within_a_transaction(empty, engine):
    engine.execute(PAY)
    for given, remedy in (
        ({"sql": "SELECT 1; CALL pay(1, 0)"}, "write `one_transaction: false` below buy"),
        ({"sql": "BEGIN; CALL pay(1, 0); END;", "script": "pgbench"}, "call it outside BEGIN and END"),
    ):
        with pytest.raises(StallmarkError, match=rf"buy\.sql, line 1: its procedure commits by itself.*{remedy}"):
            examine(engine, workload_of(buy=given))
    [tried] = examine(engine, workload_of(buy={"sql": "CALL pay(1, 0);", "script": "pgbench"}))
    assert tried.commits


def test_check_sql_names_a_procedure_that_commits(empty, engine, tmp_path):
    engine.execute(PAY)
    folder = tmp_path / "mine"
    folder.mkdir()
    (folder / "buy.sql").write_text("SELECT 1;\nCALL pay(1, 0)")
    (folder / "workload.yaml").write_text("transactions:\n  buy: {one_transaction: false}\n")
    result = stallmark("check-sql", folder, "--server", empty)
    assert result.exit_code == 0, result.output
    assert "buy.sql, line 2 commits by itself: it was prepared, and not executed" in " ".join(result.output.split())
    result = stallmark("check-sql", folder, "--server", empty, "--json")
    assert [one["commits"] for one in json.loads(result.stdout)] == [False, True]


def test_users_apart_need_rows_enough(shop, engine):
    source = {"query": "SELECT film_id FROM film WHERE film_id < 3", "apart": True}
    workload = workload_of(look={"sql": "SELECT :id::int", "parameters": {"id": source}})
    examine(engine, workload, users=2)
    with pytest.raises(StallmarkError, match="apart"):
        examine(engine, workload, users=3)


def test_a_column_that_a_result_lacks_is_refused(empty, engine):
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


@pytest.mark.parametrize(
    ("sql", "named"),
    [
        ("SELECT 1 FROM login WHERE password::int = :p::int", r":p is of type integer, which does not take \(hidden\)"),
        ("SELECT 1 FROM login WHERE password = check_password(:p)", r"the server does not take it: not \(hidden\)!"),
    ],
)
def test_a_refusal_before_the_load_has_no_secret(sql, named, empty, engine):
    engine.execute(REFUSES + "; CREATE FUNCTION check_password(text) RETURNS text LANGUAGE plpgsql AS "
                   "$$ BEGIN RAISE 'not %!', $1; END $$; INSERT INTO login VALUES (1, 'x')")  # fmt: skip
    look = {"sql": sql, "parameters": {"p": {"values": ["hush-hush"]}}}
    with pytest.raises(StallmarkError, match=named) as refused:
        examine(engine, workload_of(look=look))
    assert "hush" not in str(refused.value)
