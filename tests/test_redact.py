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
]


# Without words of the SQL: pytest puts the name of a test into the environment, whose secrets are hidden, too.
@pytest.mark.parametrize(("sql", "recorded"), SQL_WITH_SECRETS, ids=map(str, range(len(SQL_WITH_SECRETS))))
def test_sql_is_without_the_literals_that_it_calls_secrets(sql, recorded):
    assert redact.sql_without_secrets(sql) == recorded
    scenario = {"name": sql, "workload": {"sql": {"transactions": {"t": {"sql": sql, "weight": 1}}, "queries": [sql]}}}
    found = redact.definition_without_secrets(scenario)
    assert found["name"] == sql
    assert found["workload"]["sql"] == {"transactions": {"t": {"sql": recorded, "weight": 1}}, "queries": [recorded]}


@pytest.mark.parametrize(
    "sql",
    [
        "SELECT 1 FROM t WHERE token = :token AND t.secret = s.secret AND password = $1",
        "SELECT password, 'x' FROM t WHERE name = 'token' OR kind IN ('password', 'b')",
        "SELECT 'a' -- password: :p\nFROM t WHERE pwd IS NULL",
    ],
    ids=["names", "literals", "comment"],
)
def test_sql_without_secrets_stays_as_it_is(sql):
    assert redact.sql_without_secrets(sql) == sql
