"""SQL Server's engine against a responder that speaks its protocol: Microsoft's driver is real, the server is not."""

import itertools
import json
import re
from collections.abc import Iterator

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tds import odbc
from tds.answers import Count, Cut, Error, Hold, Rows
from tds.datatypes import BIGINT, INT, nvarchar
from tds.responder import Responder
from tds.script import Script
from tds.tokens import Column

from stallmark.driver.engines.base import BulkWriter
from stallmark.driver.engines.errors import CallFailed, ErrorClass, StallmarkError
from stallmark.driver.engines.mssql import memory
from stallmark.driver.engines.mssql.address import Address
from stallmark.driver.engines.mssql.engine import MssqlEngine
from stallmark.driver.engines.mssql.errors import failed, sentence
from stallmark.driver.engines.mssql.odbc import Driver
from stallmark.driver.engines.mssql.session import as_exec
from stallmark.loaders.bank import LOADER
from stallmark.loaders.plan import Batch
from stallmark.loaders.worker import AlreadyLoaded, load_batch
from stallmark.transactions import find_workload

THROUGH = "[Microsoft][ODBC Driver 18 for SQL Server][SQL Server]"
LOCK = {"taken": 0}  # what sp_getapplock answers
PASSWORD = "Corr3ct;h0rse}b=ttery"
TRANSFER = find_workload("bank").sql("transfer", "mssql")
VERSION = ("16.0.4085.2", "RTM", "Developer Edition (64-bit)", 3, "Microsoft SQL Server 2022")


@pytest.fixture
def script() -> Script:
    script = Script(password=PASSWORD, databases=["bank", "master"])
    text = nvarchar(300)
    columns = [Column(name, INT if name == "engine" else text) for name in ("v", "l", "e", "engine", "b")]
    script.sql(r"SERVERPROPERTY\('ProductVersion'\)", Rows(columns, [VERSION]))
    script.sql("SELECT @@SPID", Rows([Column("spid", INT)], [(57,)]))
    script.sql("IF @@TRANCOUNT > 0 ROLLBACK", Count(0))
    script.sql("'ServerName'", Rows([Column("name", nvarchar(128))], [("DB\\PROD",)]))
    script.sql("'stallmark.run'", lambda _: [Rows([Column("taken", INT)], [(LOCK["taken"],)])])
    return script


@pytest.fixture
def server(script: Script) -> Iterator[Responder]:
    if reason := odbc.missing():
        pytest.skip(reason)
    with Responder(script, encryption="required") as server:
        yield server
    assert not server.faults


@pytest.fixture
def engine(server: Responder, monkeypatch: pytest.MonkeyPatch, tmp_path) -> MssqlEngine:
    monkeypatch.setenv("SQLCMDPASSWORD", PASSWORD)
    monkeypatch.setenv("STALLMARK_STATE", str(tmp_path))
    return MssqlEngine(f"mssql://boss@127.0.0.1:{server.port}/bank?TrustServerCertificate=yes")


# Where the server is


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


@pytest.mark.parametrize(
    "url", ["mssql://me:s3cret@/bank", "mssql://me:s3cret@db", "mssql://me:s3cret@db:x/bank"]
)
def test_a_url_that_cannot_be_is_refused_without_repeating_it(url):
    with pytest.raises(StallmarkError) as refused:
        Address.parse(url)
    assert "mssql://user@host:1433/database" in str(refused.value) and "s3cret" not in str(refused.value)


# Connecting


def test_login_by_password_from_the_environment_over_tls(engine: MssqlEngine, server: Responder):
    assert str(engine.identity()) == "SQL Server 16.0.4085.2 RTM Developer Edition (64-bit)"
    [login] = server.logins
    assert login.encrypted and login.user == "boss" and login.has_password(PASSWORD)


@pytest.mark.parametrize(
    ("number", "expected"),
    [(18456, "the login was refused"), (4060, "the database cannot be opened")],
)
def test_a_login_that_fails_is_one_sentence(engine: MssqlEngine, script: Script, number, expected):
    script.login(Error(number, "Login failed for user 'boss'.", severity=14))
    with pytest.raises(StallmarkError, match=expected) as refused:
        engine.identity()
    assert PASSWORD not in str(refused.value)


def test_nobody_there(monkeypatch):
    if reason := odbc.missing():
        pytest.skip(reason)
    with pytest.raises(StallmarkError, match=r"No connection to 127\.0\.0\.1:1/bank"):
        MssqlEngine("mssql://boss@127.0.0.1:1/bank").identity()


# Calls


def test_a_transaction_is_one_round_trip(engine: MssqlEngine, server: Responder, script: Script):
    script.procedure("bank.transfer", Rows([Column("abalance", INT)], [(41,)]))
    session = engine.session(10)
    session.prepare("transfer", TRANSFER)
    server.forget()
    assert [session.call("transfer", (1, 2, 3, n)) for n in range(20)] == [[(41,)]] * 20
    assert server.round_trips == 20
    assert [request.values for request in server.requests] == [(1, 2, 3, n) for n in range(20)]
    assert all("COMMIT TRANSACTION" in request.text for request in server.requests)
    assert session.server_pid == 57
    session.close()


def test_procedures_keep_their_prepared_statements_beside_each_other(engine, server, script):
    for name in ("a", "b"):
        script.procedure(name, Rows([Column("x", nvarchar(10))], [(name,)]))
    session = engine.session(10)
    for name in ("a", "b"):
        session.prepare(name, f"{{CALL {name}(?)}}")
    server.forget()
    assert [session.call(name, (1,)) for name in "abab"] == [[("a",)], [("b",)]] * 2
    assert server.round_trips == 4
    session.close()


@pytest.mark.parametrize(
    ("number", "kind"),
    [
        (1205, ErrorClass.DEADLOCK),
        (1222, ErrorClass.LOCK_TIMEOUT),
        (3960, ErrorClass.SERIALIZATION),
        (9002, ErrorClass.OUT_OF_SPACE),
        (1105, ErrorClass.OUT_OF_SPACE),
        (824, ErrorClass.STORAGE),
        (2627, ErrorClass.OTHER),
    ],
)
def test_errors_are_known_by_number_and_leave_no_transaction_open(engine, server, script, number, kind):
    script.procedure("bank.transfer", Error(number, "it failed.", severity=16))
    session = engine.session(10)
    session.prepare("transfer", TRANSFER)
    with pytest.raises(CallFailed) as raised:
        session.call("transfer", (1, 2, 3, 4))
    assert (raised.value.kind, raised.value.code, raised.value.message) == (kind, str(number), "it failed")
    assert "ROLLBACK" in server.requests[-1].text
    session.close()


@pytest.mark.parametrize(
    ("commits", "kind"), [(True, ErrorClass.UNKNOWN_OUTCOME), (False, ErrorClass.CONNECTION_LOST)]
)
def test_a_connection_cut_under_a_call(engine, script, commits, kind):
    script.procedure("bank.transfer", Cut())
    session = engine.session(10)
    session.prepare("transfer", TRANSFER)
    with pytest.raises(CallFailed) as raised:
        session.call("transfer", (1, 2, 3, 4), commits=commits)
    assert raised.value.kind is kind
    session.close()


def test_a_slow_answer_is_given_up(engine, server, script):
    script.procedure("bank.transfer", Hold())
    session = engine.session(1)
    session.prepare("transfer", TRANSFER)
    with pytest.raises(CallFailed) as raised:
        session.call("transfer", (1, 2, 3, 4))
    assert raised.value.kind is ErrorClass.TIMEOUT
    assert "attention" in [request.kind for request in server.requests]
    session.close()


def test_what_was_said_is_told_without_where_it_came_through():
    text = f"[40001] {THROUGH}Deadlock [on x]. Rerun. (1205) (SQLExecDirectW)"
    assert sentence(text) == "Deadlock [on x]. Rerun"


def test_an_error_below_another_is_found():
    text = (
        f"[42000] {THROUGH}The statement has been terminated. (3621) (SQLExecDirectW); "
        f"[42000] {THROUGH}I/O error. (823)"
    )
    assert failed(Exception("42000", text + " (SQLExecDirectW)")).kind is ErrorClass.STORAGE


@pytest.mark.parametrize(
    ("call", "batch"),
    [
        ("{CALL bank.transfer(?, ?)}", "EXEC bank.transfer ?, ?"),
        ("{call p}", "EXEC p"),
        ("SELECT 1", "SELECT 1"),
    ],
)
def test_calls_for_servers_without_remote_procedures(call, batch):
    assert as_exec(call) == batch


# Bulk load


TELLERS = [Column("tid", INT), Column("bid", INT), Column("tbalance", INT), Column("filler", nvarchar(84))]


@pytest.fixture
def writer(engine: MssqlEngine, script: Script) -> Iterator[BulkWriter]:
    pytest.importorskip("mssql_python", reason="pip install mssql-python", exc_type=ImportError)
    script.table("bank.tellers", TELLERS)
    with engine.bulk_writer() as writer:
        yield writer


def ledger_words(server: Responder) -> list[str]:
    texts = [
        request.text for request in server.requests if request.kind == "batch" and "ledger" in request.text
    ]
    return ["begin" if "sp_getapplock" in text else text.split()[0] for text in texts]


def test_a_batch_is_begun_in_the_ledger_before_its_first_row_and_ended_after_its_last(writer, server, script):
    script.sql("stallmark.ledger", Count(1))
    rows, size = load_batch(writer, LOADER, 1, {"branches": 3}, Batch("tellers", 0))
    kinds = ["bulk" if r.kind == "bulk" else "ledger" for r in server.requests
             if r.kind == "bulk" or (r.text and "stallmark.ledger" in r.text)]  # fmt: skip
    assert kinds == ["ledger", "bulk", "ledger"]
    [bulk] = [request for request in server.requests if request.kind == "bulk"]
    assert rows == len(bulk.rows) == 30 and size > 0
    assert [row[:3] for row in bulk.rows[:2]] == [(1, 1, 0), (2, 1, 0)]
    begun = next(r.text for r in server.requests if r.text and "sp_getapplock" in r.text)
    assert "DELETE FROM bank.tellers WHERE tid BETWEEN 1 AND 30;" in begun
    assert ledger_words(server) == ["begin", "UPDATE"]


def test_a_batch_that_another_loader_is_at_is_left_to_it(writer, server, script):
    script.sql("sp_getapplock", Error(50001, "Another loader is at this batch.", severity=16))
    with pytest.raises(AlreadyLoaded):
        load_batch(writer, LOADER, 1, {"branches": 3}, Batch("tellers", 0))
    assert not [request for request in server.requests if request.kind == "bulk"]


def test_a_bulk_copy_that_is_cut_leaves_its_batch_begun(writer, server, script):
    script.sql("stallmark.ledger", Count(1))
    script.bulk("bank.tellers", Cut(), after_bytes=10)
    with pytest.raises(CallFailed):
        load_batch(writer, LOADER, 1, {"branches": 3}, Batch("tellers", 0))
    assert ledger_words(server) == ["begin"]


@given(branches=st.integers(1, 30), data=st.data())
def test_the_rows_of_a_batch_are_told_from_all_others(branches, data):
    groups = LOADER.groups({"branches": branches})
    group = data.draw(st.sampled_from(groups))
    ranges = []
    for number in range(group.batches):
        [(table, condition)] = LOADER.rows_of({"branches": branches}, Batch(group.name, number)).items()
        column, _, first, _, last = condition.split()
        [(written, rows)] = LOADER.batch(1, {"branches": branches}, Batch(group.name, number))
        keys = rows[column]
        assert (table, int(first), int(last)) == (written, keys[0].as_py(), keys[-1].as_py())
        ranges.append((int(first), int(last)))
    assert isinstance(rows, pa.Table)
    assert all(before[1] < after[0] for before, after in itertools.pairwise(ranges))


# Memory


class Settings:
    """What sp_configure says and does, as the responder's answers."""

    def __init__(self, script: Script, total_kb: list[int]):
        self.values = {"max server memory (MB)": 2147483647, "show advanced options": 0}
        self.total_kb = total_kb
        self.refuses = False
        name = Column("name", nvarchar(128))
        script.sql("HAS_PERMS_BY_NAME", Rows([Column("may", INT)], [(1,)]))
        script.sql(
            "FROM sys.configurations",
            lambda _: [Rows([name, Column("value", BIGINT)], list(self.values.items()))],
        )
        script.sql("sp_configure", self.configure)
        script.sql("dm_os_performance_counters", self.counters)
        self.counter_columns = [name, Column("cntr_value", BIGINT)]

    def configure(self, request) -> list:
        if self.refuses:
            return [Error(15247, "User does not have permission to perform this action.", severity=16)]
        _, name, rest = request.text.split("'", 2)
        self.values[name] = int(rest.strip(", ").split(";")[0])
        return [Count(0)]

    def counters(self, _) -> list:
        total = self.total_kb.pop(0) if len(self.total_kb) > 1 else self.total_kb[0]
        target = min(self.values["max server memory (MB)"] * 1024, 8 << 20)
        rows = [("Target Server Memory (KB)", target), ("Total Server Memory (KB)", total)]
        return [Rows(self.counter_columns, rows)]


@pytest.fixture
def quick(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(memory.time, "sleep", lambda _: None)


def test_the_cap_is_waited_for_and_given_back(engine, script, quick):
    settings = Settings(script, [8 << 20, 6 << 20, (4 << 20) + 1000])
    before = dict(settings.values)
    with engine.hold():
        reached = engine.cap_memory(4 << 30)
        assert settings.values == {"max server memory (MB)": 4096, "show advanced options": 1}
        assert reached == 4 << 30 and not settings.total_kb[1:]
    assert settings.values == before


def test_after_a_kill_the_next_one_gives_back_what_was_there_before_the_first(engine, script, quick):
    settings = Settings(script, [4 << 20])
    before = dict(settings.values)
    engine.cap_memory(4 << 30)
    engine.cap_memory(6 << 30)  # what the journal holds is the server's own, not our first cap
    with MssqlEngine(engine.spec()).hold():
        assert settings.values == before


def test_a_server_that_keeps_its_memory_is_said(engine, script, quick, monkeypatch):
    Settings(script, [8 << 20])
    monkeypatch.setattr(memory, "REACHED_WITHIN_S", 0)
    with pytest.raises(StallmarkError, match="still holds 8,192 MiB"):
        engine.cap_memory(4 << 30)


def test_settings_that_cannot_be_given_back_are_named_and_kept(engine, script, quick, tmp_path):
    settings = Settings(script, [4 << 20])
    engine.cap_memory(4 << 30)
    settings.refuses = True
    with pytest.raises(StallmarkError, match="to 2147483647 and"), engine.hold():
        pass
    [journal] = tmp_path.rglob("*.json")
    assert json.loads(journal.read_text())["max server memory (MB)"] == 2147483647


def test_a_second_run_on_the_same_server_is_refused(engine, monkeypatch):
    monkeypatch.setitem(LOCK, "taken", -1)
    with pytest.raises(StallmarkError, match="Another Stallmark drives"), engine.hold():
        pass


# Caches and copies


def test_caches_of_others_are_emptied_only_when_told_so(engine, server, script):
    script.sql("IS_SRVROLEMEMBER", Rows([Column("may", INT)], [(1,)]))
    assert "--drop-caches" in str(engine.cannot("cold_cache"))
    engine.may_drop_caches = True
    assert engine.cannot("cold_cache") is None
    script.sql("FROM sys.databases", Rows([Column("name", nvarchar(128))], [("bank",), ("odd]name",)]))
    script.sql("CHECKPOINT|DROPCLEANBUFFERS", Count(0))
    server.forget()
    engine.drop_caches()
    said = [request.text for request in server.requests[1:]]
    assert said == [
        "USE [bank]; CHECKPOINT", "USE [odd]]name]; CHECKPOINT", "DBCC DROPCLEANBUFFERS WITH NO_INFOMSGS",
    ]  # fmt: skip


def test_a_backup_says_what_it_is_of(engine, server, script):
    label = '{"workload": "bank", "note": "' + "it's long " * 30 + '"}'
    script.sql("BACKUP DATABASE", Count(0))
    engine.keep_for_restore(label)
    taken = server.requests[-1].text
    described = re.search(r" DESCRIPTION = N'((?:[^']|'')*)', MEDIADESCRIPTION = N'((?:[^']|'')*)'", taken)
    first, second = (part.replace("''", "'") for part in described.groups())
    assert first + second == label and len(first) == 255
    text = nvarchar(255)
    script.sql(
        "RESTORE HEADERONLY",
        Rows([Column("BackupDescription", text), Column("DatabaseName", text)], [(first, "bank")]),
    )
    script.sql("RESTORE LABELONLY", Rows([Column("MediaDescription", text)], [(second,)]))
    assert engine.kept_for_restore() == label


def test_without_a_backup_there_is_none(engine, script):
    script.sql("RESTORE HEADERONLY", Error(3201, "Cannot open backup device.", severity=16))
    assert engine.kept_for_restore() is None


def test_a_restore_that_fails_is_a_sentence_and_the_database_is_online_again(engine, server, script):
    script.sql("SET OFFLINE|SET ONLINE", Count(0))
    script.sql("RESTORE DATABASE", Error(3257, "There is insufficient free space.", severity=16))
    with pytest.raises(StallmarkError, match="failed: There is insufficient free space"):
        engine.restore()
    assert "SET ONLINE" in server.requests[-1].text


def test_a_backup_that_this_login_may_not_read_is_not_taken_for_none(engine, script):
    script.sql("RESTORE HEADERONLY", Error(3110, "User does not have permission to RESTORE.", severity=14))
    with pytest.raises(CallFailed, match="permission"):
        engine.kept_for_restore()


def test_an_error_of_a_later_statement_is_not_lost(engine, script):
    script.sql("two statements", Count(1), Error(9002, "The transaction log is full.", severity=17))
    with pytest.raises(CallFailed, match="log is full"):
        engine.execute("two statements")


def test_settings_come_as_they_are_and_what_cannot_be_read_is_said(engine, script):
    columns = [Column("recovery_model", nvarchar(60)), Column("compatibility_level", INT)]
    script.sql("recovery_model_desc", Rows(columns, [("SIMPLE", 160)]))
    names = ["database_name", "name", "type_desc", "physical_name"]
    kinds = [
        *[Column(name, nvarchar(260)) for name in names],
        *[Column(n, BIGINT) for n in ("pages", "growth", "p")],
    ]
    script.sql("sys.master_files", Rows(kinds, [("bank", "data", "ROWS", "D:\\bank.mdf", 131072, 8192, 0)]))
    script.sql("dm_os_sys_info", Error(300, "VIEW SERVER STATE permission was denied.", severity=14))
    found = engine.settings()
    assert found["database recovery model"] == "SIMPLE" and found["database compatibility level"] == "160"
    assert found["file bank.data"] == "ROWS, D:\\bank.mdf, 1024 MiB, grows by 64 MiB"
    assert "permission was denied" in found["not readable: settings_server"]
