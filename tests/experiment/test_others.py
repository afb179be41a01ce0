"""A database in which others have something, or that cannot be written, is refused before anything is built there."""

import subprocess
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import psycopg
import pytest
from support.clusters import Cluster
from support.command_line import stallmark
from support.locks import in_the_way
from support.mssql_server import STANDARD, answering, engine_at, rows, says_it_is
from support.remote import PREFIX, Remote, free_port, programs, remote
from support.tds.answers import Error, Rows
from support.tds.script import Script
from support.waiting import eventually

from stallmark.cli import doctor
from stallmark.engines.postgres.embedded_engine import EmbeddedEngine
from stallmark.engines.postgres.engine import PostgresEngine
from stallmark.errors import StallmarkError
from stallmark.experiment.others import advice_on_unseen, others_in, refuse_others
from stallmark.loaders.load import build
from stallmark.record.reader import find_records
from stallmark.transactions.bank import WORKLOAD as BANK

__all__ = ["remote"]

BUILD = ("build", "bank", "--scale", "branches=1", "--workers", "1")
SMALL = (
    "{name: mine, workload: {name: bank, scale: {branches: 1}}, users: 1, measure: 1s, warm_up: 0s, reset: continue, "
    "think_time: {mean: 20ms}, variants: [{name: a}]}"
)


@pytest.fixture(autouse=True)
def home(monkeypatch, tmp_path: Path) -> None:
    monkeypatch.setenv("STALLMARK_HOME", str(tmp_path / "home"))
    monkeypatch.chdir(tmp_path)


@pytest.fixture
def url(database: EmbeddedEngine, monkeypatch) -> str:
    monkeypatch.setenv("STALLMARK_SERVER", database.spec())
    return database.spec()


def said_by(*command: str, code: int = 3) -> str:
    done = stallmark(*command)
    assert done.exit_code == code, done.output
    return " ".join(done.stderr.split())


def schemas(database: PostgresEngine) -> set[str]:
    return set(database.schemas_in_use())


def test_tables_of_others_are_named_and_nothing_is_built_beside_them(database, url, tmp_path):
    database.execute("CREATE TABLE public.pgbench_accounts (aid integer); CREATE SCHEMA hr")
    database.execute("CREATE FUNCTION hr.raise() RETURNS integer RETURN 1")
    scenario = tmp_path / "mine.yaml"
    scenario.write_text(SMALL)
    for command in (BUILD, ("db", *BUILD), ("run", str(scenario))):
        said = said_by(*command)
        assert "holds what is not Stallmark's: hr.raise, public.pgbench_accounts. Name a database" in said
        assert "--shared" in said and said.count("Error:") == 1
    assert schemas(database) == {"hr", "public"}
    stated = said_by("doctor", "--json", code=0)
    assert not stated
    [told] = [line for line in stallmark("doctor").stdout.splitlines() if "others: " in line]
    assert "hr.raise, public.pgbench_accounts" in told and "--shared" in told
    said_by(*BUILD, "--shared", code=0)
    assert schemas(database) == {"hr", "public", "bank", "stallmark"}
    said_by("run", str(scenario), "--shared", "--out", str(tmp_path / "runs"), code=0)
    [made] = [record.manifest for record in find_records([*(tmp_path / "runs").iterdir()])]
    assert made.server.shared, "so that the command to resume it has the option as well"
    assert "hr.raise" in said_by(*BUILD)


def test_what_an_extension_brought_is_of_nobody(database, url):
    database.execute("CREATE FUNCTION public.brought_along() RETURNS integer RETURN 1")
    database.execute("ALTER EXTENSION plpgsql ADD FUNCTION public.brought_along()")
    assert others_in(database) is None


def test_a_schema_of_ours_by_name_alone_is_of_others(database):
    database.execute("CREATE SCHEMA bank; CREATE TABLE bank.thesis (chapter integer)")
    assert others_in(database) == "bank.thesis"
    database.execute("DROP SCHEMA bank CASCADE")
    build(database, BANK, {"branches": 1}, seed=1, workers=1)
    assert others_in(database) is None
    database.execute("CREATE TABLE bank.audit (n integer); CREATE VIEW stallmark.report AS SELECT 1 AS number")
    assert others_in(database) == "bank.audit, stallmark.report"


def test_sessions_of_others_are_named(database, url):
    with psycopg.connect(url, application_name="till") as other:
        said = said_by(*BUILD)
        assert f"holds what is not Stallmark's: session {other.info.backend_pid} (till, of" in said
        said_by(*BUILD, "--shared", code=0)
    eventually(lambda: others_in(database) is None)
    said_by(*BUILD, code=0)  # our own needs no option again
    assert not any("others: " in line for line in stallmark("doctor").stdout.splitlines())


def test_a_view_in_a_schema_of_ours_by_name_alone_is_not_built_beside(database, url):
    database.execute("CREATE SCHEMA bank; CREATE VIEW bank.accounts AS SELECT 1 AS aid")
    assert "has things in schema 'bank' that Stallmark did not make (accounts, …)" in said_by(*BUILD, "--shared")
    assert database.schemas_in_use() == {"bank": ["accounts"]}


def test_what_comes_and_goes_with_a_table_is_not_named_beside_it(database):
    database.execute("CREATE TABLE t (n integer GENERATED ALWAYS AS IDENTITY, m serial) PARTITION BY LIST (n)")
    database.execute("CREATE TABLE first PARTITION OF t FOR VALUES IN (1); CREATE TYPE span AS RANGE (subtype = int)")
    assert others_in(database) == "public.span, public.span_multirange, public.t"


def test_commands_that_wait_for_a_lock_say_whose(database, url, tmp_path):
    (tmp_path / "mine.yaml").write_text(SMALL)
    said_by(*BUILD, "--part", "2/3", code=0)
    for locked, command in (
        ("bank.accounts", BUILD),
        ("stallmark.database IN SHARE MODE", ("run", "mine.yaml")),
        ("bank.history", ("check", "bank", "--scale", "branches=1")),
    ):
        with in_the_way(database, f"LOCK TABLE {locked}") as pid:
            said = said_by(*command, "--shared", code=0)
        assert f"Waiting for a lock that session {pid} (psql, of" in said


def test_many_things_are_not_all_named(database):
    for number in range(7):
        database.execute(f"CREATE SCHEMA s{number}; CREATE TABLE s{number}.t (n integer)")
    assert others_in(database) == "s0.t, s1.t, s2.t, s3.t and 3 more"


# SQL Server

SESSION = rows(["session_id", "program_name", "login_name", "host_name"], [53, "Till", "shop", "TILL7"])


@pytest.mark.parametrize("may_see", [True, False])
def test_those_of_a_sql_server_are_named_as_far_as_this_login_sees_them(may_see):
    script = Script(databases=["bank", "master"])
    says_it_is(script)
    script.sql("FROM sys.objects", rows(["schema_name", "one"], ["dbo", "thesis"]))
    script.sql("is_user_process = 0", rows(["may"], [int(may_see)]))
    script.sql("dm_exec_sessions", SESSION if may_see else Error(300, "VIEW SERVER STATE permission was denied"))
    script.sql(r"DB_NAME\(\)", rows(["name"], ["bank"]))
    with answering(script) as server, pytest.raises(StallmarkError) as caught:
        refuse_others(engine_at(server))
    session = ", session 53 (Till, of shop, from TILL7)" if may_see else ""
    assert f"The database bank holds what is not Stallmark's: dbo.thesis{session}. Name" in str(caught.value)


SEES = rows(["may"], [1])


def empty_to(things: Rows | Error = SEES, sessions: Rows | Error = SEES) -> Script:
    """A server whose database shows a login nothing of others, with the answers whether it would see that."""
    script = Script(databases=["bank", "master"])
    says_it_is(script)
    script.sql("is_user_process = 0", sessions)
    script.sql("'VIEW DEFINITION'", things)
    script.sql("FROM sys.objects", rows(["schema_name", "one"]))
    script.sql("dm_exec_sessions", rows(["session_id", "program_name", "login_name", "host_name"]))
    script.sql(r"DB_NAME\(\)", rows(["name"], ["bank"]))
    return script


@pytest.mark.parametrize(
    ("may", "why"),
    [
        (SEES, None),
        (rows(["may"], [0]), "this login sees its own alone, and needs VIEW SERVER STATE"),
        (Error(8134, "Divide by zero error encountered."), "Divide by zero error encountered"),
    ],
)
def test_sessions_that_a_login_may_not_see_are_not_taken_for_none(may, why):
    """A login without the right gets its own session and no error."""
    with answering(empty_to(sessions=may)) as server:
        engine = engine_at(server)
        assert others_in(engine) is None
        sentence = f"hether others have sessions in the database{{}} is not known: {why}."
        assert advice_on_unseen(engine) == ([f"W{sentence.format(' bank')}"] if why else [])
        told = [one.sentence for one in doctor._others(engine)]
    assert told == ([f"w{sentence.format('')}"] if why else [])


@pytest.mark.parametrize(
    ("may", "why"),
    [
        (SEES, None),
        (rows(["may"], [0]), "this login has no VIEW DEFINITION there: GRANT VIEW DEFINITION TO it"),
        (rows(["may"], [None]), "this login has no VIEW DEFINITION there: GRANT VIEW DEFINITION TO it"),
        (Error(229, "The SELECT permission was denied."), "The SELECT permission was denied"),
    ],
)
def test_things_that_a_login_may_not_see_are_not_taken_for_none(may, why):
    """A login without the right sees what is its own in sys.objects, and gets no error."""
    with answering(empty_to(things=may)) as server:
        engine = engine_at(server)
        told = [one.sentence for one in doctor._others(engine)]
        if not why:
            refuse_others(engine)
            assert told == []
            return
        with pytest.raises(StallmarkError) as caught:
            refuse_others(engine)
    assert str(caught.value) == (
        f"Whether the database bank holds what is not Stallmark's is not known: {why}, or add --shared to build and "
        "drive load beside it."
    )
    assert told == [
        f"whether others have something in the database is not known, so a build or a run needs --shared: {why}."
    ]


@pytest.mark.parametrize(("answer", "is_refused"), [("READ_ONLY", True), ("READ_WRITE", False), (None, False)])
def test_a_sql_server_that_only_reads(answer, is_refused):
    script = Script(databases=["bank"])
    says_it_is(script)
    script.sql("Updateability", rows(["answer"], [answer]))
    with answering(script) as server:
        why = engine_at(server).not_writable_reason(())
    assert bool(why) is is_refused and (not why or "is read-only, as a readable secondary is" in why)


RIGHTS = ["creates_tables", "creates_schemas", "is_built", "only_read"]


@pytest.mark.parametrize(
    ("answer", "said"),
    [
        ((1, 1, 0, None), None),
        ((1, 1, 1, None), None),
        ((0, 0, 1, None), None),  # it may drive what somebody else has built
        ((None, None, 0, None), None),  # not known
        ((0, 0, 0, None), "This login may not create tables or schemas on"),
        ((1, 0, 0, None), "This login may not create schemas on"),
        ((1, 1, 1, "bank.accounts"), "This login may not read and change bank.accounts on"),
        (None, None),  # the server does not answer
    ],
)
def test_a_login_without_rights_on_a_sql_server(answer, said):
    """As a member of db_datareader, which only reads."""
    script = Script(databases=["bank"])
    says_it_is(script)
    script.sql("Updateability", rows(["answer"], ["READ_WRITE"]))
    if answer:
        script.sql("AS creates_tables", rows(RIGHTS, answer))
    with answering(script) as server:
        why = engine_at(server).not_writable_reason(["bank"])
        asked = [request for request in server.requests if "creates_tables" in (request.text or "")]
    assert (why is None) if said is None else (said in why and why.endswith("make it a member of db_owner."))
    assert len(asked) == 1


def test_a_babelfish_is_not_asked_for_rights():
    script = Script(databases=["bank"])
    says_it_is(script, "12.0.2000.8", STANDARD, "Babelfish for PostgreSQL with SQL Server Compatibility - 12.0.2000.8")
    script.sql("Updateability", rows(["answer"], ["READ_WRITE"]))
    script.sql("AS creates_tables", rows(RIGHTS, (0, 0, 0, None)))
    with answering(script) as server:
        assert engine_at(server).not_writable_reason(["bank"]) is None


# What only reads


@pytest.fixture(scope="module")
def standby(remote: Remote, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Remote]:
    folder = tmp_path_factory.mktemp("standby")
    made = Remote(folder, free_port())
    address = remote.url().replace("/work", "/postgres")
    copy = [programs() / "pg_basebackup", "-d", address, "-D", folder / "data", "-R", "-c", "fast", "--no-sync"]
    subprocess.run([*PREFIX, *copy], check=True, capture_output=True)
    made.start()
    yield made
    made.stop()


def test_a_standby_is_refused_with_its_primary(standby: Remote, remote: Remote, monkeypatch):
    monkeypatch.setenv("STALLMARK_SERVER", standby.url())
    eventually(lambda: f"name its primary, 127.0.0.1:{remote.port}." in said_by(*BUILD))
    assert f"127.0.0.1:{standby.port}/work is a standby, which only reads" in said_by(*BUILD)
    assert "is a standby, which only reads" in stallmark("doctor").stdout.replace("\n", " ")
    several = ("build", "bank,mail", "--scale", "branches=1,mailboxes=10,messages=10")
    assert f"127.0.0.1:{standby.port}/work is a standby, which only reads" in said_by(*several)


def test_nothing_is_dropped_where_nothing_can_be_written(standby: Remote, remote: Remote, monkeypatch):
    with psycopg.connect(remote.url(), autocommit=True) as boss:
        boss.execute("DROP SCHEMA IF EXISTS bank, stallmark CASCADE")
    monkeypatch.setenv("STALLMARK_SERVER", remote.url())
    said_by(*BUILD, code=0)
    monkeypatch.setenv("STALLMARK_SERVER", standby.url())
    eventually(lambda: stallmark("check", *BUILD[1:4]).exit_code == 0)
    assert "is a standby, which only reads: name its primary" in said_by("db", "remove", "--yes")


@pytest.mark.parametrize("whose", ["ROLE plain", "DATABASE work", "ROLE plain IN DATABASE work"])
def test_a_role_whose_sessions_only_read_is_named_with_the_setting(remote: Remote, monkeypatch, whose):
    monkeypatch.setenv("STALLMARK_SERVER", remote.url("plain"))
    with psycopg.connect(remote.url(), autocommit=True) as boss:
        boss.execute(f"ALTER {whose} SET default_transaction_read_only = on")
    try:
        said = said_by(*BUILD)
    finally:
        with psycopg.connect(remote.url(), autocommit=True, options="-c default_transaction_read_only=off") as boss:
            boss.execute(f"ALTER {whose} RESET ALL")
    assert f"Sessions of plain on 127.0.0.1:{remote.port}/work only read (default_transaction_read_only is on)" in said
    assert f"ALTER {whose} SET default_transaction_read_only = off" in said


def test_a_role_whose_sessions_check_no_foreign_keys_is_named_with_the_setting(remote: Remote):
    """Its load would do less than that of another role."""
    plain = PostgresEngine(remote.url("plain"))
    with psycopg.connect(remote.url(), autocommit=True) as boss:
        boss.execute("DROP SCHEMA IF EXISTS bank, stallmark CASCADE")  # of which another role may have rights
        boss.execute("ALTER ROLE plain SET session_replication_role = replica")
        try:
            why = plain.not_writable_reason(["bank"])
            told = [one.sentence for one in plain.examine() if one.state == "limited"]
        finally:
            boss.execute("ALTER ROLE plain RESET ALL")
    assert why and "check no foreign keys (session_replication_role is replica)" in why
    assert why.endswith("ALTER ROLE plain SET session_replication_role = origin, or name another role.")
    assert told == [why] and plain.not_writable_reason(["bank"]) is None


def test_a_role_without_rights_is_named_with_what_it_lacks(remote: Remote, monkeypatch):
    with psycopg.connect(remote.url(), autocommit=True) as boss:
        boss.execute("CREATE ROLE reader LOGIN PASSWORD 'corr3ct-h0rse'")
        boss.execute("DROP SCHEMA IF EXISTS bank, stallmark CASCADE")
    monkeypatch.setenv("STALLMARK_SERVER", remote.url("reader"))
    assert "reader may create nothing on" in (said := said_by(*BUILD)) and "GRANT CREATE ON DATABASE work" in said
    monkeypatch.setenv("STALLMARK_SERVER", remote.url())
    said_by(*BUILD, code=0)
    monkeypatch.setenv("STALLMARK_SERVER", remote.url("reader"))
    assert "reader may not read and change bank.accounts" in said_by(*BUILD)
    monkeypatch.setenv("STALLMARK_SERVER", remote.url())
    assert "reused" in stallmark(*BUILD).stdout


def test_a_right_is_asked_for_the_role_that_sessions_take_on(remote: Remote, monkeypatch):
    with psycopg.connect(remote.url(), autocommit=True) as boss:
        boss.execute("DROP SCHEMA IF EXISTS bank, stallmark CASCADE")
        boss.execute("CREATE ROLE owners")
        boss.execute("GRANT owners TO plain")
        boss.execute("ALTER ROLE plain IN DATABASE work SET role = owners")
        monkeypatch.setenv("STALLMARK_SERVER", remote.url("plain"))
        try:
            assert "owners may create nothing on" in (said := said_by(*BUILD))
            assert "GRANT CREATE ON DATABASE work TO owners." in said
            with pytest.raises(StallmarkError, match="GRANT pg_checkpoint TO owners"):
                PostgresEngine(remote.url("plain")).checkpoint()
        finally:
            boss.execute("ALTER ROLE plain IN DATABASE work RESET ALL")
            boss.execute("DROP ROLE owners")


def test_whose_lock_is_waited_for_is_seen_by_a_role_that_takes_on_another(remote: Remote):
    """It is not shown what its own sessions wait for."""
    plain = PostgresEngine(remote.url("plain"))
    with psycopg.connect(remote.url(), autocommit=True) as boss:
        boss.execute("CREATE ROLE takers")
        boss.execute("CREATE TABLE public.locked (n integer); GRANT SELECT ON public.locked TO takers")
        boss.execute("GRANT takers TO plain")
        boss.execute("ALTER ROLE plain IN DATABASE work SET role = takers")
        try:
            with ThreadPoolExecutor() as pool, boss.transaction():
                boss.execute("LOCK TABLE public.locked")
                waiting = pool.submit(plain.query, "SELECT current_user, count(*) FROM public.locked")
                [holder] = eventually(plain.blockers)
            assert holder.number == boss.info.backend_pid and waiting.result() == [("takers", 0)]
        finally:
            boss.execute("ALTER ROLE plain IN DATABASE work RESET ALL")
            boss.execute("DROP TABLE public.locked")
            boss.execute("DROP ROLE takers")


def test_a_cluster_that_is_ours_can_be_written(clusters):
    cluster: Cluster = clusters(18)
    assert PostgresEngine(cluster.url()).not_writable_reason(["bank"]) is None
