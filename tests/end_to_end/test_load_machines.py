"""A load from several machines, here several processes: what they do is one run, and losing one is said."""

import json
import shutil
import signal
import socket
import threading
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path

import psutil
import psycopg
import pytest
from support.remote import PASSWORD, Remote, free_port
from support.tool import Command, Tool
from support.waiting import eventually

from stallmark.record.reader import Record

OPEN = {"arrivals": {"kind": "fixed", "rate": 100}, "users": [3, 1], "measure": "2s"}
USERS = "SELECT count(*) FROM pg_stat_activity WHERE application_name = 'stallmark-user'"
HISTORY = "SELECT count(*) FROM bank.history"


@dataclass
class Crew:
    """Workers at one port that serve run after run, in test after test, until one of them ends them."""

    tool: Tool
    port: int = field(default_factory=free_port)
    workers: list[Command] = field(default_factory=list)

    def stand(self, count: int = 2) -> list[Command]:
        """Return so many that wait for a run; what they said of those before is forgotten."""

        def is_idle_or_gone(worker: Command) -> bool:
            idle = worker.text.count("has begun") == worker.text.count("The run is over")
            return worker.process.poll() is not None or idle

        for worker in self.workers:
            eventually(lambda worker=worker: is_idle_or_gone(worker), "a worker that waits for a run, or none")
        self.workers = [worker for worker in self.workers if worker.process.poll() is None]
        while len(self.workers) < count:
            self.workers.append(self.add(self.port))
        for worker in self.workers:
            worker.forget()
        return self.workers[:count]

    def add(self, port: int, database: str = "work", host: str = "127.0.0.1") -> Command:
        url = self.tool.environment["STALLMARK_SERVER"].replace("/work", f"/{database}")
        tool = replace(self.tool, environment={"STALLMARK_SERVER": url})
        return tool.start("worker", "--master-host", host, "--master-port", str(port))


class Machines:
    """A tool that starts runs for load machines; it finds the server's URL in its environment, as they do."""

    def __init__(self, tool: Tool, remote: Remote, crew: Crew):
        self.tool, self.remote, self.crew, self.port = tool, remote, crew, crew.port
        self.started: list[Command] = []
        self.before = 0  # transactions in the database
        tool.environment["STALLMARK_SERVER"] = remote.url()

    def add(self, port: int | None = None, **where: str) -> Command:
        """Start a worker for this test alone."""
        self.started.append(self.crew.add(port or self.port, **where))
        return self.started[-1]

    def start(self, count: int = 2, *options: str, **changes: object) -> Command:
        self.started.append(self.tool.start(*self.run(count, **changes), *options))
        return self.started[-1]

    def run(self, count: int = 2, **changes: object) -> tuple[str, ...]:
        """The command for one."""
        where = ("--expect-workers", str(count), "--master-bind-port", str(self.port))
        return ("run", self.tool.scenario(**{"users": 2} | changes), *where)

    def measuring(self, command: Command) -> Path:
        """The folder of the run, when load has been driven against the server."""

        def measured() -> Path | None:
            assert command.process.poll() is None, command.text
            folders = [path.parent for path in self.tool.runs.glob("*/*/manifest.json")]
            return next((one for one in folders if Record(one).table("transactions").num_rows), None)

        return eventually(measured, "a record with transactions")

    def records(self) -> list[Record]:
        return [Record(path.parent) for path in sorted(self.tool.newest().glob("*/manifest.json"))]

    def committed(self) -> int:
        """By this test, as the database has it."""
        return self.scalar(HISTORY) - self.before

    def scalar(self, statement: str) -> int:
        with psycopg.connect(self.remote.url(), autocommit=True) as connection:
            return connection.execute(statement).fetchone()[0]


def end(commands: list[Command]) -> None:
    for command in commands:
        if command.process.poll() is None:
            command.press_ctrl_c()
    for command in commands:
        command.wait()
        assert "Traceback" not in command.said.read_text()


@pytest.fixture(scope="module")
def crew(remote: Remote, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Crew]:
    crew = Crew(Tool(tmp_path_factory.mktemp("workers"), {"STALLMARK_SERVER": remote.url()}))
    yield crew
    end(crew.workers)
    crew.tool.nothing_left()


@pytest.fixture
def machines(fresh: Tool, remote: Remote, crew: Crew) -> Iterator[Machines]:
    """On the database as the test before has left it; the first one's run loads it."""
    machines = Machines(fresh, remote, crew)
    eventually(lambda: machines.scalar(USERS) == 0, "no users are left")
    if machines.scalar("SELECT count(*) FROM pg_tables WHERE schemaname = 'bank' AND tablename = 'history'"):
        machines.before = machines.scalar(HISTORY)
    yield machines
    end(machines.started)
    fresh.nothing_left()


@contextmanager
def overheard(port: int) -> Iterator[tuple[int, bytearray]]:
    """A port that leads to another one, and all that passes in both directions."""
    heard = bytearray()
    door = socket.create_server(("127.0.0.1", 0))

    def pass_on(source: socket.socket, target: socket.socket) -> None:
        with source, target:
            try:
                while data := source.recv(1 << 16):
                    heard.extend(data)
                    target.sendall(data)
            except OSError:
                pass

    def accept() -> None:
        while True:
            try:
                near = door.accept()[0]
            except OSError:
                return
            try:
                far = socket.create_connection(("127.0.0.1", port))
            except OSError:
                near.close()
                continue
            for pair in ((near, far), (far, near)):
                threading.Thread(target=pass_on, args=pair, daemon=True).start()

    threading.Thread(target=accept, daemon=True).start()
    yield door.getsockname()[1], heard
    door.close()


def test_every_commit_of_every_machine_is_in_the_record_once_and_no_password_is_sent(machines):
    with overheard(machines.port) as (port, heard):
        workers = [machines.add(port) for _ in range(2)]
        command = machines.start(users=[3], repeats=2)
        assert command.wait() == 0, command.text
    assert b"transfer" in heard, "reports were overheard"
    assert PASSWORD.encode() not in heard and b"postgresql://" not in heard
    committed = 0
    for record in machines.records():
        assert record.manifest.status == "complete"
        assert record.manifest.conditions and all(one.holds for one in record.manifest.conditions)
        assert [machine.number for machine in record.manifest.load_machines] == [1, 2]
        assert all(0 < machine.clock_within_ms < 1000 for machine in record.manifest.load_machines)
        assert socket.gethostname() not in record.manifest.model_dump_json()
        committed += sum(record.table("transactions")["committed"].to_pylist())
        rows = record.table("users").to_pylist()
        assert {(row["machine"], row["executor"]) for row in rows} == {(1, 0), (2, 1)}
        assert min(row["second"] for row in rows) == 0
        assert max(sum(row["running"] for row in rows if row["second"] == s) for s in (1, 2)) == pytest.approx(
            3, abs=0.5
        )
    assert committed == machines.committed() > 0
    assert all(worker.text.count("The run is over") == 2 for worker in workers)


def test_open_arrivals_come_in_whole_though_one_machine_has_no_user(machines):
    workers = machines.crew.stand(3)  # one more than is asked for: it waits
    command = machines.start(**OPEN)
    assert command.wait() == 0, command.text
    [record] = machines.records()
    rows = record.table("transactions").to_pylist()
    assert len({row["executor"] for row in record.table("users").to_pylist()}) == 2
    # Did the part of the machine without a user go missing in the second step, two thirds would come at most. Over the
    # whole time nothing is lost by arrivals that a busy machine is late with.
    lasted_s = max(row["second"] for row in rows if row["committed"]) + 1
    assert [step.users for step in record.manifest.steps] == [3, 1] and lasted_s > 4
    assert 0.8 < sum(row["committed"] for row in rows) / (100 * lasted_s) < 1.2
    begun = {worker.process: worker.text.count("The run has begun") for worker in workers}
    assert sorted(begun.values()) == [0, 1, 1]
    min(begun, key=begun.__getitem__).kill()  # nothing of one that waits stays behind, either


def drop_coin(url: str) -> None:
    with psycopg.connect(url, autocommit=True) as connection:
        connection.execute("DROP TABLE coin")


def test_own_sql_travels_to_the_machines_and_a_rate_of_it_is_that_of_all(machines, tmp_path, request):
    (folder := tmp_path / "jars").mkdir()
    (folder / "add.sql").write_text("INSERT INTO coin VALUES (:coin)")
    (folder / "look.sql").write_text("SELECT count(*) FROM coin")
    (folder / "workload.yaml").write_text(
        "{transactions: {add: 1, look: {rate: 30/s}}, parameters: {coin: {from: 1, to: 9}}}"
    )
    with psycopg.connect(machines.remote.url(), autocommit=True) as connection:
        connection.execute("CREATE TABLE coin (coin integer)")
    # The server is that of other tests, which find no table that is not ours.
    request.addfinalizer(lambda: drop_coin(machines.remote.url()))
    mine = {"workload": {"sql": str(folder)}, "users": [3], "measure": "4s", "reset": "continue"}
    machines.port = free_port()  # where nobody stands
    command = machines.start(2, "--shared", **mine)
    command.wait_for("Waiting for load machines")
    shutil.rmtree(folder)
    workers = [machines.add() for _ in range(2)]
    assert command.wait() == 0, command.text
    [record] = machines.records()
    assert [machine.number for machine in record.manifest.load_machines] == [1, 2]
    rows = record.table("transactions").to_pylist()
    seconds = max(row["second"] for row in rows) + 1
    ended = {name: sum(row["committed"] for row in rows if row["transaction"] == name) for name in ("add", "look")}
    assert ended["add"] == machines.scalar("SELECT count(*) FROM coin") > 0
    assert 0.7 < ended["look"] / (30 * seconds) < 1.1, "and not twice as many, by two machines"
    assert {row["machine"] for row in record.table("deferred_queue").to_pylist()} == {1, 2}
    for worker in workers:
        worker.press_ctrl_c()


def test_a_machine_that_is_killed_ends_the_run_with_a_sentence(machines):
    first, second = machines.crew.stand()
    command = machines.start(measure="60s")
    folder = machines.measuring(command)
    [victim] = [child for child in first.process.children() if any("machines.worker" in it for it in child.cmdline())]
    victim.send_signal(signal.SIGKILL)
    assert command.wait() == 4, command.text
    said = " ".join(command.text.split())
    assert "Traceback" not in said and "load machine" in said and "was lost" in said
    record = Record(folder)
    assert "was lost" in record.incomplete_because
    committed = sum(record.table("transactions")["committed"].to_pylist())
    assert 0 < committed <= machines.committed()
    eventually(lambda: "The run is over" in second.text, "the other machine waits for the next run")


def test_a_master_that_is_killed_ends_the_load_everywhere(machines):
    """The next run, with the same workers, is that of the next test."""
    workers = machines.crew.stand()
    command = machines.start(measure="60s")
    machines.measuring(command)
    for process in [*command.process.children(recursive=True), command.process]:
        process.kill()
    for worker in workers:
        worker.wait_for("The master went away")
    eventually(lambda: machines.scalar(USERS) == 0, "no users are left")


def test_a_tool_that_is_killed_releases_its_machines(machines):
    workers = machines.crew.stand()
    command = machines.start(measure="60s")
    machines.measuring(command)
    command.process.kill()
    for worker in workers:
        worker.wait_for("The run is over")
        assert "went away" not in worker.text


def test_a_machine_with_another_database_is_refused(machines):
    machines.port = free_port()  # where nobody stands
    with psycopg.connect(machines.remote.url(), autocommit=True) as connection:
        if not connection.execute("SELECT 1 FROM pg_database WHERE datname = 'other'").fetchone():
            connection.execute("CREATE DATABASE other")
    command = machines.start()
    other = machines.add(database="other")
    assert other.wait() == 3
    assert "The run refused this machine: its workload is none, this run's is bank (version" in " ".join(
        other.text.split()
    )
    command.wait_for("was refused: its workload is none")
    command.wait_for("Waiting for load machines: 0 of 2 are here")
    command.press_ctrl_c()
    assert command.wait() == 130 and "Traceback" not in command.text, command.text


def test_what_cannot_be_is_said_before_anything_is_loaded(machines):
    def said(count: int = 2) -> str:
        code, said = machines.tool.run(*machines.run(count))
        assert code == 3 and "Loading" not in said, said
        return " ".join(said.split())

    machines.port = free_port()
    assert "2 users cannot be spread over 3 load machines" in said(3)
    with socket.create_server(("127.0.0.1", machines.port)):
        assert f"Port {machines.port} is not free for the load machines" in said()
    del machines.tool.environment["STALLMARK_SERVER"]
    assert "the embedded one listens on this machine only" in said()


def test_ctrl_c_on_a_machine_lets_its_users_finish(machines):
    first, _ = machines.crew.stand()
    command = machines.start(measure="60s")
    folder = machines.measuring(command)
    children: list[psutil.Process] = first.process.children(recursive=True)
    first.press_ctrl_c()
    assert first.wait() == 130
    assert not any(child.is_running() for child in children)
    assert command.wait() == 4, command.text
    assert "was lost" in Record(folder).incomplete_because


def test_users_of_all_machines_are_changed_by_hand_even_while_some_still_start(machines):
    machines.crew.stand()
    options = ("--locust-web", str(free_port()), "--most-users", "40")
    command = machines.start(2, *options, users=2, measure="600s", think_time={"mean": "50ms"})
    folder = machines.measuring(command)
    url = "".join(command.text.partition("Locust's page: ")[2].split()[:1])
    browser = urllib.request.build_opener(urllib.request.HTTPCookieProcessor())
    browser.open(url).close()
    page = url.partition("?")[0]

    def ask(path: str, form: bytes = b"") -> None:
        with browser.open(f"{page}{path}", form) as answer:
            assert b'"success":true' in answer.read().replace(b" ", b"")

    ask("swarm", b"user_count=40&spawn_rate=0.2")  # takes minutes
    ask("swarm", b"user_count=6&spawn_rate=10")
    eventually(lambda: machines.scalar(USERS) == 6, "six users")
    with browser.open(f"{page}stats/requests") as answer:
        seen = json.load(answer)
    assert len(seen["workers"]) == 2 and seen["stats"][-1]["num_requests"] > 0
    by_hand = Record(folder).manifest.steps[-1]
    eventually(
        lambda: Record(folder).table("users")["second"].to_pylist()[-1] > by_hand.measure_s + 2, "a measured step"
    )
    ask("stop")
    assert command.wait() == 0, command.text
    [record] = machines.records()
    assert [step.users for step in record.manifest.steps] == [2, 40, 6]
    assert [step.spawn_rate for step in record.manifest.steps] == [None, 0.2, 10]
    assert {row["machine"] for row in record.table("users").to_pylist()} == {1, 2}


def test_a_master_whose_name_is_not_known_is_said_and_waited_for(machines):
    worker = machines.add(host="no-such-host.invalid")
    worker.wait_for("the host name no-such-host.invalid is unknown here")


def test_a_search_adds_levels_that_all_machines_share(machines):
    machines.crew.stand()
    search = {"of": "users", "from": 2, "to": 4, "tolerance": "5 %"}
    limits = {"search": search, "users": None, "slo": {"transactions": ["p90 < 30s"]}, "think_time": {"mean": "20ms"}}
    command = machines.start(**limits, measure="4s", ramp="0s", warm_up="1s")
    assert command.wait() == 0, command.text
    [record] = machines.records()
    assert record.manifest.search and record.manifest.search.outcome == "at_least"
    assert [step.users for step in record.manifest.steps] == [2, 4, 4]
    rows = record.table("users").to_pylist()
    for step in record.manifest.steps:
        seconds = [second for second in range(int(step.measure_s) + 1, int(step.end_s))]
        for machine in (1, 2):
            running = [sum(r["running"] for r in rows if r["second"] == s and r["machine"] == machine) for s in seconds]
            assert min(running) == pytest.approx(step.users / 2, abs=0.2)
