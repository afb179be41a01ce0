"""`stallmark selftest` on a PostgreSQL by URL: what it says, and what it leaves behind."""

import io
import signal
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import psycopg
import pytest
from click.testing import CliRunner
from rich.console import Console
from support.locks import in_the_way

from stallmark.cli.main import main
from stallmark.engines.abilities import Examined
from stallmark.engines.postgres.embedded_engine import EmbeddedEngine
from stallmark.engines.postgres.engine import PostgresEngine
from stallmark.errors import StallmarkError
from stallmark.experiment.progress import Show
from stallmark.experiment.runner import Runner
from stallmark.experiment.target import Target
from stallmark.lab import selftest_checks
from stallmark.lab.selftest_checks import Selftest, SelftestResult, Trial
from stallmark.loaders import ledger, loader_for
from stallmark.loaders.ledger import Identity
from stallmark.loaders.load import build
from stallmark.schema.deploy import OWN_TABLES, create_tables
from stallmark.stopping import StopSignal
from stallmark.transactions.bank import WORKLOAD as BANK
from stallmark.transactions.brokerage import WORKLOAD as BROKERAGE

SCHEMAS = "SELECT nspname FROM pg_namespace WHERE nspname IN ('bank', 'brokerage', 'stallmark')"


@pytest.fixture
def of_the_bank(monkeypatch: pytest.MonkeyPatch) -> None:
    """A selftest without the brokerage, which takes longer to build."""
    monkeypatch.setattr(selftest_checks, "CHOICES", (selftest_checks.BANK,))


@pytest.fixture
def run(database: EmbeddedEngine, tmp_path: Path, of_the_bank: None) -> Callable[..., Selftest]:
    """Runs a selftest of the bank on an empty database that is reached by URL."""

    def run(**changes: Any) -> Selftest:
        options = {"seconds": 1, "keep": False, "may_cap_memory": False} | changes
        show = Show(Console(file=io.StringIO()))
        return selftest_checks.selftest(Target(database.spec()), tmp_path / "runs", show, **options)

    return run


def state(result: Selftest, what: str) -> SelftestResult:
    [check] = [check for check in result.checks if check.subject == what]
    return check


def test_what_it_tried_is_a_table_and_a_database_that_was_kept_is_its_own(database, of_the_bank, tmp_path):
    options = ["--seconds", "1", "--keep", "--out", str(tmp_path / "runs")]
    result = CliRunner().invoke(main, ["selftest", *options], env={"STALLMARK_SERVER": database.spec()})
    assert result.exit_code == 0, result.output
    rows = [line for line in result.stdout.splitlines() if line.startswith("|")]
    assert rows[0] == "| check | result | |" and all(row.count("|") == 4 for row in rows)
    assert "| bank: 4 users | works | 1 s measured |" in rows
    [transfer] = [row for row in rows if row.startswith("| bank: transaction transfer | works | ")]
    assert "committed, 0 failed" in transfer
    [memory] = [row for row in rows if row.startswith("| bank: memory cap, and given back | off | ")]
    assert "restart" in memory
    assert len(database.query(SCHEMAS)) == 2
    selftest_checks.refuse_what_is_not_ours(database)


@pytest.mark.parametrize("choice", selftest_checks.CHOICES, ids=str)
def test_what_a_killed_one_left_is_taken_for_its_own(database, choice):
    workload = BANK if choice.name == "bank" else BROKERAGE
    create_tables(database, OWN_TABLES)
    options = dict(loader_for(choice.name).options)
    ledger.write(database, Identity(choice.name, workload.version, choice.scale, choice.seed, options))
    create_tables(database, workload.metadata)
    database.execute(f"CREATE VIEW {choice.name}.audit AS SELECT 1 AS number")
    with pytest.raises(StallmarkError, match=rf"The database is not empty \({choice.name}\.audit\)"):
        selftest_checks.refuse_what_is_not_ours(database)
    database.execute(f"DROP VIEW {choice.name}.audit")
    selftest_checks.refuse_what_is_not_ours(database)
    selftest_checks.drop(database, Show(Console(file=io.StringIO())))
    assert database.query(SCHEMAS) == []
    selftest_checks.refuse_what_is_not_ours(database)
    database.execute("CREATE SCHEMA brokerage; CREATE TABLE brokerage.thesis (chapter integer)")
    with pytest.raises(StallmarkError, match=r"The database is not empty \(brokerage\.thesis\)"):
        selftest_checks.refuse_what_is_not_ours(database)


OF_OTHERS = [
    ("hr.salaries", "CREATE TABLE hr.salaries (amount integer)"),
    ("bank.thesis", "CREATE TABLE bank.thesis (chapter integer)"),  # in a schema that bears our name
    ("bank.report", "CREATE VIEW bank.report AS SELECT 1 AS number"),
    ("bank.report", "CREATE MATERIALIZED VIEW bank.report AS SELECT 1 AS number"),
    ("bank.report", "CREATE FUNCTION bank.report() RETURNS integer RETURN 1"),
    ("bank.report", "CREATE SEQUENCE bank.report"),
    ("bank.report", "CREATE TYPE bank.report AS ENUM ('good')"),
    ("bank.report", "CREATE PROCEDURE bank.report() BEGIN ATOMIC END"),
]


def test_a_database_that_holds_anything_is_refused_and_stays(run, database):
    for thing, statement in OF_OTHERS:
        schema, _, name = thing.partition(".")
        database.execute(f"CREATE SCHEMA {schema}; {statement}")
        with pytest.raises(StallmarkError, match=rf"The database is not empty \({thing}\)"):
            run()
        assert database.schemas_in_use() == {schema: [name]}, statement
        database.execute(f"DROP SCHEMA {schema} CASCADE")
    build(database, BANK, {"branches": 1}, seed=1, workers=1)
    with pytest.raises(StallmarkError, match="The database is not empty"):
        run()
    assert database.query("SELECT count(*) FROM bank.accounts") == [(100_000,)]


def go_on(_: Any) -> Any:
    raise StallmarkError("it goes on")


def test_a_second_one_leaves_the_tables_of_the_first(run, database):
    build(database, BANK, selftest_checks.BANK.scale, seed=selftest_checks.SEED, workers=1)
    with PostgresEngine(database.spec()).hold():
        result = run()
    assert state(result, "bank: 4 users").result.startswith("Another Stallmark drives")
    assert state(result, "removed what it made").result.startswith("Another Stallmark drives")
    assert result.exit_code == 3 and database.query("SELECT count(*) FROM bank.accounts") == [(100_000,)]


def test_one_that_waits_for_a_lock_says_whose(run, database, tmp_path, monkeypatch):
    monkeypatch.setattr(Runner, "run", go_on)
    build(database, BANK, selftest_checks.BANK.scale, seed=selftest_checks.SEED, workers=1)
    said = io.StringIO()
    with in_the_way(database, "SELECT * FROM bank.accounts LIMIT 1") as pid:
        selftest_checks.selftest(
            Target(database.spec(), may_share=True), tmp_path, Show(Console(file=said, width=200)),
            seconds=1, keep=False, may_cap_memory=False,
        )  # fmt: skip
    assert f"Waiting for a lock that session {pid} (psql, of" in said.getvalue()
    assert database.query(SCHEMAS) == []


FAILS = "ALTER TABLE bank.history ADD CONSTRAINT none_at_all CHECK (delta IS NULL)"


def test_a_database_that_others_are_in_is_refused_unless_it_is_shared(run, database, tmp_path, monkeypatch):
    monkeypatch.setattr(selftest_checks, "_facts", go_on)
    with psycopg.connect(database.spec(), application_name="till") as other:
        with pytest.raises(StallmarkError, match=rf"has other sessions .*session {other.info.backend_pid} \(till"):
            run()
        assert database.query(SCHEMAS) == []
        with pytest.raises(StallmarkError, match="it goes on"):
            selftest_checks.selftest(
                Target(database.spec(), may_share=True), tmp_path, Show(Console(file=io.StringIO())),
                seconds=1, keep=False, may_cap_memory=False,
            )  # fmt: skip


def test_a_transaction_that_fails(run, database, monkeypatch):
    """By a constraint that came between the load and the run."""
    drive = Runner.run

    def spoil_and_run(runner: Runner) -> Any:
        build(database, BANK, {"branches": 1}, seed=selftest_checks.SEED, workers=1)
        database.execute(FAILS)
        return drive(runner)

    monkeypatch.setattr(Runner, "run", spoil_and_run)
    result = run()
    assert result.exit_code == 3
    check = state(result, "bank: transaction transfer")
    assert (check.state, check.exit_code) == ("failed", 3)
    assert check.result.startswith("0 committed") and "none_at_all" in check.result
    assert state(result, "bank: 4 users").exit_code == 4, "it never committed"
    assert state(result, "bank: consistency after the load").state == "off"
    assert database.query(SCHEMAS) == []


def test_a_run_that_cannot_be_made_ends_it(run, database, monkeypatch):
    def fail(runner: Runner) -> Any:
        raise StallmarkError("The disk is too small.")

    monkeypatch.setattr(Runner, "run", fail)
    result = run()
    ended = [(check.subject, check.result) for check in result.checks if check.state == "failed"]
    assert ended == [("bank: 4 users", "The disk is too small.")]
    assert result.exit_code == 3 and result.record is None and result.checks[-1].subject == "removed what it made"


def test_what_nobody_thought_of_says_where_it_happened(run, monkeypatch):
    def fail(runner: Any) -> Any:
        return runner.nothing

    monkeypatch.setattr(Runner, "run", fail)
    check = state(run(), "bank: 4 users")
    assert check.state == "failed" and check.result.startswith("AttributeError in test_selftest.py:")


def test_ctrl_c_leaves_nothing(run, database, monkeypatch):
    def stop(trial: Any, *_: Any) -> str:
        raise StopSignal(signal.SIGINT)

    monkeypatch.setattr(Trial, "_run", stop)
    with pytest.raises(StopSignal):
        run()
    assert database.query(SCHEMAS) == []


@pytest.mark.parametrize(("codes", "code"), [([0, 0], 0), ([0, 3], 3), ([4, 0], 4), ([3, 4, 1], 1)], ids=str)
def test_the_exit_code(codes, code):
    checks = [SelftestResult("", "failed" if each else "works", "", each) for each in codes]
    assert Selftest({}, checks, None).exit_code == code


def test_what_the_doctor_says_comes_first_even_if_it_cannot_say_all():
    class Strange:
        def examine(self) -> Iterator[Examined]:
            yield Examined("bulk copy", "missing", "it failed when it was tried.")
            yield Examined("encryption", "limited", "the server's certificate is not checked.")
            raise RuntimeError("a driver's own")

    found = selftest_checks._examine(Strange())  # type: ignore[arg-type]
    assert [(check.subject, check.state, check.exit_code) for check in found] == [
        ("bulk copy", "failed", 3), ("encryption", "off", 0), ("driver, edition and rights", "failed", 3),
    ]  # fmt: skip
    assert "a driver's own" in found[-1].result


def test_the_json_of_a_check_keeps_its_keys():
    shown = SelftestResult("bank", "failed", "No run.", 3).in_json()
    assert shown == {"what": "bank", "state": "failed", "said": "No run.", "exit_code": 3}
