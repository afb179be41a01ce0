"""The works of a campaign, and the moments at which they are struck."""

import fcntl
import json
import os
import random
import shutil
import signal
import subprocess
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import closing, contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NamedTuple

import psutil
from support.building import checksums
from support.remote import Remote
from support.tool import Command, Tool

from stallmark.engines.base import Engine
from stallmark.engines.postgres.embedded_engine import EmbeddedEngine
from stallmark.engines.postgres.embedded_server import EmbeddedServer
from stallmark.errors import StallmarkError
from stallmark.record.reader import Record
from stallmark.transactions import find_workload

# The databases and loads that rounds disturb, each small enough that its run takes seconds; and undisturbed copies.


@dataclass(frozen=True)
class Work:
    """A workload with its scale, as commands take it, and what a run of it changes in the small scenario."""

    workload: str
    scale: str
    changes: dict[str, Any] = field(default_factory=dict)

    @property
    def database(self) -> tuple[str, ...]:
        return (self.workload, "--scale", self.scale)


_USERS = {"users": 2, "think_time": {"mean": "20ms"}}
_BANK = {"branches": 1}
_MAIL = {"mailboxes": 20, "messages": 10}
_BROKERAGE = {"customers": 1000, "days": 0.05}
_WAREHOUSE = {"factor": 0.01}
_NO_USERS = dict.fromkeys(("users", "think_time", "warm_up", "measure"))


def _several(**loads: dict[str, Any]) -> dict[str, Any]:
    return {"workload": None, "users": None, "think_time": None, "loads": loads}


WORKS = {
    "bank": Work("bank", "branches=1", {"measure": "3s", "workload": {"name": "bank", "scale": _BANK}}),
    "mail": Work("mail", "mailboxes=20,messages=10", {"measure": "3s", "workload": {"name": "mail", "scale": _MAIL}}),
    "brokerage": Work(
        "brokerage", "customers=1000,days=0.05",
        {"measure": "3s", "users": 4, "workload": {"name": "brokerage", "scale": _BROKERAGE}},
    ),
    "queries": Work(
        "warehouse", "factor=0.01",
        {"workload": {"name": "warehouse", "scale": _WAREHOUSE}, "queries": {"run": "power", "timeout": "20s"}}
        | _NO_USERS,
    ),
    "several loads": Work(
        "bank+mail", "branches=1,mailboxes=20,messages=10",
        _several(
            bank={"workload": "bank", "scale": _BANK, **_USERS}, mail={"workload": "mail", "scale": _MAIL, **_USERS}
        ) | {"measure": "3s"},
    ),
}  # fmt: skip


@dataclass(frozen=True)
class Undisturbed:
    """A work as it is where nobody disturbs it: the folder `home` of its database with a copy to restore, the rows
    and checksums of its `tables` as built, and a run's records in `runs`."""

    folder: Path
    tables: dict[str, list[Any]]

    @property
    def home(self) -> Path:
        return self.folder / "home"

    @property
    def runs(self) -> Path:
        return self.folder / "stallmark-runs"


def undisturbed(folder: Path, name: str) -> Undisturbed:
    """Return it; make it first where no round has asked for it yet."""
    built, tables = as_built(folder, name)
    with _made_once(folder / name.replace(" ", "-")) as (place, is_new):
        if is_new:
            copied(built / "home", place)
            tool = Tool(place)
            _command(tool, "run", tool.scenario(**WORKS[name].changes, reset="restore"))
    return Undisturbed(place, tables)


def as_built(folder: Path, name: str) -> tuple[Path, dict[str, list[Any]]]:
    """Return the folder of a work that was built and never run, and its tables; build it where no round has asked for
    it yet."""
    work = WORKS[name]
    with _made_once(folder / f"{name.replace(' ', '-')}-built") as (place, is_new):
        if is_new:
            tool = Tool(place)
            _command(tool, "build", *work.database)
            with opened(tool.home, work) as engine:
                tables = checksums(engine, find_workload(work.workload))  # type: ignore[arg-type]
            in_json = {table: [int(rows), str(total)] for table, (rows, total) in tables.items()}
            (place / "tables.json").write_text(json.dumps(in_json))
    return place, json.loads((place / "tables.json").read_text())


def _command(tool: Tool, *arguments: str) -> None:
    command = tool.start_anew(*arguments)
    if command.wait():
        raise RuntimeError(f"undisturbed, {arguments[0]} failed:\n{command.text}")


@contextmanager
def opened(home: Path, work: Work) -> Iterator[Engine]:
    """Start the embedded server of a work in this process."""
    [folder] = home.glob(f"embedded/{work.workload}-*")
    server = EmbeddedServer(folder)
    with closing(server):
        yield EmbeddedEngine(server, work.workload)


def on_tcp(folder: Path) -> Path:
    """Return the folder of a stopped PostgreSQL with passwords that holds the bank; make it where it is not there."""
    with _made_once(folder / "tcp") as (place, is_new):
        if is_new:
            server = Remote(place)
            server.initialise()
            server.start()
            try:
                tool = Tool.on_server(place / "tool", server.url())
                tool.folder.mkdir()
                _command(tool, "build", *WORKS["bank"].database)
            finally:
                server.stop()
    return place


@contextmanager
def _made_once(place: Path) -> Iterator[tuple[Path, bool]]:
    """Yield a place, and whether it is still to be filled: rounds that are made at once wait for each other."""
    place.parent.mkdir(parents=True, exist_ok=True)
    with place.with_name(f"{place.name}.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        done = place / "done"
        if not done.exists():
            shutil.rmtree(place, ignore_errors=True)
            place.mkdir()
            yield place, True
            done.touch()
        else:
            yield place, False


def copied(source: Path, target: Path) -> Path:
    """Copy a folder with all its rights and links; blocks are shared where the file system can."""
    subprocess.run(["cp", "-a", "--reflink=auto", source, target], check=True)
    return target


# A strike: one signal to one process of a command at one moment.

PARTS = {
    "conductor": "stallmark.driver.locust_conductor",
    "executor": "stallmark.driver.executor",
    "loader": "stallmark.loaders.worker",
    "guard": "guard-of-postgres",
    "server": "/bin/postgres",
    "initdb": "/bin/initdb",
}
"""Processes that a command starts, by the end of a word of their command line."""
INTERPRETER_S = 0.1  # of a processor; Python needs less to start
OF_DRIVER = ("conductor", "executor")
BEGINS_WITHIN_S = 90


class Phase(NamedTuple):
    """A part of a command's life: it has `begun` when that holds, and takes about so many seconds."""

    name: str
    begun: Callable[[Tool, Command], bool]
    seconds: float


def _says(words: str) -> Callable[[Tool, Command], bool]:
    return lambda tool, command: words in command.text


def _has_record(tool: Tool, command: Command) -> bool:
    return any(tool.runs.glob("*/*/manifest.json"))


def measures(tool: Tool, command: Command) -> bool:
    """Tell whether a run has measured its first second, or its first query."""
    with suppress(StallmarkError, OSError):
        for path in tool.runs.glob("*/*/manifest.json"):
            record = Record(path.parent)
            if record.table("users").num_rows or record.table("queries").num_rows:
                return True
    return False


def _is_ours(tool: Tool, command: Command) -> bool:
    """Tell whether the interpreter has begun with our code: before, a signal is met as in any Python program."""
    with suppress(psutil.Error):
        times = psutil.Process(command.process.pid).cpu_times()
        return times.user + times.system >= INTERPRETER_S
    return False


START = Phase("starting", _is_ours, 2.5)
DRIVEN = (Phase("starting the load", _has_record, 2.0), Phase("measuring", measures, 2.5))
RUN = (
    START,
    Phase("preparing", _says("Loading"), 1.0),
    *DRIVEN,
    Phase("checking", _says("running: done"), 0.3),
    Phase("reporting", _says("checking consistency: done"), 2.0),
)
BUILD = (START, Phase("loading", lambda tool, command: bool(tool.running(PARTS["loader"])), 1.5))


@dataclass(frozen=True)
class Moment:
    """So many seconds into a phase."""

    phase: Phase
    delay_s: float

    @classmethod
    def draw(cls, rng: random.Random, phases: Sequence[Phase]) -> "Moment":
        """Draw a moment in one of the phases."""
        phase = rng.choice(phases)
        return cls(phase, round(rng.random() * phase.seconds, 2))

    def __str__(self) -> str:
        return f"{self.delay_s:.2f} s into {self.phase.name}"

    def wait(self, tool: Tool, command: Command) -> bool:
        """Wait for it; return whether the command still runs."""
        if not _wait_until(lambda: self.phase.begun(tool, command), command, BEGINS_WITHIN_S):
            return False
        _wait_until(lambda: False, command, self.delay_s)
        return command.process.poll() is None


@dataclass
class Strike:
    """A signal to a process of a command at a moment, or as soon as there is one of that kind. A stopped process goes
    on after `pause_s`. `at` is the time of day when it was done."""

    victim: str
    how: str
    moment: Moment
    pause_s: float = 0.0
    at: float = 0.0

    def __str__(self) -> str:
        paused = f" for {self.pause_s:.1f} s" if self.pause_s else ""
        return f"SIG{self.how}{paused} to {self.victim} {self.moment}"

    def carry_out(self, rng: random.Random, tool: Tool, command: Command) -> bool:
        """Do it. Return whether there was something to strike: the command may have ended before."""
        if not self.moment.wait(tool, command):
            return False
        if not _wait_until(lambda: self._found(tool, command), command, BEGINS_WITHIN_S):
            return False
        if not (found := self._found(tool, command)):
            return False
        return self._signal(rng.choice(sorted(found, key=lambda process: process.pid)))

    def _found(self, tool: Tool, command: Command) -> list[psutil.Process]:
        if self.victim in ("command", "group"):
            return [] if command.process.poll() is not None else [psutil.Process(command.process.pid)]
        if self.victim == "backend":
            return [one for one, line in _ours(tool) if line and line[0].startswith("postgres: ")]
        return tool.running(PARTS[self.victim])

    def _signal(self, victim: psutil.Process) -> bool:
        number = getattr(signal, f"SIG{self.how}")

        def send(number: int) -> None:
            os.killpg(victim.pid, number) if self.victim == "group" else victim.send_signal(number)

        self.at = time.time()
        try:
            send(number)
            if self.how == "STOP":
                time.sleep(self.pause_s)
                send(signal.SIGCONT)
        except (psutil.NoSuchProcess, ProcessLookupError):
            return False
        return True


def draw(rng: random.Random, victims: dict[str, str], phases: Sequence[Phase]) -> Strike:
    """Draw a strike; `victims` says with which signals each may be struck. Parts of the driver live while it drives."""
    victim = rng.choice(list(victims))
    how = rng.choice(victims[victim].split())
    pause_s = round(rng.uniform(0.5, 2.5), 1) if how == "STOP" else 0.0
    of_driver = victim in OF_DRIVER and phases is RUN
    return Strike(victim, how, Moment.draw(rng, DRIVEN if of_driver else phases), pause_s)


def _ours(tool: Tool) -> list[tuple[psutil.Process, list[str]]]:
    """Return the processes of a tool, each with its command line: it may be gone when it is asked again."""
    found = []
    for process in tool.processes():
        with suppress(psutil.Error):
            found.append((process, process.cmdline()))
    return found


def _wait_until(holds: Any, command: Command, limit_s: float) -> bool:
    """Wait until it holds; return False when that takes too long, or the command ends."""
    deadline = time.monotonic() + limit_s
    while not (found := holds()):
        left = deadline - time.monotonic()
        if left <= 0 or command.process.poll() is not None:
            return False
        time.sleep(min(0.02, left))
    return bool(found)
