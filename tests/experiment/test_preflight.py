"""What a scenario asks of a SQL Server that cannot give it, or must not: others would lose what is theirs."""

import io
from collections.abc import Iterator

import pytest
from rich.console import Console
from support.mssql_server import answering, engine_at, says_it_is
from support.tds.answers import Count, Rows
from support.tds.datatypes import INT, nvarchar
from support.tds.responder import Responder
from support.tds.script import Script
from support.tds.tokens import Column

from stallmark.cli.selftest.selftest import selftest
from stallmark.engines.postgres.engine import PostgresEngine
from stallmark.errors import StallmarkError
from stallmark.experiment.preflight import refuse_what_cannot_be
from stallmark.experiment.progress import Show
from stallmark.experiment.runner import Runner
from stallmark.experiment.target import Target
from stallmark.experiment.user_run import Run


def test_more_users_than_a_sql_server_takes_and_its_own_word_for_that(read, tmp_path):
    script = Script(databases=["bank"])
    says_it_is(script)
    script.sql("@@MAX_CONNECTIONS", Rows([Column("most", INT)], [(12,)]))
    plain = ("emulated_array=null", "start_cache=as it is", "reset=continue", "variants=[{name: a}]")
    with answering(script) as server:
        engine = engine_at(server)
        refuse_what_cannot_be(read(sets=("users=2", *plain)), engine, tmp_path, None)
        with pytest.raises(StallmarkError, match="ask for fewer, or raise its `user connections`"):
            refuse_what_cannot_be(read(sets=("users=3", *plain)), engine, tmp_path, None)


def test_sessions_of_the_market_count_as_users_do(read, tmp_path, monkeypatch):
    monkeypatch.setattr("os.cpu_count", lambda: 2)
    engine = PostgresEngine("postgresql://nobody@127.0.0.1:1/nowhere")
    scenario = read(
        "{name: bank, scale: {branches: 1}}", "{name: brokerage}",
        sets=("users=30", "emulated_array=null", "start_cache=as it is", "reset=continue", "variants=[{name: a}]"),
    )  # fmt: skip
    monkeypatch.setattr(PostgresEngine, "most_users", lambda self: 60)
    refuse_what_cannot_be(scenario, engine, tmp_path, None)
    monkeypatch.setattr(PostgresEngine, "most_users", lambda self: 59)
    with pytest.raises(StallmarkError) as refused:
        refuse_what_cannot_be(scenario, engine, tmp_path, None)
    assert str(refused.value) == (
        "small asks for 30 users and 30 sessions of the market emulator, but the server takes 59 beside our own "
        "sessions: ask for fewer, or raise its max_connections."
    )


# A database that others have something in

ALONE = {"bank": "accounts", "stallmark": "identity"}
ANSWERS = {"'ServerName'": "DB", "@Resource = 'stallmark.run'": 0, "APPLOCK_MODE": "Exclusive", "@@MAX_CONNECTIONS": 99}
RESTORED = ("emulated_array=null", "start_cache=as it is", "variants=[{name: a}]")
SHOW = Show(Console(file=io.StringIO()))


@pytest.fixture
def holds() -> dict[str, str]:
    """By schema, one thing that the database holds."""
    return dict(ALONE)


@pytest.fixture
def shared(holds, monkeypatch, tmp_path) -> Iterator[Responder]:
    """A server whose login may do everything."""
    monkeypatch.setenv("STALLMARK_STATE", str(tmp_path))
    script = Script(databases=["bank", "master"])
    says_it_is(script)
    named = [Column(name, nvarchar(128)) for name in ("schema_name", "one")]
    script.sql("FROM sys.objects", lambda _: [Rows(named, list(holds.items()))])
    for pattern, answer in ANSWERS.items():
        kind = INT if isinstance(answer, int) else nvarchar(128)
        script.sql(pattern, Rows([Column("answer", kind)], [(answer,)]))
    rights = [Column(f"right {number}", INT) for number in range(5)]
    script.sql("BACKUP DATABASE'", Rows(rights, [(1,) * 5]))
    script.sql("^(CHECKPOINT|ALTER DATABASE|RESTORE|BACKUP)", Count(0))
    with answering(script) as server:
        yield server


def nothing_was_touched(server: Responder) -> bool:
    words = ("BACKUP", "RESTORE", "ALTER", "CREATE", "DROP", "INSERT")
    return not [it.text for it in server.requests if it.text.startswith(words)]


def test_a_database_that_others_have_something_in_is_not_restored(shared, holds, read, tmp_path):
    scenario, engine = read(sets=RESTORED), engine_at(shared)
    refuse_what_cannot_be(scenario, engine, tmp_path, None)  # as long as nobody else is in it
    holds["dbo"] = "thesis"
    with pytest.raises(StallmarkError, match=r"holds dbo\.thesis, which Stallmark did not make.*reset: continue"):
        Runner(scenario, engine, tmp_path / "runs", SHOW).run()
    assert nothing_was_touched(shared)
    refuse_what_cannot_be(read(sets=(*RESTORED, "reset=continue")), engine, tmp_path, None)


def test_nor_when_they_have_come_since_the_run_began(shared, holds, read, tmp_path):
    scenario, engine = read(sets=RESTORED), engine_at(shared)
    run = Run(
        scenario, scenario.variants[0], engine, folder=tmp_path / "run", place={}, title="", loaded=None,
        original_pool_bytes=None, look=lambda: None, notes=[], storage=None, array={}, show=SHOW, web_port=None,
        expected=None,
    )  # type: ignore[arg-type]  # fmt: skip
    holds["hr"] = "salaries"
    with pytest.raises(StallmarkError, match=r"holds hr\.salaries"):
        run.go()
    assert nothing_was_touched(shared)


def test_a_selftest_does_not_take_such_a_database_for_an_empty_one(shared, holds, tmp_path):
    holds["dbo"] = "thesis"
    url = f"mssql://tester:secret@127.0.0.1:{shared.port}/bank?TrustServerCertificate=yes"
    with pytest.raises(StallmarkError, match=r"not empty \(dbo\.thesis\).*name an empty database"):
        selftest(Target(url), tmp_path / "runs", SHOW, seconds=1, keep=False, may_cap_memory=True)
    assert nothing_was_touched(shared)
