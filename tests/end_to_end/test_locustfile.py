"""Our users in a locustfile of a user's own: alone, with workers, and what is refused."""

import json
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path
from types import MappingProxyType

import pytest
from support.clusters import ClusterEngine, clusters
from support.command_line import stallmark
from support.remote import free_port
from support.waiting import eventually

from stallmark.driver.locustfile_loads import prepare
from stallmark.driver.messages import LocustUsers, PrepareLoads
from stallmark.engines.postgres.embedded_engine import EmbeddedEngine
from stallmark.errors import CallFailed, StallmarkError, as_reason

__all__ = ["clusters"]

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


BROKERS = """
from stallmark.driver.locust import StallmarkUser

class Broker(StallmarkUser):
    most_users = 2
    think_time_s = 0.1
    weight = 3
"""


ENDS_AFTER = """
import gevent
from locust import events
from locust.runners import WorkerRunner

def end(environment):
    while any(
        sum(entry.num_requests for (name, _), entry in [*environment.stats.entries.items()] if name == wanted) < count
        for wanted, count in {requests}.items()
    ):
        gevent.sleep(0.1)
    environment.runner.quit()

@events.test_start.add_listener
def end_in_time(environment, **_):
    if not isinstance(environment.runner, WorkerRunner):
        gevent.spawn(end, environment)
"""
"""Ends the test once Locust has counted so many requests of these names."""


@pytest.fixture
def locust(tmp_path):
    """Run Locust without its page, as its users do, until it has counted enough `requests` of each name; return how it
    ended and its statistics by name."""

    def run(
        locustfile: str, *options: str, server: str, users: int = 8, requests: Mapping[str, int] = MappingProxyType({})
    ) -> tuple[subprocess.CompletedProcess, dict]:
        ending = ENDS_AFTER.replace("{requests}", repr(dict(requests))) if requests else ""
        (tmp_path / "locustfile.py").write_text(locustfile + ending)
        command = [sys.executable, "-m", "locust", "-f", "locustfile.py", "--headless", "--json"]
        command += ["-t", "60s" if requests else "8s"]
        done = subprocess.run(
            [*command, "-u", str(users), "-r", "20", *options],
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


def count_when(bank: EmbeddedEngine, folder: Path) -> None:
    """Have each execution of `count` leave its time in the database."""
    bank.execute("CREATE TABLE seen (at timestamptz)")
    (folder / "count.sql").write_text("INSERT INTO seen VALUES (clock_timestamp())")


def counted_per_s(bank: EmbeddedEngine) -> float:
    [(per_s,)] = bank.query("SELECT (count(*) - 1) / extract(epoch FROM max(at) - min(at)) FROM seen")
    return float(per_s)


def owns(*keys: str) -> str:
    lines = "".join(f"    {key}\n" for key in ("sql = './mine'", "most_users = 24", "think_time_s = 0.1", *keys))
    return f"from stallmark.driver.locust import StallmarkUser\n\nclass Clerk(StallmarkUser):\n{lines}"


def test_our_users_and_those_of_own_sql_run_beside_those_of_a_locustfile(new_bank, locust, folder):
    new_bank.execute(JAR)
    count_when(new_bank, folder)
    before = transfers(new_bank)
    locustfile = OWN + BROKERS + owns("shared = True")
    enough = {"transfer": 21, "deposit": 21, "count": 25, "look": 11}
    done, requests = locust(locustfile, server=new_bank.spec(), users=12, requests=enough)
    said = done.stdout + done.stderr
    assert "prepared for 2 users" in said and done.returncode == 1, said
    assert requests.keys() == {"look", "deposit", "count", "transfer"}, said  # one look is of Visitor, one of Clerk
    transfer, deposit = requests["transfer"], requests["deposit"]
    assert transfer["num_requests"] == transfers(new_bank) - before > 20, "all that was committed is counted"
    assert (transfer["method"], deposit["method"]) == ("Broker", "Clerk")
    assert transfer["num_failures"] == deposit["num_failures"] == 0 and requests["look"]["num_requests"] > 10
    assert 0 < transfer["total_response_time"] / transfer["num_requests"] < 1000 and transfer["response_times"]
    assert 20 < deposit["num_requests"] <= new_bank.query("SELECT coins FROM jar")[0][0]
    assert counted_per_s(new_bank) == pytest.approx(5, rel=0.2)


def test_workers_have_users_of_own_sql_and_a_part_of_its_rate(new_bank, locust, folder):
    """Locust gives up a worker that it has not heard of for four seconds: each is there while its SQL is tried. One of
    the two has no user of it."""
    new_bank.execute(JAR)
    count_when(new_bank, folder)
    (folder / "look.sql").write_text("SELECT pg_sleep(6) WHERE :id::int > 0 AND NOT EXISTS (SELECT FROM seen)")
    enough = {"look": 1, "deposit": 21, "count": 50}
    done, requests = locust(OWN + owns("shared = True"), *WORKERS, server=new_bank.spec(), users=2, requests=enough)
    said = done.stdout + done.stderr
    assert done.returncode == 0 and "failed to send heartbeat" not in said and "was lost" not in said, said
    assert requests.keys() == {"look", "deposit", "count"}, said
    # Locust's last report of a worker may come too late.
    [(deposited,)] = new_bank.query("SELECT coins FROM jar")
    assert 20 < requests["deposit"]["num_requests"] <= deposited and requests["deposit"]["num_failures"] == 0
    assert counted_per_s(new_bank) == pytest.approx(5, rel=0.2)


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


REFUSING = """
import json, logging, sys
from stallmark.driver.locust import StallmarkUser, _Test
from locust import User, task
from locust.env import Environment

class Said(logging.Handler):
    def emit(self, record):
        said.append(record.getMessage())

logging.getLogger("stallmark.driver.locust").addHandler(Said())
for attributes in json.load(sys.stdin):
    said = []
    if attributes.pop("tasks", None):
        attributes["more"] = task(lambda self: None)
    kind = type("Clerk", (StallmarkUser,), attributes)
    environment = Environment(user_classes=[kind])
    _Test(environment, environment.create_local_runner())
    environment.events.test_start.fire(environment=environment)
    print(json.dumps([environment.process_exit_code, kind.pool is None, said]))
"""
"""Begins a test of Locust with each of several classes; prints its exit code, whether it has no users, and why."""


def test_what_cannot_be_is_refused_in_one_sentence_before_the_load(tmp_path):
    cases = [
        ({}, "has no server"),
        ({"server": "postgresql://nobody@127.0.0.1:1/none"}, "127.0.0.1"),
        ({"server": "mysql://me@host", "tasks": True}, "tasks of its own"),
    ]
    done = subprocess.run(
        [sys.executable, "-c", REFUSING], input=json.dumps([attributes for attributes, _ in cases]),
        cwd=tmp_path, env=os.environ | {"STALLMARK_SERVER": ""}, capture_output=True, text=True, check=True,
    )  # fmt: skip
    assert "Traceback" not in done.stderr
    ended = [json.loads(line) for line in done.stdout.splitlines()]
    for (attributes, words), (code, has_no_users, said) in zip(cases, ended, strict=True):
        [sentence] = said
        assert code == 1 and has_no_users and words in sentence, (attributes, sentence)


def test_what_cannot_be_prepared_is_refused(new_bank, folder, tmp_path):
    """By the process that sends Locust's its reason, as that of a server that is not there."""
    new_bank.execute(JAR)
    bank = new_bank.spec()
    cases = [
        ("host=/nowhere dbname=none", "", "nowhere"),
        ("mysql://me@host", "", "mysql"),
        (new_bank.on_database("postgres").spec(), "", "stallmark db build"),
        (bank, "none", "none is not a folder"),
    ]
    for number, (name, text, words) in enumerate(
        [
            ("look.sql", "SELECT nothing FROM jar WHERE 1 = :id", "look.sql, line 1: the server does"),
            ("workload.yaml", "{transactions: {look: 3}}", "leaves out"),
        ]
    ):
        changed = shutil.copytree(folder, tmp_path / f"changed{number}")
        (changed / name).write_text(text)
        cases.append((bank, str(changed), words))
    for server, sql, words in cases:
        users = LocustUsers("Clerk", sql, str(tmp_path), shared=True, most_users=1, think_time_s=0, call_timeout_s=60)
        with pytest.raises((CallFailed, StallmarkError)) as refused:
            prepare(PrepareLoads(server, [users], opens=True))
        assert words in as_reason(refused.value)
    assert new_bank.query("SELECT coins FROM jar") == [(0,)]


def test_rows_of_others_are_changed_by_those_who_say_so(clusters, locust, folder):
    """By Locust's own command, which ends at once."""
    engine = ClusterEngine(clusters(18))
    engine.execute(JAR)
    try:
        done, requests = locust(owns(), server=engine.cluster.url())
        assert engine.query("SELECT coins FROM jar") == [(0,)]
    finally:
        engine.execute("DROP TABLE jar")
    said = " ".join((done.stdout + done.stderr).split())
    assert "write `shared = True` in Clerk" in said and done.returncode == 1 and "Traceback" not in said, said
    assert not requests


def test_the_example_of_own_sql_in_the_docs_runs(new_bank, locust, tmp_path):
    assert stallmark("new", "--workload", tmp_path / "shop").exit_code == 0
    shop = new_bank.on_database("shop")
    shop.execute((tmp_path / "shop/setup.sql").read_text())
    [example] = python_in(OWN_SQL_PAGE)
    example = example.replace('server = "postgresql://me@db.example/shop"', f"server = {shop.spec()!r}")
    done, requests = locust(example, server="", requests={"browse_films": 21, "rent_film": 1})
    assert requests.get("browse_films", {"num_requests": 0})["num_requests"] > 20, done.stdout + done.stderr
    [(rented, counted)] = shop.query("SELECT (SELECT count(*) FROM rental), sum(rentals) FROM customer")
    assert rented == counted > 0, "whole transactions"


def python_in(page: Path) -> list[str]:
    return re.findall(r"```python\n(.*?)```", page.read_text(), re.DOTALL)


def test_the_example_of_the_docs_runs(new_bank, locust):
    [example] = python_in(PAGE)
    example = example.replace('server = "postgresql://me@db.example/brokerage"', f"server = {new_bank.spec()!r}")
    done, requests = locust(example, "--host", "http://127.0.0.1:9", server="", requests={"transfer": 21, "/": 1})
    assert requests["transfer"]["num_requests"] > 20, done.stdout + done.stderr
    assert requests["/"]["num_failures"] > 0  # nobody listens there
