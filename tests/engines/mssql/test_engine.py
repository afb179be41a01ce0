"""Connecting, and what the server says of itself."""

import signal
import socket
import sys
import threading
from datetime import datetime
from types import SimpleNamespace
from urllib.parse import quote

import pytest
from hypothesis import given
from hypothesis import strategies as st
from support.command_line import signals_as_before
from support.mssql_server import answering, rows
from support.simulated_time import Clock
from support.tds import odbc
from support.tds.answers import Count, Error, Hold, Rows
from support.tds.datatypes import BIGINT, INT, datetime2, nvarchar
from support.tds.responder import Responder
from support.tds.script import Script
from support.tds.tokens import Column
from support.waiting import eventually

from stallmark import stopping
from stallmark.engines import reachability
from stallmark.engines.mssql import lock
from stallmark.engines.mssql import odbc as module
from stallmark.engines.mssql.address import Address
from stallmark.engines.mssql.engine import MssqlEngine
from stallmark.engines.mssql.odbc import Driver, api, failed
from stallmark.errors import CallFailed, ErrorClass, NoConnection, RunLockTaken, StallmarkError

from .conftest import LEADS_TO, LOCK, PASSWORD

pytestmark = pytest.mark.thorough


def test_login_by_password_from_the_environment_over_tls(engine: MssqlEngine, server: Responder):
    assert str(engine.identity()) == "SQL Server 16.0.4085.2 RTM Developer Edition (64-bit)"
    [login] = server.logins
    assert login.encrypted and login.user == "boss" and login.has_password(PASSWORD)


@pytest.mark.parametrize(
    ("number", "expected"), [(18456, "the login was refused"), (4060, "the database cannot be opened")]
)
def test_a_login_that_fails_is_one_sentence(engine: MssqlEngine, script: Script, number, expected):
    script.login(Error(number, "Login failed for user 'boss'.", severity=14))
    with pytest.raises(StallmarkError, match=expected) as refused:
        engine.identity()
    assert PASSWORD not in str(refused.value)


@pytest.mark.parametrize("refused", ["master", "bank"])
def test_the_database_that_was_refused_is_the_one_that_is_named(engine, script, refused):
    script.databases.discard(refused)
    with pytest.raises(StallmarkError, match=rf"No connection to 127\.0\.0\.1:\d+/{refused}: "), engine.hold():
        engine.identity()


def test_nobody_there(closed_port: int, monkeypatch):
    """The driver would try until its timeout."""
    if reason := odbc.missing():
        pytest.skip(reason)
    monkeypatch.setattr(api(), "connect", None)
    with pytest.raises(NoConnection, match=rf"{closed_port}/bank: port .* refuses connections\. Check"):
        MssqlEngine(f"mssql://boss@127.0.0.1:{closed_port}/bank").identity()


@pytest.fixture
def closed_port() -> int:
    with socket.create_server(("127.0.0.1", 0)) as server:
        return server.getsockname()[1]


def test_a_server_that_went_away_after_a_login(script: Script, monkeypatch):
    monkeypatch.setattr("stallmark.engines.mssql.server.LOGIN_TIMEOUT_S", 1)
    with answering(script) as server:
        engine = MssqlEngine(f"mssql://boss:{quote(PASSWORD)}@127.0.0.1:{server.port}/bank?TrustServerCertificate=yes")
        engine.identity()
    for _ in range(2):
        with pytest.raises(NoConnection, match="refuses connections"):
            engine.connect()


def test_a_server_that_was_reached_is_reached_in_its_other_databases(engine: MssqlEngine, monkeypatch):
    tried = []
    monkeypatch.setattr(reachability, "unreachable_reason", lambda *address: tried.append(address))
    master = engine.on_database("master")
    engine.identity()
    master.name()
    master.on_database("bank").name()
    engine.name()
    assert len(tried) == 1


def test_a_server_that_died_under_a_session_is_not_waited_for(script: Script, monkeypatch):
    """The driver would try until its timeout, at every login and for whoever asks what became of the server."""
    with answering(script) as server:
        engine = MssqlEngine(f"mssql://boss:{quote(PASSWORD)}@127.0.0.1:{server.port}/bank?TrustServerCertificate=yes")
        session = engine.session(30)
        master = engine.on_database("master")
        master.name()
        session.prepare("ask", "SELECT anything")
        server.cut_all()
    with pytest.raises(CallFailed) as lost:
        session.call("ask", ())
    assert lost.value.kind in (ErrorClass.CONNECTION_LOST, ErrorClass.UNKNOWN_OUTCOME)
    session.close()
    monkeypatch.setattr(api(), "connect", None)
    for each in (engine, master):
        with pytest.raises(NoConnection, match="refuses connections"):
            each.connect()


def test_a_port_that_answers_no_login(monkeypatch):
    if reason := odbc.missing():
        pytest.skip(reason)
    monkeypatch.setattr("stallmark.engines.mssql.server.LOGIN_TIMEOUT_S", 1)
    with socket.create_server(("127.0.0.1", 0)) as silent:
        engine = MssqlEngine(f"mssql://boss@127.0.0.1:{silent.getsockname()[1]}/bank")
        with pytest.raises(NoConnection, match=r"Check host and port.*The driver was (libmsodbcsql|ODBC Driver)"):
            engine.connect()


def test_a_signal_is_heard_while_a_login_waits(monkeypatch):
    logging_in, heard = threading.Event(), threading.Event()
    waited = []

    def connect(*_, **__):
        logging_in.set()
        waited.append(heard.wait(30))

    def stop() -> None:
        logging_in.wait()
        signal.pthread_kill(threading.main_thread().ident, signal.SIGINT)

    fake = SimpleNamespace(connect=connect, drivers=lambda: ["ODBC Driver 18 for SQL Server"], Error=ValueError)
    for room in ("odbc", "server"):
        monkeypatch.setattr(f"stallmark.engines.mssql.{room}.api", lambda: fake)
    with socket.create_server(("127.0.0.1", 0)) as server, signals_as_before():
        stopping.listen()
        threading.Thread(target=stop).start()
        with pytest.raises(stopping.StopSignal):
            MssqlEngine(f"mssql://boss@127.0.0.1:{server.getsockname()[1]}/bank").identity()
        heard.set()
        module.find_driver.cache_clear()  # it has the name of the driver that is not there
    eventually(lambda: waited == [True])


def test_a_signal_under_a_statement_is_heard(engine, script, server):
    """The driver takes it for the loss of its connection, and pyodbc loses what it raised while it reads that error."""
    hold, heard = Hold(), threading.Event()
    script.sql("^SELECT slow", hold)
    engine.identity()

    def stop() -> None:
        hold.reached.wait(30)
        # The server has the statement a moment before the driver waits for it: a signal then interrupts nothing yet.
        while not heard.wait(0.2):
            signal.pthread_kill(threading.main_thread().ident, signal.SIGTERM)

    with signals_as_before():
        stopping.listen()
        stopper = threading.Thread(target=stop)
        stopper.start()
        with pytest.raises(stopping.StopSignal):
            engine.query("SELECT slow")
        heard.set()
        stopper.join()
    hold.release()


def test_an_error_without_words_is_a_signal_once(monkeypatch):
    wordless = api().Error("HY000", "The driver did not supply an error!")
    monkeypatch.setattr(stopping, "_raised", stopping.StopSignal(signal.SIGTERM))
    with pytest.raises(stopping.StopSignal):
        failed(wordless)
    assert failed(wordless).kind is ErrorClass.OTHER


@pytest.mark.parametrize(
    ("taken", "expected"),
    [
        (-1, "Another Stallmark drives"),
        (-2, "cancelled: run again"),
        (-3, "victim of a deadlock: run again"),
        (-999, r"cannot be asked for \(sp_getapplock returns -999\)"),
    ],
)
def test_a_run_that_does_not_get_the_lock_says_why(engine, monkeypatch, taken, expected):
    monkeypatch.setitem(LOCK, "taken", taken)
    with pytest.raises(StallmarkError, match=expected), engine.hold():
        pass


@pytest.mark.parametrize(
    ("application", "expected"),
    [
        ("sqlcmd", "held by session 53 (sqlcmd, of dba, from ADMIN1), which is not Stallmark's: end it (KILL 53)"),
        ("stallmark-run", "by session 53 (stallmark-run, of dba, from ADMIN1): two runs would disturb each other"),
    ],
)
def test_who_holds_the_lock_is_named_for_what_it_is(engine, script, monkeypatch, application, expected):
    monkeypatch.setitem(LOCK, "taken", -1)
    script.sql("dm_tran_locks", rows(["id", "program", "login", "host"], [53, application, "dba", "ADMIN1"]))
    with pytest.raises(RunLockTaken) as caught, engine.hold():
        pass
    assert expected in str(caught.value)
    assert ("Another Stallmark" in str(caught.value)) is (application == "stallmark-run")


def test_a_lock_that_was_waited_for_is_held(engine, monkeypatch):
    monkeypatch.setitem(LOCK, "taken", 1)
    with engine.hold():
        pass


def test_a_lock_that_is_held_is_looked_at_in_its_own_session(engine, server):
    with engine.hold() as look:
        [taken] = [it for it in server.requests if "sp_getapplock" in it.text]
        look()
        assert [it.connection for it in server.requests if "APPLOCK_MODE" in it.text] == [taken.connection]


def test_a_lock_that_went_with_its_session_is_said(engine, server):
    with engine.hold() as look:
        server.cut_all()
        with pytest.raises(StallmarkError, match=r"The lock on 127.*is gone.*this one ends: run again"):
            look()


def test_a_lock_that_stayed_on_the_server_that_was_the_primary(engine, server, monkeypatch):
    with engine.hold() as look:
        monkeypatch.setitem(LEADS_TO, "name", "SECOND")
        server.cut_all()
        with pytest.raises(StallmarkError, match=r"led to DB\\PROD and leads to SECOND since, as after a failover"):
            look()


STARTED = datetime(2026, 11, 28, 6, 30)
LATER = datetime(2026, 11, 28, 9, 15)


@pytest.mark.parametrize(
    ("before", "after", "said"),
    [
        (STARTED, LATER, "the server was restarted. Another run"),
        (STARTED, STARTED, "somebody ended our session, or the network was interrupted. Another run"),
        (None, None, "the server was restarted, or somebody ended our session. Another run"),
        (None, LATER, "the server was restarted, or somebody ended our session. Another run"),
    ],
)
def test_what_became_of_a_server_is_known_by_its_start(engine, server, script, before, after, said):
    """The time of the start is for those with VIEW SERVER STATE."""
    told = [before, after]

    def tell(_) -> list:
        started = told.pop(0)
        if started is None:
            return [Error(300, "VIEW SERVER STATE permission was denied.", severity=14)]
        return [Rows([Column("sqlserver_start_time", datetime2(3))], [(started,)])]

    script.sql("sqlserver_start_time", tell)
    with engine.hold() as look:
        server.cut_all()
        with pytest.raises(StallmarkError) as lost:
            look()
    assert f"): {said}" in str(lost.value)


def test_a_server_that_is_away_is_said_to_be(engine, server, monkeypatch):
    with engine.hold() as look:
        server.cut_all()
        with monkeypatch.context() as patched, pytest.raises(StallmarkError, match=r"\): the server is away\. Another"):
            patched.setattr(reachability, "unreachable_reason", lambda *_: "port 1433 refuses connections")
            look()


def test_a_session_that_the_driver_has_replaced_has_no_lock(engine, monkeypatch):
    monkeypatch.setitem(LOCK, "mode", "NoLock")
    with engine.hold() as look, pytest.raises(StallmarkError, match="its session was replaced"):
        look()


def test_a_server_too_busy_to_say_has_not_lost_it(engine, monkeypatch):
    monkeypatch.setattr(lock, "CHECK_WITHIN_S", 1)
    monkeypatch.setitem(LOCK, "mode", None)
    with engine.hold() as look:
        look()


def test_schemas_in_use(engine, script):
    columns = [Column("schema_name", nvarchar(128)), Column("name", nvarchar(128))]
    things = [("bank", "accounts"), ("dbo", "paper"), ("dbo", "thesis")]
    script.sql("FROM sys.objects", Rows(columns, things))
    assert engine.schemas_in_use() == {"bank": ["accounts"], "dbo": ["paper", "thesis"]}


MODEL = Error(1807, "Could not obtain exclusive lock on database 'model'. Retry the operation later.", severity=16)
CREATE_FAILED = Error(1802, "CREATE DATABASE failed. Some file names listed could not be created.", severity=16)


def tries(server: Responder) -> int:
    return sum(request.text.startswith("CREATE DATABASE") for request in server.requests)


def test_a_database_is_made_as_soon_as_its_model_is_free(engine, server, script, monkeypatch):
    monkeypatch.setattr(module, "time", Clock())
    script.sql("CREATE DATABASE", MODEL, CREATE_FAILED, times=2)
    script.sql("CREATE DATABASE", Count(0))
    engine.execute("CREATE DATABASE other")
    assert tries(server) == 3


def test_a_model_that_is_never_free_is_an_error_in_the_end(engine, server, script, monkeypatch):
    monkeypatch.setattr(module, "MODEL_IS_FREE_WITHIN_S", -1)
    script.sql("CREATE DATABASE", MODEL, CREATE_FAILED)
    with pytest.raises(CallFailed, match="exclusive lock on database 'model'"):
        engine.execute("CREATE DATABASE other")
    assert tries(server) == 1


def test_another_error_is_not_tried_again(engine, server, script):
    script.sql("CREATE DATABASE", Error(1801, "Database 'other' already exists.", severity=16))
    with pytest.raises(CallFailed, match="already exists"):
        engine.execute("CREATE DATABASE other")
    assert tries(server) == 1


def test_an_error_of_a_later_statement_is_not_lost(engine, script):
    script.sql("two statements", Count(1), Error(9002, "The transaction log is full.", severity=17))
    with pytest.raises(CallFailed, match="log is full"):
        engine.execute("two statements")


def test_settings_come_as_they_are_and_what_cannot_be_read_is_said(engine, script):
    columns = [Column("recovery_model", nvarchar(60)), Column("compatibility_level", INT)]
    script.sql("recovery_model_desc", Rows(columns, [("SIMPLE", 160)]))
    names = ["database_name", "name", "type_desc", "physical_name"]
    kinds = [*[Column(name, nvarchar(260)) for name in names], *[Column(n, BIGINT) for n in ("pages", "growth", "p")]]
    script.sql("sys.master_files", Rows(kinds, [("bank", "data", "ROWS", "D:\\bank.mdf", 131072, 8192, 0)]))
    script.sql("dm_os_sys_info", Error(300, "VIEW SERVER STATE permission was denied.", severity=14))
    found = engine.settings()
    told = found.configuration
    assert told["database recovery model"] == "SIMPLE" and told["database compatibility level"] == "160"
    assert found.placement["file bank.data"] == "ROWS, D:\\bank.mdf, 1024 MiB, grows by 64 MiB"
    assert "permission was denied" in found.unreadable["settings_server"]


def test_statistics_are_made_of_the_columns_that_no_index_has_counted(engine, server, script):
    """CREATE INDEX counts every row of its key; UPDATE STATISTICS … WITH FULLSCAN would read all of it a second
    time (learn.microsoft.com, "Statistics": the optimizer makes them when the index is created)."""
    script.sql("sys.stats_columns", Rows([Column("name", nvarchar(128))], [("ca_bal",), ("odd]name",)]))
    script.sql("CREATE STATISTICS")
    engine.settle("brokerage.customer_account")
    assert [request.text for request in server.requests if "CREATE STATISTICS" in request.text] == [
        "CREATE STATISTICS [stallmark_ca_bal] ON brokerage.customer_account ([ca_bal])",
        "CREATE STATISTICS [stallmark_odd]]name] ON brokerage.customer_account ([odd]]name])",
    ]


# Where a server is and who we are there, from a URL to a connection string


WORDS = st.text(st.characters(codec="utf-8", exclude_characters="\0"), min_size=1, max_size=20)


@given(password=WORDS, user=WORDS)
def test_any_user_and_password_survive_the_way_through_url_and_connection_string(password, user):
    address = Address("host", 1433, None, "db", user, password, {})
    again = Address.parse(address.url())
    assert again == address
    text = again.connection_string(Driver("driver"), "app")
    assert attributes(text)["UID"] == user and attributes(text)["PWD"] == password


def attributes(text: str) -> dict[str, str]:
    """A connection string as the ODBC Programmer's Reference has it: values in braces, } doubled."""
    found, at = {}, 0
    while at < len(text):
        equals = text.index("=", at)
        key, at = text[at:equals], equals + 1
        if text[at : at + 1] == "{":
            at, value = at + 1, ""
            while text[at] != "}" or text[at : at + 2] == "}}":
                value, at = value + text[at], at + (2 if text[at] == "}" else 1)
            at += 2
        else:
            end = text.find(";", at)
            value, at = (text[at:], len(text)) if end < 0 else (text[at:end], end + 1)
        found[key] = value
    return found


def test_encryption_is_on_and_a_broken_session_is_never_mended_behind_our_back():
    known = attributes(Address.parse("mssql://me@db/bank").connection_string(Driver("x"), "app"))
    assert (known["Encrypt"], known["ConnectRetryCount"]) == ("yes", "0")
    assert "TrustServerCertificate" not in known


@pytest.mark.parametrize(
    ("url", "expected"),
    [
        ("mssql://db/bank", {"Trusted_Connection": "yes"}),
        ("mssql+pyodbc://me@db:1500/bank", {"Server": "db,1500", "UID": "me"}),
        ("mssql://me@db/bank?Authentication=ActiveDirectoryMsi", {"Authentication": "ActiveDirectoryMsi"}),
        ("mssql://me@db\\prod/bank", {"Server": "db\\prod"}),
    ],
)
def test_ways_to_name_a_server(url, expected):
    known = attributes(Address.parse(url).connection_string(Driver("x"), "app"))
    assert expected.items() <= known.items()


@pytest.mark.parametrize("option", ["PWD=s3cret", "UID=me&pwd=s3cret", "Password=s3cret", "uid=me", "User%20Id=me"])
def test_who_we_are_stands_before_the_host_and_nowhere_else(option):
    with pytest.raises(StallmarkError, match="SQLCMDPASSWORD") as refused:
        Address.parse(f"mssql://db/bank?Encrypt=yes&{option}")
    assert "s3cret" not in str(refused.value)


@pytest.mark.parametrize("option", ["driver=FreeTDS", "Driver=FreeTDS", "DRIVER=SQL+Server"])
def test_no_driver_but_microsofts_is_taken(option):
    with pytest.raises(StallmarkError, match="Microsoft's driver 18 or 17 alone"):
        Address.parse(f"mssql://db/bank?{option}")


def test_the_driver_that_sqlalchemy_names_is_the_one_of_this_machine():
    address = Address.parse("mssql+pyodbc://me@db/bank?driver=ODBC+Driver+17+for+SQL+Server")
    assert attributes(address.connection_string(Driver("x"), "app"))["Driver"] == "x"


@pytest.mark.parametrize(
    ("url", "asked"),
    [
        ("mssql://db/bank", [("db", 1433)]),
        ("mssql://db:1500/bank", [("db", 1500)]),
        ("mssql://db\\prod:1500/bank", [("db", 1500)]),
        ("mssql://db\\prod/bank", [("db", "prod")]),
        ("mssql://db/bank?Failover_Partner=other", []),
    ],
)
def test_where_a_connect_is_tried_before_a_login(monkeypatch, url, asked):
    tried = []
    for name in ("unreachable_reason", "instance_unreachable_reason"):
        monkeypatch.setattr(reachability, name, lambda *place: tried.append(place))
    assert Address.parse(url).unreachable_reason() is None
    assert tried == ([] if sys.platform == "win32" else asked)


def test_what_is_shown_of_an_address_holds_nothing_secret():
    address = Address.parse("mssql://me:s3cret@db/bank?KeyStoreSecret=h1dden")
    assert "db" in repr(address) and "s3cret" not in repr(address) and "h1dden" not in repr(address)


@pytest.mark.parametrize("url", ["mssql://me:s3cret@/bank", "mssql://me:s3cret@db", "mssql://me:s3cret@db:x/bank"])
def test_a_url_that_cannot_be_is_refused_without_repeating_it(url):
    with pytest.raises(StallmarkError) as refused:
        Address.parse(url)
    assert "mssql://user@host:1433/database" in str(refused.value) and "s3cret" not in str(refused.value)


def test_what_the_bulk_copy_s_driver_does_not_know_is_kept_from_it():
    """mssql-python raises for a keyword that it does not know, and for one that comes twice."""
    url = "mssql://me@db/bank?encrypt=strict&Language=french&KeepAlive=9&Failover_Partner=b&BulkCopy=yes"
    known = attributes(Address.parse(url).copier_string())
    assert known == {
        "Server": "db", "Database": "bank", "UID": "me", "PWD": "", "Encrypt": "strict", "KeepAlive": "9",
    }  # fmt: skip
    assert attributes(Address.parse(url).connection_string(Driver("x"), "app")).keys() >= {"Encrypt", "Language"}
