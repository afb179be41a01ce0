"""Our users in a locustfile of a user's own: alone, with workers, and what is refused."""

import json
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest
from support.clusters import ClusterEngine, cluster, clusters, engine
from support.command_line import stallmark
from support.remote import free_port
from support.waiting import eventually

from stallmark.engines.postgres.embedded.engine import EmbeddedEngine

__all__ = ["cluster", "clusters", "engine"]

PAGE = Path(__file__).parents[2] / "docs/change-the-load.md"
OWN_SQL_PAGE = PAGE.with_name("own-sql.md")
OWN = """
from locust import User, constant, task

class Visitor(User):
    wait_time = constant(0.05)

    @task
    def look(self):
        self.environment.events.request.fire(
            request_type="own", name="look", response_time=1.0, response_length=0, exception=None, context={}
        )
"""


def stallmarks(keys: str = "most_users = 8", tasks: str = "") -> str:
    return (
        f"from stallmark.driver.locust import StallmarkUser\n\nclass Broker(StallmarkUser):\n    {keys}\n"
        f"    think_time_s = 0.02\n    weight = 3\n{tasks}"
    )


@pytest.fixture
def locust(tmp_path):
    """Run Locust without its page, as its users do; return how it ended and its statistics by name."""

    def run(locustfile: str, *options: str, server: str, users: int = 8) -> tuple[subprocess.CompletedProcess, dict]:
        (tmp_path / "locustfile.py").write_text(locustfile)
        command = [sys.executable, "-m", "locust", "-f", "locustfile.py", "--headless", "--json"]
        done = subprocess.run(
            [*command, "-u", str(users), "-r", "20", "-t", "12s", *options],
            cwd=tmp_path, env=os.environ | {"STALLMARK_SERVER": server}, capture_output=True, text=True, timeout=120,
        )  # fmt: skip
        # Every worker writes a list as well, of what it has not sent.
        decoder, said, rows = json.JSONDecoder(), done.stdout.lstrip(), []
        while said.startswith("["):
            more, end = decoder.raw_decode(said)
            rows, said = max(rows, more, key=len), said[end:].lstrip()
        return done, {row["name"]: row for row in rows}

    return run


def transfers(bank: EmbeddedEngine) -> int:
    return bank.query("SELECT count(*) FROM bank.history")[0][0]


PORT = str(free_port())
WORKERS = ("--processes", "2", "--master-bind-port", PORT, "--master-port", PORT)


@pytest.mark.parametrize("options", [(), WORKERS])
def test_our_users_run_beside_those_of_a_locustfile(new_bank, locust, options):
    before = transfers(new_bank)
    done, requests = locust(OWN + stallmarks(), *options, server=new_bank.spec())
    assert done.returncode == 0, done.stdout + done.stderr
    assert "transfer" in requests, done.stdout + done.stderr
    transfer = requests["transfer"]
    # All that was committed is counted; Locust's last report of a worker may come too late.
    counted, committed = transfer["num_requests"], transfers(new_bank) - before
    assert committed > 20 and (counted == committed if not options else 0.5 * committed < counted <= committed)
    assert transfer["method"] == "Broker" and transfer["num_failures"] == 0
    assert 0 < transfer["total_response_time"] / counted < 1000 and transfer["response_times"]
    assert requests["look"]["num_requests"] > 10


def test_more_users_than_were_prepared_for_are_refused(new_bank, locust):
    done, requests = locust(stallmarks("most_users = 2"), server=new_bank.spec(), users=5)
    assert "prepared for 2 users" in done.stdout + done.stderr and requests["transfer"]["num_requests"] > 20


@pytest.fixture
def folder(tmp_path):
    """A folder of SQL of one's own, on a table that its test makes."""
    (folder := tmp_path / "mine").mkdir()
    (folder / "look.sql").write_text("SELECT count(*) FROM pg_class WHERE relname = :id::text")
    (folder / "deposit.sql").write_text("UPDATE jar SET coins = coins + 1; SELECT coins FROM jar")
    (folder / "count.sql").write_text("SELECT count(*) FROM jar")
    (folder / "workload.yaml").write_text(
        "{transactions: {look: 3, deposit: 1, count: {rate: 5/s}}, parameters: {id: {from: 1, to: 9}}}"
    )
    return folder


JAR = "CREATE TABLE jar (coins integer); INSERT INTO jar VALUES (0)"


def owns(*keys: str) -> str:
    lines = "".join(f"    {key}\n" for key in ("sql = './mine'", "most_users = 24", "think_time_s = 0.02", *keys))
    return f"from stallmark.driver.locust import StallmarkUser\n\nclass Clerk(StallmarkUser):\n{lines}"


@pytest.mark.parametrize(("options", "beside"), [((), stallmarks()), (WORKERS, "")])
def test_users_of_own_sql_run_beside_ours_and_those_of_a_locustfile(new_bank, locust, folder, options, beside):
    new_bank.execute(JAR)
    done, requests = locust(OWN + beside + owns("shared = True"), *options, server=new_bank.spec(), users=12)
    assert done.returncode == 0, done.stdout + done.stderr
    # One look is of Visitor and one of Clerk.
    expected = {"look", "deposit", "count"} | ({"transfer"} if beside else set())
    assert requests.keys() == expected, done.stdout + done.stderr
    for name in expected - {"look", "count"}:
        assert requests[name]["num_requests"] > 20 and requests[name]["num_failures"] == 0
    counted, [(deposited,)] = requests["deposit"]["num_requests"], new_bank.query("SELECT coins FROM jar")
    assert requests["deposit"]["method"] == "Clerk" and counted <= deposited
    if not options:
        assert 10 < requests["count"]["num_requests"] <= 60, "at a rate of 5/s, for 12 s at most"


def test_a_worker_without_users_has_its_part_of_a_rate(new_bank, locust, folder):
    new_bank.execute("CREATE TABLE seen (at timestamptz)")
    (folder / "count.sql").write_text("INSERT INTO seen VALUES (clock_timestamp())")
    (folder / "deposit.sql").write_text("SELECT 1")
    done, _ = locust(owns("shared = True"), *WORKERS, server=new_bank.spec(), users=1)
    assert done.returncode == 0 and "was lost" not in done.stdout + done.stderr, done.stdout + done.stderr
    query = "SELECT count(*) / extract(epoch FROM max(at) - min(at)) FROM seen"
    [(per_s,)] = new_bank.query(query)
    assert float(per_s) == pytest.approx(5, rel=0.2)


def test_a_worker_is_there_while_its_sql_is_tried(new_bank, locust, folder):
    """Locust gives up a worker that it has not heard of for four seconds."""
    new_bank.execute(JAR)
    (folder / "look.sql").write_text(
        "SELECT pg_sleep(6) WHERE :id::int > 0 AND NOT EXISTS (SELECT FROM jar WHERE coins > 0)"
    )
    (folder / "deposit.sql").write_text("UPDATE jar SET coins = coins + 1")
    (folder / "workload.yaml").write_text(
        "{transactions: {look: 0, deposit: 1, count: 0}, parameters: {id: {from: 1, to: 9}}}"
    )
    done, _ = locust(owns("shared = True"), *WORKERS, "-t", "40s", server=new_bank.spec(), users=2)
    said = done.stdout + done.stderr
    assert done.returncode == 0 and "failed to send heartbeat" not in said and "was lost" not in said, said
    assert new_bank.query("SELECT coins FROM jar")[0][0] > 20, "and the load began"


def test_a_worker_that_is_lost_is_reported(new_bank, folder, tmp_path):
    new_bank.execute(JAR)
    (tmp_path / "locustfile.py").write_text(owns("shared = True"))
    command = [sys.executable, "-m", "locust", "-f", "locustfile.py"]
    as_master = ["--headless", "--master", "--expect-workers", "2", "-u", "4"]
    environment = os.environ | {"STALLMARK_SERVER": new_bank.spec()}
    port = str(free_port())
    workers = [
        subprocess.Popen([*command, "--worker", "--master-port", port], cwd=tmp_path, env=environment) for _ in range(2)
    ]
    with (tmp_path / "log").open("w") as log:
        command += [*as_master, "--master-bind-port", port]
        master = subprocess.Popen(command, cwd=tmp_path, env=environment, stdout=log, stderr=log)
    try:
        eventually(lambda: new_bank.query("SELECT coins > 0 FROM jar")[0][0])
        workers[0].kill()
        lost = r"Worker \S+ was lost, and with it its part of what no user starts"
        eventually(lambda: re.search(lost, (tmp_path / "log").read_text()))
    finally:
        master.terminate()
        for process in (master, *workers):
            process.wait(60)
    assert master.returncode == 1


@pytest.mark.parametrize(
    ("change", "keys", "words"),
    [
        (
            ("look.sql", "SELECT nothing FROM jar WHERE 1 = :id"),
            ("shared = True",),
            "look.sql, line 1: the server does",
        ),
        (("workload.yaml", "{transactions: {look: 3}}"), (), "leaves out"),
        (("look.sql", "SELECT 1"), (), "write `shared = True` in Clerk"),
        (("look.sql", "SELECT 1"), ("sql = 'none'",), "none is not a folder"),
    ],
)
def test_own_sql_that_cannot_be_is_refused_before_the_load(engine: ClusterEngine, locust, folder, change, keys, words):
    (folder / change[0]).write_text(change[1])
    engine.execute(JAR)
    try:
        done, requests = locust(owns(*keys), server=engine.cluster.url())
        assert engine.query("SELECT coins FROM jar") == [(0,)]
    finally:
        engine.execute("DROP TABLE jar")
    said = " ".join((done.stdout + done.stderr).split())
    assert words in said and done.returncode == 1 and "Traceback" not in said, said
    assert not requests


@pytest.mark.parametrize(
    ("locustfile", "server", "words"),
    [
        (stallmarks(), "", "has no server"),
        (stallmarks(), "postgresql://nobody@127.0.0.1:1/none", "127.0.0.1"),
        (stallmarks(), "host=/nowhere dbname=none", "nowhere"),
        (stallmarks('server = "mysql://me@host"'), "", "mysql"),
    ],
)
def test_what_cannot_be_is_said_in_one_sentence(locust, locustfile, server, words):
    done, _ = locust(locustfile, server=server)
    said = done.stdout + done.stderr
    assert words in said and done.returncode == 1 and "Traceback" not in said, said


def test_tasks_of_its_own_are_refused(new_bank, locust):
    tasks = "    @task\n    def more(self):\n        pass\n"
    done, _ = locust("from locust import task\n" + stallmarks(tasks=tasks), server=new_bank.spec())
    assert "tasks of its own" in done.stderr + done.stdout and done.returncode == 1


def test_a_database_of_another_kind_is_refused(new_bank, locust):
    other = new_bank.on_database("postgres")
    done, _ = locust(stallmarks(), server=other.spec())
    assert "stallmark db build" in done.stderr + done.stdout and done.returncode == 1


def test_the_example_of_own_sql_in_the_docs_runs(new_bank, locust, tmp_path):
    assert stallmark("new", "--workload", tmp_path / "shop").exit_code == 0
    shop = new_bank.on_database("shop")
    shop.execute((tmp_path / "shop/setup.sql").read_text())
    [example] = python_in(OWN_SQL_PAGE)
    example = example.replace('server = "postgresql://me@db.example/shop"', f"server = {shop.spec()!r}")
    done, requests = locust(example, server="")
    assert requests.get("browse_films", {"num_requests": 0})["num_requests"] > 20, done.stdout + done.stderr
    [(rented, counted)] = shop.query("SELECT (SELECT count(*) FROM rental), sum(rentals) FROM customer")
    assert rented == counted > 0, "whole transactions"


def python_in(page: Path) -> list[str]:
    return re.findall(r"```python\n(.*?)```", page.read_text(), re.DOTALL)


def test_the_example_of_the_docs_runs(new_bank, locust):
    [example] = python_in(PAGE)
    example = example.replace('server = "postgresql://me@db.example/brokerage"', f"server = {new_bank.spec()!r}")
    done, requests = locust(example, "--host", "http://127.0.0.1:9", server="")
    assert requests["transfer"]["num_requests"] > 20, done.stdout + done.stderr
    assert requests["/"]["num_failures"] > 0  # nobody listens there
