"""Faults of servers and load machines: killed, paused, cut off."""

import random
from collections.abc import Callable, Iterator, Mapping
from contextlib import closing, contextmanager

import psutil
from benchmarks.faults import checks
from benchmarks.faults.round import Round
from benchmarks.faults.works import DRIVEN, START, WORKS, Strike, Work, copied, draw, on_tcp
from support.remote import Remote, free_port
from support.tool import Command

from stallmark.driver.load import MASTER_SILENT_S
from stallmark.engines import open_engine
from stallmark.record.reader import Record

# Servers by URL for rounds: a PostgreSQL on TCP that holds the bank, as its owner would run it.


@contextmanager
def a_server(
    round: Round, name: str = "server", *, environment: Mapping[str, str] | None = None, port: int | None = None
) -> Iterator[tuple[Remote, Work]]:
    """Yield a running copy of the server that holds the bank; the tool's commands go to it, by `port` if that is
    given."""
    folder = round.folder.parent / name  # apart from what the tool makes and starts
    copied(on_tcp(round.prepared), folder)
    server = Remote(folder, environment=environment or {})
    server.start()
    round.tool.environment |= {
        "STALLMARK_SERVER": server.url(port=port),
        "STALLMARK_STATE": str(round.folder / "state"),
    }
    try:
        yield server, WORKS["bank"]
    finally:
        server.stop()


def look(round: Round, server: Remote, record: Record | None, lost_s: float = 0.0) -> None:
    """Look at the bank on a server as `Round.commits` does at an embedded one."""
    with closing(open_engine(server.url())) as engine:
        round.database(engine, WORKS["bank"], record, lost_s)


# Load machines on loopback: the command with its master, two workers, and their executors are struck.

VICTIMS = {
    "command": "KILL INT STOP TERM", "conductor": "KILL STOP", "executor": "KILL STOP", "worker": "KILL INT STOP TERM",
}  # fmt: skip


def load_machines(round: Round) -> None:
    """Disturb a run of two load machines; workers that are left serve the next one."""
    with a_server(round) as (server, work):
        port = str(free_port())
        workers = [_worker(round, port) for _ in range(2)]
        strike = draw(round.rng, VICTIMS, (START, *DRIVEN))
        run = ("run", round.tool.scenario(**work.changes, reset="continue"))
        machines = ("--expect-workers", "2", "--master-bind-port", port)
        command = round.tool.start_anew(*run, *machines)
        if strike.victim == "worker":
            hit = _strike_a_worker(round.rng, strike, round, workers, command)
        else:
            hit = strike.carry_out(round.rng, round.tool, command)
        round.did.append(f"two load machines: {strike}" if hit else f"{strike} came too late")
        code = _ended(command, lambda: workers.append(_worker(round, port)))
        round.found(checks.said(code, command.text))
        record = round.record()
        if hit and strike.victim == "worker" and strike.how != "STOP":
            told = " ".join(((record.incomplete_because or "") if record else command.text).split())
            if code and "load machine" not in told.lower():  # else it had done its share
                round.problems.append(f"a worker was struck, and the reason is “{told[-300:]}”")
        elif hit:
            round.found(checks.reason(strike.victim, strike.how, code, command.text, record))
        for worker in workers:  # Ctrl-C ends those that wait
            if worker.process.poll() is None:
                worker.press_ctrl_c()
        for worker in workers:
            round.ended(worker)
        round.gone()
        if record:
            round.reported(record)
        lost_s = checks.LOST_S[strike.victim] if strike.how != "STOP" else 0.0
        if lost_s and strike.victim == "conductor":
            lost_s += MASTER_SILENT_S  # for so long load machines go on
        look(round, server, record, lost_s)
        round.next(*run)
        look(round, server, round.record())
    round.left()


def _ended(command: Command, replace: Callable[[], None]) -> int:
    """Return the exit code of a run. One that waits for a load machine that is gone gets another."""
    try:
        return command.process.wait(30) or 0
    except psutil.TimeoutExpired:
        if command.text.splitlines()[-1].startswith("Waiting for load machines"):
            replace()
        return command.process.wait(100) or 0


def _worker(round: Round, port: str) -> Command:
    return round.tool.start_anew("worker", "--master-host", "127.0.0.1", "--master-port", port)


def _strike_a_worker(
    rng: random.Random, strike: Strike, round: Round, workers: list[Command], command: Command
) -> bool:
    """Strike one of the workers as `strike` has it for a command."""
    of_command = Strike("command", strike.how, strike.moment, strike.pause_s)
    return of_command.carry_out(rng, round.tool, rng.choice(workers)) and command.process.poll() is None
