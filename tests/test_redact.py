"""No secret survives in a text, in whatever form it is written."""

import html
import json
import shlex
from urllib.parse import quote, quote_plus

import pytest
from hypothesis import given
from hypothesis import strategies as st
from sqlalchemy.engine import URL

from stallmark import redact
from stallmark.engines.mssql.address import Address
from stallmark.engines.mssql.odbc import Driver

# Not of letters alone: such a one may be a word of the text around it.
PASSWORDS = st.text(st.characters(codec="utf-8", categories=("L", "N", "P", "S")), min_size=7, max_size=24).map(
    lambda text: text + "7}'\""
)


def written(password: str) -> dict[str, str]:
    """Outputs that hold a password, by how it is written in them."""
    address = Address("db", 1433, None, "bank", "sa", password, {})
    return {
        "plain": f"login failed ({password})",
        "url": f"no connection to postgresql://me:{quote(password, safe='')}@db/bank",
        "our url": URL.create("mssql", "sa", password, "db").render_as_string(hide_password=False),
        "form": f"user=me&pass={quote_plus(password)}",
        "odbc": address.connection_string(Driver("ODBC Driver 18 for SQL Server"), "test"),
        "sql": "ALTER LOGIN sa WITH PASSWORD = N'" + password.replace("'", "''") + "'",
        "libpq": "host=db password='" + password.replace("\\", "\\\\").replace("'", "\\'") + "'",
        "json": json.dumps({"password": password}),
        "python": repr({"password": password}),
        "shell": f"sshpass -p {shlex.quote(password)} ssh array",
    }


@given(PASSWORDS)
def test_a_password_that_we_were_given_is_hidden_in_every_form(password):
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("PGPASSWORD", password)
        redacted, forms = redact.Redactor({}, [], password), redact.forms(password)
        for form, text in written(password).items():
            for said in (redact.without_secrets(text), redacted(text)):
                assert not any(one in said for one in forms), form


HARD = "p}w'7\"\\&<ü 1"


@pytest.mark.parametrize(
    "encoded",
    [
        HARD, quote(HARD), quote(HARD, safe=""), quote_plus(HARD), quote(HARD).lower(), HARD.replace("}", "}}"),
        HARD.replace("'", "''"), HARD.replace('"', '""'), HARD.replace("\\", "\\\\").replace("'", "\\'"),
        json.dumps(HARD)[1:-1], json.dumps(HARD, ensure_ascii=False)[1:-1], repr(HARD)[1:-1], shlex.quote(HARD),
        html.escape(HARD),
    ],
)  # fmt: skip
def test_each_form_is_hidden_without_a_word_that_says_what_it_is(monkeypatch, encoded):
    monkeypatch.setenv("PGPASSWORD", HARD)
    assert redact.without_secrets(f"it said: {encoded} !") == f"it said: {redact.HIDDEN} !"


@given(PASSWORDS)
def test_one_that_nobody_knows_is_hidden_where_the_text_calls_it_so(password):
    for form in ("url", "our url", "odbc", "sql", "libpq", "json"):
        assert password not in redact.without_secrets(written(password)[form]), form


@pytest.mark.parametrize(
    "name", ["password", "admin_password", "SSHPASS", "DB_PASS", "pwd", "api_key", "primary_token"]
)
def test_a_name_of_a_secret(name):
    assert redact.names_secret(name)


@pytest.mark.parametrize("name", ["SSH_ASKPASS", "cache_bypass", "encompass", "authentication", "flash_cache", "keys"])
def test_a_name_of_none(name):
    assert not redact.names_secret(name)


SQL_WITH_SECRETS = [
    ("SELECT 1 FROM login WHERE password = 'hush'", "SELECT 1 FROM login WHERE password = '(hidden)'"),
    ("UPDATE u SET [pwd] = N'hu''sh', a = 'b'", "UPDATE u SET [pwd] = N'(hidden)', a = 'b'"),
    ("UPDATE u SET user_password = crypt('hush', :salt)", "UPDATE u SET user_password = crypt('(hidden)', :salt)"),
    ("CREATE USER a IDENTIFIED BY 'hush'", "CREATE USER a IDENTIFIED BY '(hidden)'"),
    ("CREATE ROLE a PASSWORD 'hush' LOGIN", "CREATE ROLE a PASSWORD '(hidden)' LOGIN"),
    ("SELECT dblink('host=db password=hush', 'x')", "SELECT dblink('host=db password=(hidden)', 'x')"),
    ("SELECT c('a;PWD=hush;b')", "SELECT c('a;PWD=(hidden);b')"),
    ("SELECT c('postgresql://me:hush@db/x')", "SELECT c('postgresql://me:(hidden)@db/x')"),
    # Other forms of a literal, and values of several parts.
    ("ALTER ROLE a PASSWORD $$hush$$", "ALTER ROLE a PASSWORD '(hidden)'"),
    ("ALTER ROLE a ENCRYPTED PASSWORD $x$hu'sh$x$ LOGIN", "ALTER ROLE a ENCRYPTED PASSWORD '(hidden)' LOGIN"),
    (r"SET a = 'b', password = E'hu\'sh' WHERE c = 'd'", "SET a = 'b', password = E'(hidden)' WHERE c = 'd'"),
    ("SET pwd = 'hu' || 'sh', a = 'b'", "SET pwd = '(hidden)' || '(hidden)', a = 'b'"),
    ("SET pwd = N'hu' + :p + 'sh'", "SET pwd = N'(hidden)' + :p + '(hidden)'"),
    ("WHERE password IN ('hush', 'hush2') AND a = 'b'", "WHERE password IN ('(hidden)', '(hidden)') AND a = 'b'"),
    ("WHERE secret = ANY(ARRAY['hush'])", "WHERE secret = ANY(ARRAY['(hidden)'])"),
    ("WHERE token NOT LIKE 'hush%'", "WHERE token NOT LIKE '(hidden)'"),
    ("CREATE USER MAPPING FOR a SERVER b OPTIONS (user 'c', password 'hush')",
     "CREATE USER MAPPING FOR a SERVER b OPTIONS (user 'c', password '(hidden)')"),
    ("CREATE LOGIN a WITH PASSWORD = N'hush' MUST_CHANGE, CHECK_POLICY = ON",
     "CREATE LOGIN a WITH PASSWORD = N'(hidden)' MUST_CHANGE, CHECK_POLICY = ON"),
    ("CREATE CREDENTIAL a WITH IDENTITY = 'b', SECRET = 'hush'",
     "CREATE CREDENTIAL a WITH IDENTITY = 'b', SECRET = '(hidden)'"),
    # By position.
    ("INSERT INTO login (name, \"password\", a) VALUES ('b', 'hush', 'c'), ('d', crypt(:p, 'hush'), 'e')",
     "INSERT INTO login (name, \"password\", a) VALUES ('b', '(hidden)', 'c'), ('d', crypt(:p, '(hidden)'), 'e')"),
    ("INSERT dbo.login ([pwd]) OUTPUT inserted.id VALUES (N'hush'); SELECT 'a'",
     "INSERT dbo.login ([pwd]) OUTPUT inserted.id VALUES (N'(hidden)'); SELECT 'a'"),
    ("INSERT INTO login (name, token) SELECT 'a', 'hush' FROM b WHERE c = 'd'",
     "INSERT INTO login (name, token) SELECT 'a', '(hidden)' FROM b WHERE c = 'd'"),
    ("EXEC sp_setapprole 'a', 'hush'; SELECT 'b', 'c'", "EXEC sp_setapprole 'a', '(hidden)'; SELECT 'b', 'c'"),
    ("EXEC sp_addlinkedsrvlogin 'a', 'false', NULL, 'b', N'hush'",
     "EXEC sp_addlinkedsrvlogin 'a', 'false', NULL, 'b', N'(hidden)'"),
    ("SELECT pgp_sym_decrypt(a, 'hush'), crypt('hush', b)",
     "SELECT pgp_sym_decrypt(a, '(hidden)'), crypt('(hidden)', b)"),
    ("SELECT * FROM OPENROWSET('MSOLEDBSQL', 'a';'sa';'hush', 'SELECT 1')",
     "SELECT * FROM OPENROWSET('MSOLEDBSQL', 'a';'sa';'(hidden)', 'SELECT 1')"),
    # In connection strings, in SQL within a text, and in comments.
    ("OPENROWSET('MSOLEDBSQL', 'Server=a;UID=sa;PWD={hu;sh};', 'b')",
     "OPENROWSET('MSOLEDBSQL', 'Server=a;UID=sa;PWD=(hidden);', 'b')"),
    ("SELECT dblink('host=db password=''hu sh''', 'x')", "SELECT dblink('host=db password=''(hidden)''', 'x')"),
    ("EXEC('ALTER LOGIN a WITH PASSWORD = ''hush''')", "EXEC('ALTER LOGIN a WITH PASSWORD = ''(hidden)''')"),
    ("DO $$ BEGIN ALTER ROLE a PASSWORD 'hush'; END $$", "DO $$ BEGIN ALTER ROLE a PASSWORD '(hidden)'; END $$"),
    ("SELECT 1 -- psql postgresql://me:hush@db/x\n, 'a'", "SELECT 1 -- psql postgresql://me:(hidden)@db/x\n, 'a'"),
    ("SELECT 1 /* password: hush */", "SELECT 1 /* password: (hidden) */"),
]  # fmt: skip


# Without words of the SQL: pytest puts the name of a test into the environment, whose secrets are hidden, too.
@pytest.mark.parametrize(("sql", "recorded"), SQL_WITH_SECRETS, ids=map(str, range(len(SQL_WITH_SECRETS))))
def test_sql_is_without_the_literals_that_it_calls_secrets(sql, recorded):
    assert redact.sql_without_secrets(sql) == recorded
    assert redact.sql_without_secrets(recorded) == recorded
    scenario = {"name": sql, "workload": {"sql": {"transactions": {"t": {"sql": sql, "weight": 1}}, "queries": [sql]}}}
    found = redact.definition_without_secrets(scenario)
    assert found["name"] == sql
    assert found["workload"]["sql"] == {"transactions": {"t": {"sql": recorded, "weight": 1}}, "queries": [recorded]}


@given(st.text("'\"$/*-;()[],:=|abp N\n", max_size=40).map(lambda text: f"password {text} 'x' {text}"))
def test_whatever_sql_it_is_cleaning_ends_and_is_done_once(sql):
    cleaned = redact.sql_without_secrets(sql)
    assert redact.sql_without_secrets(cleaned) == cleaned


SECRET_PARAMETERS = [
    ("UPDATE u SET password = :p, a = :q WHERE id = :id::int", {"p"}),
    ("ALTER ROLE a PASSWORD :p", {"p"}),
    ("SELECT 1 FROM u WHERE password::text = :p::text", {"p"}),
    ("CREATE LOGIN a WITH PASSWORD = :p", {"p"}),
    ("INSERT INTO u (id, password) VALUES (:a, crypt(:b, gen_salt('bf')))", {"b"}),
    ("SELECT * FROM u WHERE pwd IN (:a, :b) AND c = :c AND api_key = :key", {"a", "b", "key"}),
    ("SELECT :password, :x, :access_token", {"password", "access_token"}),
    ("EXEC sp_setapprole :role, :p; SELECT pwdcompare(:q, hash)", {"p", "q"}),
    ("SELECT id FROM u WHERE id = :id", set()),
]


@pytest.mark.parametrize(("sql", "names"), SECRET_PARAMETERS, ids=map(str, range(len(SECRET_PARAMETERS))))
def test_parameters_are_secrets_by_their_names_or_by_where_they_stand(sql, names):
    assert redact.secret_parameters(sql) == names


def test_a_definition_is_without_the_values_of_secret_parameters():
    definition = {
        "transactions": {"log_in": {"sql": "SELECT 1 FROM u WHERE name = :n AND password = :p", "parameters": {}}},
        "parameters": {
            "n, p": {"file": "u.csv", "rows": [["me", "hush"], ["you", "hush2"]]},
            "token": {"values": ["hush3"], "draw": "uniform"},
            "other": {"values": ["seen"]},
            "pin, id": {"query": "SELECT 'hush4' AS pin, 1 FROM u WHERE password = 'hush5'"},
        },
        "define": {"db_password": "hush6", "scale": 10},
    }
    elsewhere = {"token": {"values": [1]}}
    found = redact.definition_without_secrets({"workload": {"sql": definition}, "parameters": elsewhere})
    sql, parameters = found["workload"]["sql"], found["workload"]["sql"]["parameters"]
    assert parameters["n, p"]["rows"] == [["me", redact.HIDDEN], ["you", redact.HIDDEN]]
    assert parameters["token"]["values"] == [redact.HIDDEN] and parameters["other"]["values"] == ["seen"]
    assert parameters["pin, id"]["query"].endswith(f"password = '{redact.HIDDEN}'")
    assert sql["define"] == {"db_password": redact.HIDDEN, "scale": 10}
    assert found["parameters"] == elsewhere, "of no SQL"


@pytest.mark.parametrize(
    "sql",
    [
        "SELECT 1 FROM t WHERE token = :token AND t.secret = s.secret AND password = $1",
        "SELECT password, 'x' FROM t WHERE name = 'token' OR kind IN ('password', 'b')",
        "SELECT 'a' -- password: :p\nFROM t WHERE pwd IS NULL",
        "INSERT INTO t (a, b) VALUES ('x', 'y'); SELECT password::text || 'x' FROM t ORDER BY 'a', encrypt + 'b'",
        "INSERT INTO login (name, password) SELECT 'x', password FROM t WHERE name = 'y'; INSERT t DEFAULT VALUES",
        "SELECT 'unclosed, $$ and /* too",
    ],
    ids=["names", "literals", "comment", "values", "query", "unclosed"],
)
def test_sql_without_secrets_stays_as_it_is(sql):
    assert redact.sql_without_secrets(sql) == sql
