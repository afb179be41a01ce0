"""The watch on the server's error log."""

from collections.abc import Sequence

import pyarrow as pa
import pytest
from support import published_waits as published
from support.collecting import opened
from support.mssql_server import Server, rows
from support.scripted_views import answered, words_of
from support.tds.answers import Error
from support.waiting import eventually

from stallmark.collectors import collectors_for, storage_alarm
from stallmark.collectors.mssql import moments
from stallmark.collectors.mssql.counters import ServerIO
from stallmark.collectors.mssql.moments import _SEARCHED, _WATCHED, ErrorLog, storage_error
from stallmark.collectors.sampler import Collector
from stallmark.engines.mssql.odbc import failed
from stallmark.errors import ErrorClass, StallmarkError


@pytest.mark.parametrize(
    ("text", "number"),
    [
        (published.HARD_ERROR, 823),
        (published.CORRUPT_PAGE, 824),
        (published.READ_RETRIED, 825),
        (published.LONG_IO, 833),
        ("Recovery of database 'bank' (7) is 50% complete, at offset 12", None),
    ],
)
def test_storage_errors_are_told_by_their_words(text: str, number: int | None) -> None:
    assert storage_error(text) == number
    assert "offset" in text  # what the query searches for


LOG = ["LogDate", "ProcessInfo", "Text"]


def watching(server: Server, *answers: Sequence[tuple]) -> ErrorLog:
    """The watch on a log that reads so, one answer after the other, the last one again and again."""
    for lines in answers[:-1]:
        server.script.sql(words_of(ErrorLog), rows(LOG, *lines), times=1)
    collector = answered(server, ErrorLog, rows(LOG, *answers[-1]))
    assert isinstance(collector, ErrorLog)
    return collector


@pytest.mark.parametrize("text", [published.HARD_ERROR, published.READ_RETRIED, published.LONG_IO])
def test_a_storage_error_raises_the_alarm(server: Server, text: str) -> None:
    old = ("2026-03-02 09:00:00.000", "spid9s", published.LONG_IO)
    new = ("2026-03-02 09:10:00.000", "spid9s", text)
    collector = watching(server, [old], [old], [old], [old, new])
    assert collector.unavailable() is None  # reads it twice: what was there before is not ours
    others: list[Collector] = [ServerIO(collector.engine), collector]
    with opened(collector):
        assert collector.sample(15.0) == [] and storage_alarm(others) is None
        [row] = collector.sample(30.0)
        assert row == {"log_time": new[0], "number": storage_error(text), "text": text}
        assert collector.sample(45.0) == []
        alarm = storage_alarm(others)
    assert alarm is not None and text in alarm and alarm.endswith(f"(error {storage_error(text)}); check the storage")
    assert pa.RecordBatch.from_pylist([row], schema=collector.columns).to_pylist() == [row]


def test_the_same_line_again_is_another_error(server: Server) -> None:
    line = ("2026-03-02 09:00:00.000", "spid9s", published.LONG_IO)
    collector = watching(server, [line], [line], [line, line])
    assert collector.unavailable() is None
    with opened(collector):
        assert len(collector.sample(15.0)) == 1


def test_what_is_logged_before_the_first_turn_or_in_an_outage_or_at_the_end_counts(server: Server) -> None:
    first, second, third = (
        (f"2026-03-02 09:0{n}:00.000", "s", text)
        for n, text in enumerate([published.LONG_IO, published.CORRUPT_PAGE, published.READ_RETRIED])
    )
    collector = watching(server, [], [], [first], [first, second], [first, second, third])
    assert collector.unavailable() is None
    with opened(collector):
        assert [row["number"] for row in collector.sample(15.0)] == [833]
    with opened(collector):
        assert [row["number"] for row in collector.sample(60.0)] == [824]
        server.responder.cut_all()
        with pytest.raises(StallmarkError):
            collector.sample(75.0)
    assert [row["number"] for row in collector.finish()] == [825]
    eventually(lambda: server.responder.open_connections == 0)  # the look at the end leaves none behind


def test_a_log_that_takes_long_to_read_is_said(server: Server, monkeypatch: pytest.MonkeyPatch) -> None:
    collector = watching(server, [])
    assert collector.unavailable() is None and collector.limitation() is None
    monkeypatch.setattr(moments, "LONG_READ_S", 0.0)
    assert "to read its error log, and does so every 60 s: EXEC sp_cycle_errorlog" in str(collector.limitation())


def test_no_log_no_alarm(server: Server) -> None:
    assert storage_alarm(collectors_for(server.engine())) is None


GERMAN = "Vom Betriebssystem wurde Fehler 23(Datenfehler) an SQL Server zurückgegeben, bei Offset 0x0000001a5de000."


@pytest.mark.parametrize(
    ("line", "number"),
    [
        ("Error: 823, Severity: 24, State: 2.", 823),
        ("Fehler: 823, Schweregrad: 24, Status: 2.", 823),  # FirstResponderKit #3161
        ("Erreur : 825, Gravité : 10, État : 2.", 825),
        ("错误: 832，严重性: 24，状态: 1。", 832),
        ("エラー: 823、重大度: 24、状態: 2。", 823),  # as sql-docs has one of 15581, in Japanese
        ("Error: 605, Severity: 21, State: 3.", 605),
        ("Error: 5243, Severity: 22, State: 8.", 5243),
        ("Error: 18456, Severity: 14, State: 8.", None),
        ("Error: 9001, Severity: 21, State: 4.", None),  # of a database that may be offline on purpose
        ("Error: 8233, Severity: 14, State: 8.", None),
        ("Database ID: 823, file: 24", None),
    ],
)
def test_the_line_in_front_of_a_message_has_its_number_in_every_language(line: str, number: int | None) -> None:
    assert storage_error(line) == number


def numbered(server: Server, *lines: tuple) -> None:
    """Answer each search for a number with the lines that hold it, from the second look on."""
    for words in _SEARCHED:
        server.script.sql(f"sp_readerrorlog 0, 1, N'{words}'", rows(LOG), times=1)
        matching = [line for line in lines if words in line[2]]
        server.script.sql(f"sp_readerrorlog 0, 1, N'{words}'", rows(LOG, *matching))


@pytest.mark.parametrize("number", _WATCHED)
def test_an_error_that_the_server_s_own_tasks_met_raises_the_alarm(server: Server, number: int) -> None:
    """A checkpoint, a backup or a clean-up meets the same errors as users, for whom they stop the run."""
    assert failed(pyodbc_error(number)).kind is ErrorClass.STORAGE or number == 833
    severity = {610: 16, 825: 10, 833: 10}.get(number, 21)  # sys.messages
    line = ("2026-03-02 09:10:00.000", "spid9s", f"Error: {number}, Severity: {severity}, State: 1.")
    numbered(server, line)
    collector = watching(server, [])
    assert collector.unavailable() is None
    with opened(collector):
        [row] = collector.sample(15.0)
    assert (row["number"], row["text"]) == (number, line[2]) and f"(error {number})" in str(collector.alarm)


def pyodbc_error(number: int) -> Exception:
    return Exception("HY000", f"[Microsoft][ODBC Driver 18 for SQL Server][SQL Server]text ({number}) (SQLExecDirectW)")


@pytest.mark.parametrize("message", [GERMAN, published.HARD_ERROR])
def test_an_error_counts_once_by_its_message_or_by_its_number(server: Server, message: str) -> None:
    when = "2026-03-02 09:10:00.000"
    numbered(server, (when, "spid9s", "Fehler: 823, Schweregrad: 24, Status: 2."))
    collector = watching(server, [], [], [(when, "spid9s", message)])
    assert collector.unavailable() is None
    with opened(collector):
        [row] = collector.sample(15.0)
    assert (row["log_time"], row["number"]) == (when, 823) and row["text"].endswith(message)
    assert "error 823" in str(collector.alarm)


def test_a_language_that_is_not_known_is_not_taken_for_english(server: Server) -> None:
    """A login with VIEW ANY ERROR LOG alone may read the log, and not sys.configurations."""
    denied = Error(300, "VIEW SERVER PERFORMANCE STATE permission was denied on object 'server'.", severity=14)
    server.script.sql("msglangid", denied)
    collector = watching(server, [])
    assert collector.unavailable() is None
    said = str(collector.limitation())
    assert said.startswith("Whether the error log is in English is not known (VIEW SERVER PERF") and "833" in said


def test_a_server_of_another_language_says_what_is_not_understood(server: Server) -> None:
    server.script.sql("msglangid", rows(["name"], ["Deutsch"]))
    collector = watching(server, [])
    assert collector.unavailable() is None
    assert "default language of logins is Deutsch. If the error log is written in it" in str(collector.limitation())
    assert "833" in str(collector.limitation())
