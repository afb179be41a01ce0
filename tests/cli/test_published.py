"""No host, user, password or folder is in what a selftest says."""

import platform
from pathlib import Path

import pytest
from support.tds.odbc import needs_odbc

from stallmark.engines.mssql.engine import MssqlEngine
from stallmark.engines.postgres.engine import PostgresEngine
from stallmark.lab.selftest.selftest import _redactor


@pytest.mark.parametrize(
    "url",
    [
        "postgresql://boss:s3cret@db7.corp.example:5432/bank",
        "host=db7.corp.example user=boss password=s3cret dbname=bank",
        pytest.param("mssql://boss:s3cret@db7.corp.example:1433/bank", marks=needs_odbc),
    ],
)
def test_no_host_no_user_and_no_password_is_told(url, monkeypatch):
    monkeypatch.setattr(platform, "node", lambda: "laptop-of-ann")
    engine = MssqlEngine(url) if url.startswith("mssql") else PostgresEngine(url)
    words = _redactor(engine, "boss")
    said = words(
        "No connection to DB7.corp.example:5432/bank from laptop-of-ann: Login failed for user 'boss' (s3cret), "
        f'role "boss"; see {Path.home()}/x. The boss of bosses stays.'
    )
    assert said == (
        "No connection to <host>:5432/bank from <this machine>: Login failed for user <user> (<password>), "
        "role <user>; see ~/x. The boss of bosses stays."
    )


@needs_odbc
@pytest.mark.parametrize("url", ["mssql://db7.corp.example/bank", "mssql://CORP%5Cann@db7.corp.example/bank"])
def test_no_windows_login_is_told_however_it_is_written(url):
    words = _redactor(MssqlEngine(url), "CORP\\ann")
    said = words(
        "GRANT VIEW SERVER STATE TO [CORP\\ann]; Login failed for user 'CORP\\Ann'; run as corp\\svc-sql$, not CORP; "
        "the file lies at C:\\data\\ann, and None of it is hidden: 'None'."
    )
    assert said == (
        "GRANT VIEW SERVER STATE TO <user>; Login failed for user <user>; run as <user>, not CORP; "
        "the file lies at C:\\data\\ann, and None of it is hidden: 'None'."
    )


@needs_odbc
def test_a_login_in_brackets_is_hidden_as_one_in_quotes_is():
    engine = MssqlEngine("mssql://watcher@db7.corp.example/bank")
    words = _redactor(engine, "watcher")
    assert words("The login [watcher] may not see this; 'watcher' is the watcher.") == (
        "The login <user> may not see this; <user> is the watcher."
    )
