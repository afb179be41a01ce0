"""A folder of SQL read into a definition: what is right, and a sentence for each mistake."""

import json
import re
from pathlib import Path

import jsonschema
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from ruamel.yaml import YAML
from support.command_line import stallmark

from stallmark.errors import StallmarkError
from stallmark.own_sql.command import SCHEMA, STARTER, document, scripts_definition
from stallmark.own_sql.folder import MOST_FILE_ROWS, read_definition
from stallmark.own_sql.model import OwnSql, mistakes_in
from stallmark.own_sql.statements import Kind, split
from stallmark.scenarios.model import LoadsScenario, Scenario
from stallmark.scenarios.read import LoadOptions, read_document
from stallmark.transactions import define, find_workload

PARAMETERS = "parameters: {id: {from: 1, to: 9}}"


def folder(at: Path, yaml: str = "", **texts: str) -> Path:
    at.mkdir(exist_ok=True)
    for name, text in (texts or {"look": "SELECT 1"}).items():
        (at / f"{name}.sql").write_text(text)
    if yaml:
        (at / "workload.yaml").write_text(yaml)
    return at


def test_without_a_workload_yaml_each_file_is_a_transaction(tmp_path):
    found = read_definition(str(folder(tmp_path / "My Orders", a="SELECT 1", b="SELECT 2")))
    assert found["name"] == "my_orders"
    assert {name: one["weight"] for name, one in found["transactions"].items()} == {"a": 1, "b": 1}


def test_a_definition_is_read_again_as_it_is_and_needs_no_folder(tmp_path):
    found = read_definition(str(STARTER))
    again = json.loads(json.dumps(found))
    assert read_definition(again) == found
    workload = define(found)
    assert find_workload("shop") is workload
    assert define(read_definition(again)) is workload, "samples refer to its classes"
    assert {kind.name: cards for kind, cards in workload.users.deck.items()} == {
        "rent_film": 4, "return_film": 4, "browse_films": 10, "customer_history": 2,
    }  # fmt: skip
    reads = {kind.name for kind in workload.transactions if kind.reads_only}
    assert reads == {"browse_films", "customer_history"}


def test_the_example_in_t_sql_has_the_same_transactions(tmp_path):
    mine = tmp_path / "shop"
    assert stallmark("new", "--workload", mine, "--t-sql").exit_code == 0
    found, postgres = read_definition(str(mine)), read_definition(str(STARTER))
    assert {key for key in found if found[key] != postgres[key]} == {"setup", "transactions"}
    assert "LIMIT" not in json.dumps(found) and "IDENTITY" in found["setup"]
    examined = OwnSql.model_validate(found)
    for name, transaction in examined.transactions.items():
        assert not list(mistakes_in(examined, transaction, "mssql"))
        kinds = {statement.kind for statement in split(transaction.sql, "mssql")}
        assert (Kind.WRITE in kinds) is (name in ("rent_film", "return_film"))
    refused = stallmark("new", "--t-sql")
    assert refused.exit_code == 2 and "--workload" in refused.output


def test_another_text_is_another_version(tmp_path):
    made = []
    for text in ("SELECT 1", "SELECT 2"):
        made.append(define(read_definition(str(folder(tmp_path / "other", look=text)))))
    assert made[0].version != made[1].version
    assert made[0].data_version == made[1].data_version


def test_a_scenario_holds_the_definition(tmp_path):
    scenario = read_document(document(str(STARTER)))
    again = Scenario.model_validate(json.loads(json.dumps(scenario.model_dump(mode="json"))))
    assert again == scenario
    loads = {
        "name": "both", "loads": {"own": {"workload": {"sql": str(STARTER)}, "users": 2},
                                  "bank": {"workload": "bank", "scale": {"branches": 1}, "users": 1}},
        "measure": "1s", "variants": [{"name": "a"}],
    }  # fmt: skip
    both = LoadsScenario.model_validate(loads)
    assert both.contents.name == "bank+shop"
    assert LoadsScenario.model_validate(both.model_dump(mode="json")) == both


@pytest.mark.parametrize("kind", ["csv", "parquet"])
def test_rows_of_a_file_travel_with_the_definition(kind, tmp_path):
    yaml = f"parameters: {{'id, city': {{file: x.{kind}, columns: [key, city]}}}}"
    at = folder(tmp_path / "w", yaml, look="SELECT :id::int, :city::text")
    if kind == "csv":
        (at / "x.csv").write_text('city,key\n"Köln, West",1\nUlm,2\n', encoding="utf-8")
    else:
        pq.write_table(pa.table({"city": ["Köln, West", "Ulm"], "key": ["1", "2"]}), at / "x.parquet")
    found = read_definition(str(at))
    assert found["parameters"]["id, city"]["rows"] == [["1", "Köln, West"], ["2", "Ulm"]]


@pytest.mark.parametrize(
    ("yaml", "texts", "named"),
    [
        ("", {"look": "SELECT :id"}, "look.sql: line 1: :id has no source"),
        ("transactions: {look: 1, other: 1}", {}, "other has no file"),
        ("transactions: {look: 1}", {"look": "SELECT 1", "rest": "SELECT 1"}, "leaves out rest.sql"),
        ("transactions: {look: 0}", {}, "no transaction has a weight"),
        ("transactions: {look: many}", {}, "weight"),
        ("transactions: [look]", {}, "lists each"),
        ("primary: other", {}, "primary is other"),
        ("nothing: 1", {}, "nothing"),
        ("name: bank", {}, "is a workload of Stallmark's"),
        ("name: A+b", {}, "name"),
        ("parameters: {id: {}}", {"look": "SELECT :id"}, "one of the keys"),
        ("parameters: {id: {from: 3, to: 1}}", {"look": "SELECT :id"}, "empty range"),
        ("parameters: {id: {from: 1, to: 2.5}}", {"look": "SELECT :id"}, "decimals"),
        ("parameters: {id: {values: []}}", {"look": "SELECT :id"}, "values"),
        ("parameters: {id: {query: SELECT 1, draw: {zipf: 0}}}", {"look": "SELECT :id"}, "zipf"),
        ("parameters: {id: {result: 1}}", {"look": "SELECT :id"}, "does not come before this one"),
        ("parameters: {id: {result: 7}}", {"look": "SELECT 1; SELECT :id"}, "statement 7, and the last one is 2"),
        ("parameters: {id: {from: 1, to: 9, values: [1]}}", {"look": "SELECT :id"}, "exactly one of the keys"),
        ("parameters: {id: {from: 1, to: .inf, decimals: 2}}", {"look": "SELECT :id"}, "must be a number, not inf"),
        (
            "parameters: {id: {from: 1, to: 9, draw: even}}",
            {"look": "SELECT :id"},
            r"uniform or {zipf: …, normal: …, exponential: …}, not 'even'",
        ),
        ("parameters: {id: {time: {from: -9999999d}}}", {"look": "SELECT :id"}, "more than a hundred years away"),
        ("parameters: {id: {faker: Name}}", {"look": "SELECT :id"}, "small letters, digits and underscores"),
        ("parameters: [id]", {}, "parameters must be written as {…}, not a list"),
        ("parameters: {id: {file: 'data\\k.csv'}}", {"look": "SELECT :id"}, "Write its path with /"),
        ("transactions: {look: {rate: -1/s}}", {}, "must be more than 0, not '-1/s'"),
        ("transactions: {look: {rate: 2/s, weight: 3}, b: 1}", {"look": "SELECT 1", "b": "SELECT 2"}, "leave one"),
        (PARAMETERS, {"look": "\\set id 5\nSELECT :id;"}, r"line 1 has a `\\`, as commands of psql"),
        (PARAMETERS, {"look": "SELECT :'id'"}, "line 1 has :'id': write :name, which is bound"),
        (PARAMETERS, {"look": "SELECT 1\0"}, "has a character 0"),
        ("parameters: {'id, id': {query: SELECT 1}}", {"look": "SELECT :id"}, "two sources"),
        ("parameters: {'a b': {query: SELECT 1}}", {}, "is not a parameter's name"),
        ("parameters: {id: {file: none.csv}}", {"look": "SELECT :id"}, "is not there"),
        (PARAMETERS, {"look": "CREATE TABLE t (a int)"}, "CREATE changes tables"),
        (PARAMETERS, {"look": "SELECT 1;\n\nDROP TABLE t"}, "line 3: DROP"),
        (PARAMETERS, {"look": "BEGIN; SELECT 1; COMMIT"}, "is Stallmark's part"),
        (PARAMETERS, {"look": "USE other"}, "changes the database"),
        (PARAMETERS, {"look": "COPY t FROM STDIN"}, "cannot be a statement of a load"),
        (PARAMETERS, {"look": "SELECT 'a"}, "does not end"),
        (PARAMETERS, {"look": "-- nothing"}, "no statement"),
        (
            "transactions: {look: {isolation: serializable, one_transaction: false}}",
            {},
            "isolation is of one transaction",
        ),
        ("transactions: {look: {script: pgbench}}", {"look": "\\startpipeline\nSELECT 1;"}, "startpipeline"),
        ("a: [", {}, "not YAML"),
        ("- a", {}, "mapping"),
    ],
)
def test_each_mistake_has_a_sentence(yaml, texts, named, tmp_path):
    with pytest.raises(StallmarkError, match=named.replace("(", r"\(")) as refused:
        read_definition(str(folder(tmp_path / "w", yaml, **texts)))
    assert "\n" not in str(refused.value)


def test_a_folder_that_is_none_or_has_no_sql_is_refused(tmp_path):
    with pytest.raises(StallmarkError, match="is not a folder"):
        read_definition(str(tmp_path / "nowhere"))
    with pytest.raises(StallmarkError, match=r"no \.sql file"):
        read_definition(str(tmp_path))


def test_a_file_with_too_many_rows_is_refused(tmp_path):
    at = folder(tmp_path / "w", "parameters: {id: {file: x.csv}}", look="SELECT :id")
    (at / "x.csv").write_text("id\n" + "1\n" * (MOST_FILE_ROWS + 1))
    with pytest.raises(StallmarkError, match="at most"):
        read_definition(str(at))


@pytest.mark.parametrize(
    ("given", "reads_only"),
    [
        ({"sql": "SELECT comment, load FROM save"}, True),
        ({"sql": "SELECT 1\nUPDATE t SET a = 1"}, False),
        ({"sql": "SELECT [it's] FROM t"}, True),
        ({"sql": "BEGIN; SELECT 1; END", "script": "pgbench"}, True),
        ({"sql": "BEGIN READ WRITE; SELECT 1; END", "script": "pgbench"}, False),
    ],
)
def test_a_transaction_reads_only_if_it_does_in_each_dialect_that_has_it(given, reads_only):
    [kind] = define(read_definition({"name": "own", "transactions": {"look": given}})).transactions
    assert kind.reads_only is reads_only


CSV = "parameters: {id: {file: k.csv}}"


@pytest.mark.parametrize(
    ("name", "content", "rows"),
    [
        ("blank lines", "id\n1\n\n2\n\n", [["1"], ["2"]]),
        ("spaces around a header", " id , b\n1,2\n", [["1"]]),
        ("lines in a value", 'id\n"a\nb"\n', [["a\nb"]]),
        ("another system's ends of lines", "\ufeffid\r\n1\r\n2\r\n", [["1"], ["2"]]),
    ],
)
def test_a_csv_file_is_read_as_other_programs_read_it(name, content, rows, tmp_path):
    at = folder(tmp_path / "w", CSV, look="SELECT :id")
    (at / "k.csv").write_bytes(content.encode())
    assert read_definition(str(at))["parameters"]["id"]["rows"] == rows


@pytest.mark.parametrize(
    ("content", "named"),
    [
        ("", "k.csv is empty: it begins with a line of the names"),
        ("id;b\n1;2\n", "no column id: there are id;b. Separate them by commas"),
        ("id,id\n1,2\n", "two columns id"),
        ("id\n" + "x" * 200_000, "line 2: it is not CSV that can be read"),
        ("id\n1\0", "has a character 0"),
        ("id,b\n1\n", "line 2: it has another number of values"),
    ],
)
def test_a_csv_file_that_cannot_be_is_refused_in_a_sentence(content, named, tmp_path):
    at = folder(tmp_path / "w", CSV, look="SELECT :id")
    (at / "k.csv").write_text(content)
    with pytest.raises(StallmarkError, match=named):
        read_definition(str(at))


def test_columns_of_a_file_are_a_list(tmp_path):
    at = folder(tmp_path / "w", "parameters: {id: {file: k.csv, columns: id}}", look="SELECT :id")
    (at / "k.csv").write_text("id\n1\n")
    with pytest.raises(StallmarkError, match=r"columns of id is a list: write `columns: \[id\]`"):
        read_definition(str(at))


def test_a_file_in_capitals_is_a_transaction_and_an_empty_one_is_not(tmp_path):
    at = folder(tmp_path / "w", look="SELECT 1")
    (at / "OTHER.SQL").write_text("SELECT 2")
    assert set(read_definition(str(at))["transactions"]) == {"look", "OTHER"}
    (at / "empty.sql").write_text(" \n")
    with pytest.raises(StallmarkError, match=r"empty\.sql is empty: write a statement, or remove it"):
        read_definition(str(at))
    (at / "empty.sql").unlink()
    (at / "conditions").write_text("SELECT 1")
    with pytest.raises(StallmarkError, match="conditions cannot be read as a folder"):
        read_definition(str(at))


def test_ends_of_a_range_may_be_written_as_powers(tmp_path):
    found = read_definition(str(folder(tmp_path / "w", "parameters: {id: {from: 1.0, to: 1e6}}", look="SELECT :id")))
    assert found["parameters"]["id"]["from"] == 1 and found["parameters"]["id"]["to"] == 1_000_000


def test_a_mistake_names_a_file_that_is_there(tmp_path):
    with pytest.raises(StallmarkError, match=r"/w: look\.sql: line 1"):
        read_definition(str(folder(tmp_path / "w", look="SELECT :id")))
    with pytest.raises(StallmarkError, match=r"/v/workload\.yaml: look\.sql: line 1"):
        read_definition(str(folder(tmp_path / "v", "transactions: {look: 1}", look="SELECT :id")))


def test_scripts_have_weights_and_variables(tmp_path):
    (tmp_path / "a.sql").write_text("SELECT :x;")
    (tmp_path / "b@c.sql").write_text("SELECT 1;")
    found = read_definition(scripts_definition([f"{tmp_path}/a.sql@3", f"{tmp_path}/b@c.sql"], ["x=5"]))
    assert {name: one["weight"] for name, one in found["transactions"].items()} == {"a": 3, "b_c": 1}
    assert found["define"] == {"x": "5"}
    with pytest.raises(StallmarkError, match="x has no value"):
        read_definition(scripts_definition([f"{tmp_path}/a.sql"], []))


@pytest.mark.parametrize("query", ["UPDATE film SET id = 1 RETURNING id", "DROP TABLE film", "SELECT 1; SELECT 2", "'"])
def test_a_query_for_parameters_and_a_condition_only_read(query, tmp_path):
    parameters = {"id": {"query": query}}
    with pytest.raises(StallmarkError, match="the query for id is not one SELECT"):
        read_definition({"name": "a", "transactions": {"look": {"sql": "SELECT :id"}}, "parameters": parameters})
    with pytest.raises(StallmarkError, match=r"conditions/c\.sql is not one SELECT"):
        read_definition({"name": "a", "transactions": {"look": {"sql": "SELECT 1"}}, "conditions": {"c": query}})


def test_a_misspelt_key_is_guessed():
    for given in ({"wieght": 3}, {"weight": -1}, {"weight": 1, "limit": "soon"}):
        with pytest.raises(StallmarkError) as refused:
            read_definition({"name": "a", "transactions": {"look": {"sql": "SELECT 1"} | given}})
        assert not re.search(r"Input|Extra|permitted", str(refused.value))
    with pytest.raises(StallmarkError, match=r"unknown key transactions\.look\.wieght: did you mean weight"):
        read_definition({"name": "a", "transactions": {"look": {"sql": "SELECT 1", "wieght": 3}}})


@pytest.mark.parametrize(
    ("rate", "per_s"), [("20/s", 20), ("90/min", 1.5), (" 18 / h", 0.005), ("0.5/s", 0.5), ("3", 3), (7, 7)]
)
def test_a_rate_is_per_second_minute_or_hour(rate, per_s):
    given = {"name": "a", "transactions": {"look": {"sql": "SELECT 1"}, "order": {"sql": "SELECT 2", "rate": rate}}}
    definition = read_definition(given)
    assert read_definition(definition) == definition, "a record has it so"
    workload = define(definition)
    assert {kind.name: at for kind, at in workload.background.rates.items()} == {"order": pytest.approx(per_s)}
    assert [kind.name for kind in workload.users.deck] == ["look"]


@pytest.mark.parametrize(
    ("keys", "reason"),
    [
        ({"rate": "20"}, ""),
        ({"rate": "20/d"}, "'20/d' is not a rate"),
        ({"rate": "fast"}, "'fast' is not a rate"),
        ({"rate": "0/s"}, "greater than 0|more than 0"),
        ({"rate": "20/s", "every": "1s"}, "rate and every are two ways"),
    ],
)
def test_a_rate_that_is_none_is_refused(keys, reason):
    given = {"name": "a", "transactions": {"look": {"sql": "SELECT 1"}, "order": {"sql": "SELECT 2"} | keys}}
    if not reason:
        read_definition(given)
        return
    with pytest.raises(StallmarkError, match=reason):
        read_definition(given)


def test_rates_of_all_transactions_are_the_rate_of_the_load():
    transactions = {name: {"sql": "SELECT 1", "rate": rate} for name, rate in (("a", "20/s"), ("b", "90/min"))}
    with pytest.raises(StallmarkError, match=r"weights in proportion to the rates, .* --rate 21\.5"):
        read_definition({"name": "own", "transactions": transactions})


@pytest.mark.parametrize("key", [{"every": "1s"}, {"rate": "1/s"}])
@pytest.mark.parametrize(
    ("more", "way"), [({"apart": True}, "apart for each user"), ({"draw": "in order"}, "drawn in order by users")]
)
def test_a_transaction_that_no_user_starts_has_no_rows_of_a_user(key, more, way):
    given = {"sql": "SELECT :id", "parameters": {"id": {"query": "SELECT 1"} | more}} | key
    with pytest.raises(StallmarkError, match=f":id is {way}"):
        read_definition({"name": "a", "transactions": {"tidy": given, "look": {"sql": "SELECT 1"}}})


# The options that own SQL adds to commands: what they take, and what they refuse before anything begins


def test_a_new_workload_is_a_copy_and_replaces_nothing(tmp_path):
    folder = tmp_path / "mine"
    assert stallmark("new", "--workload", folder).exit_code == 0
    assert read_definition(str(folder))["name"] == "mine"
    named = (folder / "workload.yaml").read_text().splitlines()[0].partition("$schema=")[2]
    assert Path(named).samefile(SCHEMA)
    again = stallmark("new", "--workload", folder)
    assert again.exit_code == 3 and "holds something" in again.output
    assert stallmark("new").exit_code == 2


def test_a_quick_run_is_a_scenario_that_set_changes(tmp_path):
    (tmp_path / "look.sql").write_text("SELECT 1")
    scenario = read_document(document(str(tmp_path)), ("warm_up=1s", "call_timeout=5s"), LoadOptions(7, 12.0, 50.0))
    assert (scenario.users, scenario.measure, scenario.reset) == ([7], 12.0, "continue")
    assert (scenario.warm_up, scenario.call_timeout, scenario.arrivals.rate) == (1.0, 5.0, 50.0)


@pytest.mark.parametrize(
    ("override", "named"),
    [
        ("think_time=-1s", "--set think_time=-1s: think_time must be written as {mean: …, kind: …}, not '-1s'"),
        ("call_timeout=0s", "--set call_timeout=0s: call_timeout must be at least 100ms"),
        ("measure=5", "--set measure=5: measure: 5 has no unit"),
        ("bufer_pool=1GiB", "unknown key bufer_pool: did you mean buffer_pool"),
    ],
)
def test_a_wrong_key_of_a_quick_run_is_named_with_its_option(override, named):
    given = {"name": "own", "transactions": {"look": {"sql": "SELECT 1"}}}
    with pytest.raises(StallmarkError, match=named):
        read_document(document(given), [override])


def test_a_secret_of_a_script_may_come_from_the_environment(monkeypatch, tmp_path):
    (script := tmp_path / "a.sql").write_text("SELECT :db_password;")
    monkeypatch.setenv("STALLMARK_RUN_DEFINE", "db_password=hush")
    monkeypatch.setenv("STALLMARK_SERVER", "postgresql://me@127.0.0.1:1/none")
    result = stallmark("run", "-f", script)
    assert result.exit_code == 3 and "No connection" in result.output and "hush" not in result.output


@pytest.mark.parametrize(
    ("given", "code", "named"),
    [
        (("--sql", "a", "-f", "b.sql"), 2, "two loads"),
        (("--sql", "a", "-D", "x=1"), 2, "--define"),
        (("-f", "b.sql", "-D", "x"), 2, "name=value"),
        (("-f", "b.sql", "-D", "db_password=hush"), 2, "the list of processes: set STALLMARK_RUN_DEFINE"),
        (("-f", "b.sql", "-D", "place=postgresql://me:hush@db/x"), 2, "holds a secret"),
        (("-f", "nowhere.sql"), 3, "cannot be read"),
        (("--sql", "nowhere"), 3, "is not a folder"),
        (("demo", "--sql", "nowhere"), 2, "leave out"),
        (("--sql", "nowhere", "-T", "soon"), 2, "--duration"),
    ],
)
def test_what_cannot_be_is_refused(given, code, named):
    result = stallmark("run", *given)
    assert result.exit_code == code and named in " ".join(result.output.split()) and "hush" not in result.output


# The JSON schema of workload.yaml


FULL = """
transactions:
  place_order: {weight: 4, isolation: repeatable read, limit: 500ms}
  browse: 10
  arrive: {rate: 20/s}
  clean_up: {every: 10s, parameters: {age: {from: 1, to: 9, decimals: 2}}}
primary: place_order
parameters:
  customer, region: {query: "SELECT id, region FROM customer ORDER BY id", draw: {zipf: 0.9}, apart: true}
  key: {file: keys.csv, columns: [id]}
  now: {time: now}
  day: {time: {from: -30d, to: 0s}, as: date}
  name: {faker: name, locale: de_DE, distinct: 1000}
  order_id: {result: 1}
"""


def test_it_takes_what_folders_say_and_refuses_what_they_must_not():
    shown = stallmark("schema", "--workload")
    schema = json.loads(shown.stdout)
    validator = jsonschema.Draft202012Validator(schema)
    validator.check_schema(schema)
    for text in (FULL, (STARTER / "workload.yaml").read_text(), "{}"):
        validator.validate(YAML(typ="safe").load(text))
    for wrong in ({"transaction": {}}, {"transactions": {"look": {"sql": "SELECT 1"}}}, {"transactions": {"look": "x"}},
                  {"parameters": {"id": {"from": "a", "to": 2}}}, {"setup": "x"}):  # fmt: skip
        with pytest.raises(jsonschema.ValidationError):
            validator.validate(wrong)
    assert json.loads(SCHEMA.read_text()) == schema, "stallmark schema --workload > …/workload.schema.json"
    properties = [one for definition in schema["$defs"].values() for one in definition.get("properties", {}).values()]
    assert len(properties) > 25
