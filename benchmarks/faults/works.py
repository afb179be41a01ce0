"""The databases and loads that rounds disturb, each small enough that its run takes seconds; and undisturbed copies."""

import fcntl
import json
import shutil
import subprocess
from collections.abc import Iterator
from contextlib import closing, contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from support.building import checksums
from support.remote import Remote
from support.tool import Tool

from stallmark.engines.base import Engine
from stallmark.engines.postgres.embedded.engine import EmbeddedEngine
from stallmark.engines.postgres.embedded.server import EmbeddedServer
from stallmark.transactions import find_workload


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
    with _made_once(folder / name.replace(" ", "-")) as (place, is_new):
        if is_new:
            _make(place, WORKS[name])
    return Undisturbed(place, json.loads((place / "tables.json").read_text()))


def _make(place: Path, work: Work) -> None:
    tool = Tool(place)
    _command(tool, "build", *work.database)
    with opened(tool.home, work) as engine:
        tables = checksums(engine, find_workload(work.workload))  # type: ignore[arg-type]
    _command(tool, "run", tool.scenario(**work.changes, reset="restore"))
    in_json = {name: [int(rows), str(total)] for name, (rows, total) in tables.items()}
    (place / "tables.json").write_text(json.dumps(in_json))


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
