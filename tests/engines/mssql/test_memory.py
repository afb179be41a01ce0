"""The cap on the server's memory, and the journal of what stood there before it."""

import json
import os
import signal

import pytest
from support.command_line import signals_as_before
from support.mssql_settings import ADVANCED, CAP, FILLFACTOR, FLOOR, PARALLELISM, UNLIMITED, Settings
from support.simulated_time import Clock
from support.tds.answers import Error
from support.tds.responder import Responder
from support.tds.script import Script

from stallmark.engines.mssql import memory
from stallmark.engines.mssql.engine import MssqlEngine
from stallmark.errors import NotGivenBack, StallmarkError, in_words
from stallmark.stopping import StopSignal, listen

from .conftest import LEADS_TO, LOCK

pytestmark = pytest.mark.thorough


@pytest.fixture
def settings(script: Script, monkeypatch: pytest.MonkeyPatch) -> Settings:
    monkeypatch.setattr(memory, "time", Clock())
    return Settings(script)


def test_without_counters_what_the_server_has_committed_counts(engine, settings):
    settings.disabled = True
    assert engine.buffer_pool_bytes() == 8 << 30
    with engine.hold():
        assert engine.memory.cap(5 << 30) == 5 << 30
    settings.refuses = True
    assert engine.buffer_pool_bytes() is None


def test_the_cap_is_waited_for_and_given_back(engine, script, settings):
    settings.total_kb = [8 << 20, 6 << 20, (4 << 20) + 1000]
    before = dict(settings.values)
    with engine.hold():
        reached = engine.memory.cap(4 << 30)
        assert settings.in_use[CAP] == 4096 and settings.in_use[ADVANCED] == 1
        assert reached == 4 << 30 and not settings.total_kb[1:]
    assert settings.values == before and settings.in_use == before | {FLOOR: 16}
    assert not script.properties.values


def test_ctrl_c_while_it_is_given_back_does_not_keep_it(engine, settings):
    before = dict(settings.values)
    with signals_as_before():
        listen()
        with pytest.raises(StopSignal) as stopped, engine.hold():
            engine.memory.cap(4 << 30)
            settings.meanwhile = lambda: os.kill(os.getpid(), signal.SIGINT)
    assert settings.values == before and not hasattr(stopped.value, "__notes__")


@pytest.fixture(params=["on the server", "on this machine"])
def kept(request, script):
    """Where a journal is: on the server, unless the login may not write there."""
    if request.param == "on this machine":
        script.sql("sp_addextendedproperty", Error(15247, "User does not have permission.", severity=16))
    return request.param


def test_the_owners_own_cap_comes_back_and_the_manifest_says_which(engine, settings, kept):
    settings.values[CAP] = settings.in_use[CAP] = 6000
    said = f"{CAP}, found and given back at the end"
    assert said not in engine.settings().configuration
    with engine.hold():
        engine.memory.cap(4 << 30)
        told = engine.settings().configuration[said]
        assert told == "6000" if kept == "on the server" else told.startswith("6000 (noted on the driving machine")
    assert settings.in_use[CAP] == 6000 and said not in engine.settings().configuration


def test_after_a_kill_the_next_one_gives_back_what_was_there_before_the_first(engine, script, settings, kept, tmp_path):
    before = dict(settings.values)
    engine.memory.cap(4 << 30)
    engine.memory.cap(6 << 30)  # what the journal holds is the server's own, not our first cap
    assert bool(script.properties.values) == (kept == "on the server")
    assert bool(list(tmp_path.rglob("*.json"))) == (kept == "on this machine")
    with MssqlEngine(engine.spec()).hold():
        assert settings.values == before
    assert not script.properties.values and not list(tmp_path.rglob("*.json"))


def test_after_a_kill_it_is_given_back_from_another_machine_as_well(engine, settings, monkeypatch, tmp_path_factory):
    before = dict(settings.values)
    engine.memory.cap(4 << 30)
    monkeypatch.setenv("STALLMARK_STATE", str(tmp_path_factory.mktemp("elsewhere")))
    with MssqlEngine(engine.spec()).hold():
        assert settings.values == before


def test_a_server_that_keeps_its_memory_is_said(engine, settings, monkeypatch):
    settings.total_kb = [8 << 20]
    monkeypatch.setattr(memory, "REACHED_WITHIN_S", 0)
    with pytest.raises(StallmarkError, match="still holds 8,192 MiB"):
        engine.memory.cap(4 << 30)


def test_most_of_a_pool_is_dropped_at_once_where_that_is_allowed_and_time_is_by_size(
    engine, server, script, settings, monkeypatch
):
    monkeypatch.setattr(memory, "REACHED_WITHIN_S", 0)
    script.sql("DROPCLEANBUFFERS", Error(2571, "User does not have permission to run DBCC.", severity=14))
    settings.total_kb = [500 << 20, *[300 << 20] * 60, 4 << 20]  # a minute
    assert engine.memory.cap(4 << 30) == 4 << 30  # within the seconds that 496 GiB are given
    assert not [it for it in server.requests if "DROPCLEANBUFFERS" in (it.text or "")]
    engine.caches.allowed, settings.total_kb = True, [500 << 20, 3 << 20]
    engine.memory.cap(3 << 30)
    [dropped] = [at for at, it in enumerate(server.requests) if "DROPCLEANBUFFERS" in (it.text or "")]
    assert "sp_configure" in " ".join(it.text or "" for it in server.requests[dropped:])
    settings.total_kb = [4 << 20]
    with pytest.raises(StallmarkError, match="still holds 4,096 MiB 0 minutes after"):
        engine.memory.cap(3 << 30)


def test_settings_that_cannot_be_given_back_are_named_and_kept(engine, script, settings, kept, tmp_path):
    engine.memory.cap(4 << 30)
    settings.refuses = True
    with pytest.raises(StallmarkError, match=f"not have permission.*to {UNLIMITED} and") as refused, engine.hold():
        pass
    if kept == "on the server":
        [note] = script.properties.values.values()
        assert "EXEC master.sys.sp_dropextendedproperty @name = N'stallmark.memory'" in str(refused.value)
    else:
        [journal] = tmp_path.rglob("*.json")
        note = journal.read_text()
        assert f"remove {journal}" in str(refused.value)
    assert json.loads(note) == {CAP: UNLIMITED, ADVANCED: 0}


def test_what_somebody_else_has_not_yet_reconfigured_is_not_installed(engine, script, settings):
    settings.values[PARALLELISM] = 50
    with pytest.raises(
        StallmarkError, match=f"'{PARALLELISM}' is configured as 50 and still 5 in use.*RECONFIGURE, or set them back"
    ):
        engine.memory.cap(4 << 30)
    assert settings.values[CAP] == UNLIMITED and settings.in_use[PARALLELISM] == 5
    assert not script.properties.values


def test_nor_when_the_cap_is_given_back(engine, script, settings):
    engine.memory.cap(4 << 30)
    settings.values[PARALLELISM] = 50
    with pytest.raises(StallmarkError, match=f"could not be given back.*{PARALLELISM}.* to {UNLIMITED} and"):
        engine.memory.give_back()
    assert settings.in_use[PARALLELISM] == 5 and script.properties.values
    settings.in_use[PARALLELISM] = 50
    engine.memory.give_back()
    assert settings.in_use[CAP] == UNLIMITED and not script.properties.values


def test_a_cap_of_somebody_else_that_is_not_yet_in_use_is_theirs(engine, settings):
    settings.values[CAP] = 3000
    with pytest.raises(StallmarkError, match="configured as 3000 and still 2147483647"):
        engine.memory.cap(4 << 30)


def test_our_own_that_a_kill_left_so_is_not(engine, settings):
    settings.takes = False
    with pytest.raises(StallmarkError, match="RECONFIGURE had no effect"):
        engine.memory.cap(4 << 30)
    assert settings.values[CAP] == 4096 and settings.in_use[CAP] == UNLIMITED
    settings.takes = True
    engine.memory.give_back()
    assert settings.values[CAP] == settings.in_use[CAP] == UNLIMITED


def test_what_waits_for_the_next_start_is_in_nobodys_way(engine, settings):
    settings.values[FILLFACTOR] = 90
    assert engine.memory.cap(4 << 30) == 4 << 30


@pytest.mark.parametrize(("value", "in_use"), [(0, 16), (0, 0), (16, 0), (0, 8), (8, 0)])
def test_the_minimum_that_the_server_makes_of_none_is_not_a_change(engine, settings, value, in_use):
    """MicrosoftDocs/sql-docs PR 5687, and the defaults in sp_Blitz (FirstResponderKit)."""
    settings.values[FLOOR], settings.in_use[FLOOR] = value, in_use
    assert engine.memory.cap(4 << 30) == 4 << 30


def test_no_cap_is_written_in_two_ways(engine, script, settings):
    settings.values[CAP], settings.in_use[CAP] = 0, UNLIMITED
    assert engine.memory.cap(4 << 30) == 4 << 30
    engine.memory.give_back()
    assert not script.properties.values


def test_options_that_the_server_does_not_show_are_no_fault_of_ours(engine, script, settings):
    del settings.values[FLOOR]
    with pytest.raises(StallmarkError, match="does not show this login its option `min server memory"):
        engine.memory.cap(4 << 30)
    assert settings.values[CAP] == UNLIMITED and not script.properties.values


def test_a_cap_below_the_servers_own_minimum_is_refused(engine, script, settings):
    settings.values[FLOOR] = settings.in_use[FLOOR] = 4097
    with pytest.raises(StallmarkError, match=rf"4,096 MB.*which is 4,097.*sp_configure '{FLOOR[:10]}"):
        engine.memory.cap(4 << 30)
    assert settings.values[CAP] == UNLIMITED and not script.properties.values
    settings.values[FLOOR] = settings.in_use[FLOOR] = 4096
    assert engine.memory.cap(4 << 30) == 4 << 30


# At the end of a run


class Away:
    """A server that ends every connection and refuses logins, until it is back."""

    def __init__(self, server: Responder, script: Script):
        self.server, self.script = server, script

    def goes(self, times: int | None = None) -> None:
        """`times`: so many logins are refused."""
        refusal = Error(17187, "SQL Server is not ready to accept new client connections.", severity=16)
        self.script.login(refusal, times=times)
        self.server.cut_all()


@pytest.fixture
def away(server: Responder, script: Script) -> Away:
    return Away(server, script)


def test_a_server_that_restarts_at_the_end_is_waited_for(engine, script, settings, away):
    with engine.hold():
        engine.memory.cap(4 << 30)
        away.goes(times=5)
    assert settings.values[CAP] == UNLIMITED and not script.properties.values


def test_a_server_that_does_not_come_back_is_said_with_what_is_left_to_do(
    engine, script, settings, away, kept, monkeypatch
):
    monkeypatch.setattr(memory, "BACK_WITHIN_S", 0)
    with pytest.raises(NotGivenBack) as left, engine.hold():
        engine.memory.cap(4 << 30)
        away.goes()
    said = str(left.value)
    assert f"`{CAP}` of 127.0.0.1" in said and "still capped at 4096 (No connection" in said
    assert f"EXEC sp_configure '{CAP}', {UNLIMITED}; RECONFIGURE" in said
    assert ("the next run against this server gives it back" in said) == (kept == "on the server")
    assert ("this server from this machine gives" in said) == (kept == "on this machine")
    assert ("sp_dropextendedproperty" if kept == "on the server" else ".json") in said
    assert settings.values[CAP] == 4096


def test_the_runs_own_reason_is_not_replaced(engine, settings, away, monkeypatch):
    monkeypatch.setattr(memory, "BACK_WITHIN_S", 0)
    with pytest.raises(ZeroDivisionError) as raised, engine.hold():
        engine.memory.cap(4 << 30)
        away.goes()
        1 / 0  # noqa: B018
    assert in_words(raised.value).startswith("division by zero. `max server memory (MB)` of 127")


def test_a_run_that_changed_nothing_has_nothing_to_give_back(engine, settings, away):
    with engine.hold():
        away.goes()


def test_ctrl_c_ends_the_waiting_and_says_what_is_left(engine, settings, away, monkeypatch):
    def stop(_: float) -> None:
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt) as stopped, engine.hold():
        engine.memory.cap(4 << 30)
        away.goes()
        monkeypatch.setattr(memory.time, "sleep", stop)
    assert "still capped at 4096 (the wait for the server was stopped)" in in_words(stopped.value)


def test_without_the_lock_it_is_taken_again_first(engine, server, script, settings):
    with engine.hold():
        engine.memory.cap(4 << 30)
        server.forget()
        server.cut_all()
    assert settings.values[CAP] == UNLIMITED and not script.properties.values
    asked = [it.text for it in server.requests if "applock" in it.text.lower() or "sp_configure" in it.text]
    assert "sp_getapplock" in asked[0]


def test_the_cap_of_another_run_that_has_begun_is_not_undone(engine, script, settings, monkeypatch):
    monkeypatch.setattr(memory, "BACK_WITHIN_S", 0)
    with pytest.raises(NotGivenBack, match=r"Another run has begun on this server.*If `max"), engine.hold():
        engine.memory.cap(4 << 30)
        monkeypatch.setitem(LOCK, "mode", "NoLock")
        monkeypatch.setitem(LOCK, "taken", -1)
    assert settings.values[CAP] == 4096


def test_a_refusal_at_the_end_is_not_tried_for_two_minutes(engine, server, settings):
    with pytest.raises(NotGivenBack, match="not have permission"), engine.hold():
        engine.memory.cap(4 << 30)
        settings.refuses = True
        server.forget()
    assert sum("sp_configure" in it.text for it in server.requests) == 1


# After a failover


def test_a_cap_on_the_server_that_was_the_primary_is_not_forgotten(engine, script, settings, monkeypatch):
    """The journal is there as well, and the next run against that server gives it back."""
    with pytest.raises(NotGivenBack) as left, engine.hold():
        engine.memory.cap(4 << 30)
        monkeypatch.setitem(LEADS_TO, "name", "SECOND")
        with pytest.raises(StallmarkError, match="leads to SECOND"):
            engine.memory.cap(3 << 30)
    said = str(left.value)
    assert r"(DB\PROD)" in said and "SECOND" in said and f"EXEC sp_configure '{CAP}', {UNLIMITED}" in said
    assert settings.values[CAP] == 4096 and script.properties.values
    monkeypatch.setitem(LEADS_TO, "name", r"DB\PROD")
    with MssqlEngine(engine.spec()).hold():
        assert settings.values[CAP] == UNLIMITED
