"""`stallmark selftest` on the embedded engine and on a PostgreSQL by URL: what it says, and what it leaves behind."""

import io
import json
import signal
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner
from kept_databases import kept_database
from rich.console import Console
from workloads.market import WORKLOAD as MARKET

from stallmark.driver.engines.embedded import EmbeddedEngine
from stallmark.driver.engines.errors import StallmarkError
from stallmark.driver.engines.mssql.engine import MssqlEngine
from stallmark.driver.record import Record, RecordWriter
from stallmark.loaders import ledger
from stallmark.loaders.ledger import Identity
from stallmark.loaders.load import build
from stallmark.loaders.plan import loader_for
from stallmark.scenarios import selftest
from stallmark.scenarios.cli import main
from stallmark.scenarios.model import WorkloadChoice
from stallmark.scenarios.selftest import Selftest
from stallmark.scenarios.selftest_check import Check, attempt
from stallmark.scenarios.show import Show
from stallmark.scenarios.stopping import Stopped
from stallmark.scenarios.target import Target
from stallmark.schema.deploy import batches, create_tables
from stallmark.schema.ledger import METADATA as OWN_TABLES
from stallmark.transactions.bank import WORKLOAD as BANK
from stallmark.transactions.brokerage import WORKLOAD as BROKERAGE

SCHEMAS = "SELECT nspname FROM pg_namespace WHERE nspname IN ('bank', 'brokerage', 'stallmark')"


@pytest.fixture
def of_the_bank(monkeypatch: pytest.MonkeyPatch) -> None:
    """A selftest without the brokerage, which takes longer to build."""
    monkeypatch.setattr(selftest, "CHOICES", (selftest.BANK,))


@pytest.fixture
def run(database: EmbeddedEngine, tmp_path: Path, of_the_bank: None) -> Callable[..., Selftest]:
    """Runs a selftest of the bank on an empty database that is reached by URL."""

    def run(**changes: Any) -> Selftest:
        options = {"seconds": 1, "keep": False, "may_cap_memory": False} | changes
        show = Show(Console(file=io.StringIO()))
        return selftest.selftest(Target(database.spec()), tmp_path / "runs", show, **options)

    return run


def state(result: Selftest, what: str) -> Check:
    [check] = [check for check in result.checks if check.what == what]
    return check


def test_everything_on_the_embedded_engine(tmp_path, monkeypatch):
    monkeypatch.setenv("STALLMARK_HOME", str(tmp_path / "home"))
    monkeypatch.delenv("STALLMARK_SERVER", raising=False)
    handlers = {number: signal.getsignal(number) for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)}
    arguments = ["selftest", "--seconds", "1", "--json", "--out", str(tmp_path / "runs")]
    result = CliRunner().invoke(main, [*arguments, "--wal-dir", str(tmp_path / "wal")])
    for number, handler in handlers.items():
        signal.signal(number, handler)
    assert result.exit_code == 0, result.output
    told = json.loads(result.stdout)
    states = {check["what"]: check["state"] for check in told["checks"]}
    assert {
        f"{workload.name}: {what}" for workload in (BANK, BROKERAGE) for what in (
            "load", "consistency as loaded", "transactions alone", "4 users", "collector server_io", "collector wal",
            "counted as committed", "consistency after the load", "report",
            *(f"transaction {each.name}" for each in workload.transactions),
            *(f"transaction {each.name}, alone" for each in workload.transactions if each is not workload.opening),
        )
    } | {"bank: copy and restore", "bank: memory cap, and given back", "removed what it made"} == {
        what for what in states if ": collector" not in what or what.endswith(("server_io", "wal"))
    }  # fmt: skip
    assert "failed" not in states.values(), told
    assert {states[what] for what in states if what.endswith((", alone", "given back", "restore"))} == {
        "works"
    }
    assert told["facts"]["server"].startswith("PostgreSQL 18")
    assert Record(Path(told["record"])).manifest["status"] == "complete"
    left = {path.name for path in tmp_path.iterdir()} - {"home", "wal"}
    assert left == {"runs"} and list((tmp_path / "home" / "embedded").iterdir()) == []
    assert list((tmp_path / "wal").iterdir()) == []


def test_a_server_by_url_is_left_as_it_was(run, database):
    result = run()
    assert result.exit_code == 0
    assert state(result, "bank: memory cap, and given back").state == "off"
    assert "restart" in state(result, "bank: memory cap, and given back").said
    assert state(result, "bank: transaction transfer").said.endswith("committed, 0 failed")
    assert database.query(SCHEMAS) == []


def test_the_table_is_markdown(of_the_bank, database, tmp_path):
    result = CliRunner().invoke(
        main,
        ["selftest", "--seconds", "1", "--out", str(tmp_path / "runs")],
        env={"STALLMARK_SERVER": database.spec()},
    )
    assert result.exit_code == 0, result.output
    rows = [line for line in result.stdout.splitlines() if line.startswith("|")]
    assert rows[0] == "| check | result | |" and all(row.count("|") == 4 for row in rows)
    assert any(row.startswith("| bank: load | works | ") for row in rows)


def test_what_was_kept_is_removed_by_the_next_one(run, database):
    run(keep=True)
    assert len(database.query(SCHEMAS)) == 2
    assert run().exit_code == 0
    assert database.query(SCHEMAS) == []


@pytest.mark.parametrize("choice", selftest.CHOICES, ids=str)
def test_what_a_killed_one_left_is_taken_for_its_own(database, choice):
    workload = BANK if choice.name == "bank" else BROKERAGE
    create_tables(database, OWN_TABLES)
    options = dict(loader_for(choice.name).options)
    ledger.write(database, Identity(choice.name, workload.version, choice.scale, choice.seed, options))
    create_tables(database, workload.metadata)
    selftest._refuse_what_is_not_ours(database)
    selftest._drop(database)
    assert database.query(SCHEMAS) == []
    selftest._refuse_what_is_not_ours(database)
    database.execute("CREATE SCHEMA brokerage; CREATE TABLE brokerage.thesis (chapter integer)")
    with pytest.raises(StallmarkError, match=r"The database is not empty \(brokerage\.thesis\)"):
        selftest._refuse_what_is_not_ours(database)


@pytest.mark.parametrize("kind", ["foreign", "elsewhere", "built"])
def test_a_database_that_holds_anything_is_refused_and_stays(run, database, kind):
    if kind == "built":
        build(database, BANK, {"branches": 1}, seed=1, workers=1)
    elif kind == "elsewhere":
        database.execute("CREATE SCHEMA hr; CREATE TABLE hr.salaries (amount integer)")
        with pytest.raises(StallmarkError, match=r"The database is not empty \(hr\.salaries\)"):
            run()
        assert database.query(SCHEMAS) == []
        return
    else:
        database.execute("CREATE SCHEMA bank")
        database.execute("CREATE TABLE bank.thesis (chapter integer)")
    before = database.query("SELECT count(*) FROM pg_tables WHERE schemaname = 'bank'")
    with pytest.raises(StallmarkError, match="The database is not empty"):
        run()
    assert database.query("SELECT count(*) FROM pg_tables WHERE schemaname = 'bank'") == before != [(0,)]


def test_data_that_is_wrong_is_the_gravest(run, database, monkeypatch):
    load = selftest._load

    def load_and_spoil(bench: Any) -> str:
        said = load(bench)
        database.execute("UPDATE bank.accounts SET abalance = 5 WHERE aid = 1")
        return said

    monkeypatch.setattr(selftest, "_load", load_and_spoil)
    result = run()
    assert result.exit_code == 1
    check = state(result, "bank: consistency after the load")
    assert check.state == "failed" and "account" in check.said
    assert database.query(SCHEMAS) == []


def test_a_transaction_that_fails(run, database, monkeypatch):
    load = selftest._load

    def load_and_spoil(bench: Any) -> str:
        said = load(bench)
        database.execute("ALTER TABLE bank.history ADD CONSTRAINT none_at_all CHECK (delta IS NULL)")
        return said

    monkeypatch.setattr(selftest, "_load", load_and_spoil)
    result = run()
    assert result.exit_code == 3
    check = state(result, "bank: transaction transfer")
    assert check.state == "failed" and check.said.startswith("0 committed") and "none_at_all" in check.said
    assert database.query(SCHEMAS) == []


def test_a_load_that_fails_ends_it(run, database, monkeypatch):
    def fail(bench: Any) -> str:
        raise StallmarkError("The disk is too small.")

    monkeypatch.setattr(selftest, "_load", fail)
    result = run()
    assert [(check.what, check.state) for check in result.checks] == [
        ("bank: load", "failed"),
        ("removed what it made", "works"),
    ]
    assert result.exit_code == 3 and result.record is None


def test_what_nobody_thought_of_says_where_it_happened(run, monkeypatch):
    def fail(bench: Any) -> str:
        return bench.nothing

    monkeypatch.setattr(selftest, "_consistent", fail)
    check = state(run(), "bank: consistency as loaded")
    assert check.state == "failed" and check.said.startswith("AttributeError in test_selftest.py:")


def test_ctrl_c_leaves_nothing(run, database, monkeypatch):
    def stop(bench: Any) -> str:
        raise Stopped(signal.SIGINT)

    monkeypatch.setattr(selftest, "_drive", stop)
    with pytest.raises(Stopped):
        run()
    assert database.query(SCHEMAS) == []


def test_every_transaction_of_the_brokerage_alone(tmp_path):
    choice = WorkloadChoice(name="brokerage", scale=selftest.BROKERAGE.scale, seed=1)
    with kept_database(None, BROKERAGE, choice.scale, choice.seed) as engine:
        for batch in batches(BROKERAGE.procedures(engine.dialect)):
            engine.execute(batch)

        def execute() -> tuple[str, dict[str, Check]]:
            bench = selftest.Bench(engine, choice, tmp_path, Show(Console(file=io.StringIO())), 1, False)
            said = attempt("alone", lambda: selftest._execute_alone(bench)).said
            assert bench.alone
            return said, {check.what.split()[1].rstrip(","): check for check in bench.alone.checks()}

        said, found = execute()
        names = [kind.name for kind in BROKERAGE.transactions if kind is not BROKERAGE.opening]
        assert list(found) == names and {check.state for check in found.values()} == {"works"}
        assert all(kind in said for kind in ("TLB", "TLS", "TSL")) and said.endswith("24 counted, 24 seen")
        assert found["data_maintenance"].said == "24 committed"

        engine.execute("DROP FUNCTION brokerage.data_maintenance_tweak")
        engine.execute("ALTER FUNCTION brokerage.trade_order_submit RENAME TO trade_order_submit_away")
        said, found = execute()
        assert {name for name, check in found.items() if check.state == "failed"} == {
            "trade_order", "data_maintenance",
        }  # fmt: skip
        assert found["data_maintenance"].exit_code == 3
        assert found["data_maintenance"].said.startswith("24 failed; other (42883): ")
        assert "data_maintenance_tweak" in found["data_maintenance"].said
        engine.execute("DELETE FROM brokerage.trade_request")
        assert attempt("alone", lambda: selftest._execute_alone(
            selftest.Bench(engine, choice, tmp_path, Show(Console(file=io.StringIO())), 1, False)
        )).said == "no limit order waits for its price"  # fmt: skip


def test_a_transaction_that_fails_alone_says_by_what(database, tmp_path, monkeypatch):
    """Whatever it is that a driver raises; and a session that was lost is of no concern to the next one."""
    opened: list[Any] = []
    open_session = database.session

    def session(call_timeout_s: float) -> Any:
        opened.append(open_session(call_timeout_s))
        return opened[-1]

    build(database, BANK, selftest.BANK.scale, selftest.BANK.seed, workers=1)
    [transfer] = BANK.deck
    execute = transfer.execute

    def first_kills(self: Any, session: Any, inputs: tuple) -> Any:
        if len(opened) == 1:
            database.query(f"SELECT pg_terminate_backend({session.server_pid})")
        elif inputs[0] % 2:
            raise ValueError("odd")
        return execute(self, session, inputs)

    monkeypatch.setattr(transfer, "execute", first_kills)
    monkeypatch.setattr(database, "session", session)
    bench = selftest.Bench(database, selftest.BANK, tmp_path, Show(Console(file=io.StringIO())), 1, False)
    said = selftest._execute_alone(bench)
    assert said.endswith("counted, 13 seen and 1 of unknown outcome")
    assert bench.alone and len(opened) == 2
    [check] = bench.alone.checks()
    assert check.state == "failed" and " committed; " in check.said
    assert "unknown outcome (" in check.said and "ValueError in test_selftest.py" in check.said
    assert "[(" in check.said or "[Inputs(" in check.said


def test_what_is_counted_is_what_was_committed():
    counted = {"pay": {"before": 3, "after": 10}}
    assert selftest._as_committed(counted, {"pay": 7}, {}) == "7 counted, 7 seen"
    with pytest.raises(selftest.Wrong, match="commits were lost") as wrong:
        selftest._as_committed(counted, {"pay": 8}, {})
    assert wrong.value.exit_code == 1
    with pytest.raises(selftest.Off):
        selftest._as_committed({"pay": {"before": 3, "after": None}}, {}, {})


def test_transactions_that_no_user_starts_need_not_have_come(tmp_path):
    writer = RecordWriter(
        tmp_path / "run", {"workload": {"opening": {"name": "settle", "done": {"balance": 1_100}}}}
    )
    ran = {"rolled_back": 0, "retries": 0, "latency_us": 0, "service_us": 0, "second": 1}
    writer.append("transactions", [{"transaction": "pay", "committed": 7, "failed": 0} | ran])
    failed = {
        "transaction": "sweep",
        "error_class": "other",
        "code": "42501",
        "message": "denied",
        "second": 1,
    }
    writer.append("errors", [failed | {"attempts": 1, "given_up": 1}])
    writer.close()
    found = {check.what: check for check in selftest._transactions(Record(tmp_path / "run"), MARKET)}
    assert {what: (check.state, check.said) for what, check in found.items()} == {
        "transaction pay": ("works", "7 committed, 0 failed"),
        "transaction look": ("failed", "0 committed, 0 failed"),  # though users had time enough
        "transaction echo": ("off", "none was due in so short a time"),
        "transaction sweep": ("failed", "0 committed, 0 failed; other (42501): denied"),
        "transaction settle": ("works", "1,100 balance"),
    }
    assert found["transaction sweep"].exit_code == 3


def test_collectors_say_what_they_gave(tmp_path):
    def about(title: str, unavailable: str | None = None, limited: str | None = None) -> dict[str, Any]:
        return {"title": title, "unavailable": unavailable, "limited": limited}

    collectors = {
        "waits": about("Waits", unavailable="GRANT VIEW SERVER STATE to this login."),
        "files": about("Files"),
        "users": about("Users", limited="Names are not shown."),
        "transactions": about("Transactions"),
    }
    notes = ["Files: nothing measured from 0 s to the end, because no answer.", "Users was late."]
    writer = RecordWriter(tmp_path / "run", {"collectors": collectors, "notes": notes})
    writer.append("users", [{"second": 1}])
    writer.close()
    found = {
        check.what: (check.state, check.said) for check in selftest._collectors(Record(tmp_path / "run"))
    }
    assert found == {
        "collector waits": ("off", "GRANT VIEW SERVER STATE to this login."),
        "collector files": ("failed", notes[0]),
        "collector users": ("works", "1 rows. Names are not shown."),
        "collector transactions": ("off", "no rows: nothing of its kind was seen"),
    }


@pytest.mark.parametrize("may", [False, True])
def test_the_memory_of_a_server_of_others_is_capped_only_when_told_so(database, tmp_path, may):
    class Remote(EmbeddedEngine):
        is_local = False
        capped = 0

        def cap_memory(self, size_bytes: int) -> int:
            self.capped += 1
            return size_bytes

    engine = Remote(database.server, "remote")
    bench = selftest.Bench(
        engine, selftest.BANK, tmp_path, Show(Console(file=io.StringIO())), 1, may_cap_memory=may
    )
    if may:
        assert "then as before" in selftest._cap_memory(bench)
    else:
        with pytest.raises(selftest.Off, match="plan cache on many versions; add --cap-memory"):
            selftest._cap_memory(bench)
    assert engine.capped == may


@pytest.mark.parametrize(("codes", "code"), [([0, 0], 0), ([0, 3], 3), ([4, 0], 4), ([3, 4, 1], 1)], ids=str)
def test_the_exit_code(codes, code):
    checks = [Check("", "failed" if each else "works", "", each) for each in codes]
    assert Selftest({}, checks, None).exit_code == code


@pytest.mark.parametrize(
    "url",
    [
        "postgresql://boss:s3cret@db7.corp.example:5432/bank",
        "host=db7.corp.example user=boss password=s3cret dbname=bank",
        "mssql://boss:s3cret@db7.corp.example:1433/bank",
    ],
)
def test_no_host_no_user_and_no_password_is_told(url, database, monkeypatch):
    monkeypatch.setattr(selftest.platform, "node", lambda: "laptop-of-ann")
    engine = MssqlEngine(url) if url.startswith("mssql") else database
    words = selftest._Discretion(Target(url), engine, "boss")
    said = words(
        "No connection to DB7.corp.example:5432/bank from laptop-of-ann: Login failed for user 'boss' (s3cret), "
        f'role "boss"; see {Path.home()}/x. The boss of bosses stays.'
    )
    assert said == (
        "No connection to <host>:5432/bank from <this machine>: Login failed for user <user> (<password>), "
        "role <user>; see ~/x. The boss of bosses stays."
    )


@pytest.mark.parametrize("url", ["mssql://db7.corp.example/bank", "mssql://CORP%5Cann@db7.corp.example/bank"])
def test_no_windows_login_is_told_however_it_is_written(url):
    words = selftest._Discretion(Target(url), MssqlEngine(url), "CORP\\ann")
    said = words(
        "GRANT VIEW SERVER STATE TO [CORP\\ann]; Login failed for user 'CORP\\Ann'; run as corp\\svc-sql$, not CORP; "
        "the file lies at C:\\data\\ann, and None of it is hidden: 'None'."
    )
    assert said == (
        "GRANT VIEW SERVER STATE TO <user>; Login failed for user <user>; run as <user>, not CORP; "
        "the file lies at C:\\data\\ann, and None of it is hidden: 'None'."
    )


def test_a_login_in_brackets_is_hidden_as_one_in_quotes_is():
    engine = MssqlEngine("mssql://watcher@db7.corp.example/bank")
    words = selftest._Discretion(Target("mssql://watcher@db7.corp.example/bank"), engine, "watcher")
    assert words("The login [watcher] may not see this; 'watcher' is the watcher.") == (
        "The login <user> may not see this; <user> is the watcher."
    )


@pytest.mark.parametrize("name", ["max server memory (MB)", "shared_buffers"])
def test_what_a_cap_changes_is_compared_and_nothing_else(name):
    before = {name: "8192", "database log reuse wait": "NOTHING"}
    assert (
        selftest._given_back(before, before | {"database log reuse wait": "CHECKPOINT"}) == "then as before"
    )
    with pytest.raises(selftest.Wrong, match=r"was 8192, and is 7372$"):
        selftest._given_back(before, before | {name: "7372"})
    with pytest.raises(selftest.Wrong, match=r"and is not told$"):
        selftest._given_back(before, {})


def test_a_server_that_does_not_tell_its_cap_is_no_failure():
    assert "does not tell" in selftest._given_back({"database collation": "x"}, {})
