"""The tool as a user has it: in an empty folder, with an empty home; as a process of its own where that matters."""

import json
import os
import signal
import subprocess
import sys
import tempfile
import time
import uuid
from collections.abc import Iterator
from contextlib import ExitStack, chdir, contextmanager, redirect_stderr, redirect_stdout, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, TextIO

import psutil

from stallmark.cli.main import main
from stallmark.engines import open_engine
from stallmark.engines.base import Engine
from stallmark.record.manifest import Manifest, read_manifest
from stallmark.record.reader import Record
from support.command_line import signals_as_before
from support.prepared import Prepared
from support.waiting import TIMEOUT_S, eventually

MINI: dict[str, Any] = {
    "name": "mini",
    "title": "A miniature",
    "answers": "Does the whole chain work?",
    "needs": "Nothing.",
    "workload": {"name": "bank", "scale": {"branches": 1}},
    "users": 1,  # one executor
    "think_time": {"mean": "50ms"},  # else the load has both cores for itself
    "warm_up": "0s",
    "measure": "1s",
    "start_cache": "as it is",
    "reset": "continue",
    "variants": [{"name": "only"}],
}


@dataclass
class Command:
    """A `stallmark` that was started. What it says goes to files, as it does in CI."""

    process: Prepared | psutil.Popen
    said: Path
    forgotten: int = 0

    def wait_for(self, words: str) -> None:
        def is_said() -> bool:
            assert self.process.poll() is None or words in self.text, f"ended without {words!r}:\n{self.text}"
            return words in self.text

        eventually(is_said, f"{words!r} in:\n{self.text}")

    @property
    def text(self) -> str:
        return self.said.read_text()[self.forgotten :]

    def forget(self) -> None:
        """Leave out from now on what it has said."""
        self.forgotten = len(self.said.read_text())

    def press_ctrl_c(self, times: int = 3) -> None:
        """Send SIGINT as a terminal does, to everybody in the foreground. An impatient user presses it again and
        again."""
        for _ in range(times):
            with suppress(ProcessLookupError):  # it has ended
                os.killpg(self.process.pid, signal.SIGINT)
            time.sleep(0.02)

    def wait(self) -> int:
        return self.process.wait(TIMEOUT_S)


@dataclass
class Tool:
    """The command `stallmark` with a home and a working folder. `mark` is in the environment of all it starts."""

    folder: Path
    environment: dict[str, str] = field(default_factory=dict)
    mark: str = field(default_factory=lambda: uuid.uuid4().hex)
    _older: set[Path] = field(default_factory=set)
    """Folders of the experiments before the last command: a clock may be set back, so names do not tell."""
    _newest: Path | None = None

    @classmethod
    def on_server(cls, folder: Path, url: str) -> "Tool":
        """One that finds the URL in its environment, where no `ps` shows it."""
        return cls(folder, {"STALLMARK_SERVER": url, "STALLMARK_STATE": str(folder / "state")})

    @property
    def server(self) -> Engine | None:
        """None: the embedded one, which each command starts and stops."""
        url = self.environment.get("STALLMARK_SERVER")
        return open_engine(url) if url else None

    def cannot(self, *abilities: str) -> str | None:
        """Return why the server lacks one of these abilities; the embedded engine has all."""
        server = self.server
        return next(filter(None, (getattr(server, one).refusal() for one in abilities)), None) if server else None

    @property
    def home(self) -> Path:
        return self.folder / "home"

    @property
    def runs(self) -> Path:
        return self.folder / "stallmark-runs"

    def run(self, *arguments: str) -> tuple[int, str]:
        """As `run_beside`. Afterwards no process may be left."""
        finished = self.run_beside(*arguments)
        self.nothing_left()
        return finished

    def run_beside(self, *arguments: str) -> tuple[int, str]:
        """Run a command in this process, which has imported it, while another one may be at work. Returns its exit code
        and all that it and what it started have said."""
        self._remember()
        said = self._new_file()
        with said.open("a", buffering=1) as output, self._as_if_started(output):
            try:
                main.main(arguments, "stallmark")
            except SystemExit as ended:
                code = ended.code
        text = said.read_text()
        assert "Traceback" not in text, text
        assert isinstance(code, int), code
        return code, text

    def start(self, *arguments: str, stdin: int | None = None) -> Command:
        """Start a command in a process of its own, which another one has prepared."""
        self._remember()
        said = self._new_file()
        with said.open("a") as output:
            to = output.fileno()
            return Command(Prepared(arguments, self.folder, self._whole_environment(), to, to, stdin), said)

    def start_anew(self, *arguments: str) -> Command:
        """Start a command as a shell does."""
        self._remember()
        said = self._new_file()
        with said.open("w") as output:
            process = psutil.Popen(
                [sys.executable, "-m", "stallmark.cli.entry", *arguments],
                cwd=self.folder,
                env=self._whole_environment(),
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=subprocess.STDOUT,
                start_new_session=True,
            )
        return Command(process, said)

    def _new_file(self) -> Path:
        return self.folder / f"said-{uuid.uuid4().hex}"

    def _whole_environment(self) -> dict[str, str]:
        own = {"HOME": str(self.folder), "STALLMARK_HOME": str(self.home), "STALLMARK_TEST": self.mark}
        place = {"PATH": os.environ["PATH"], "TMPDIR": tempfile.gettempdir()}  # where embedded servers listen
        return place | own | self.environment

    @contextmanager
    def _as_if_started(self, output: TextIO) -> Iterator[None]:
        """Give this process the folder, environment, output and signals of a new one."""
        environment = dict(os.environ)
        with ExitStack() as undo:
            undo.callback(lambda: (os.environ.clear(), os.environ.update(environment)))
            undo.enter_context(signals_as_before())
            for descriptor in (1, 2):  # what it starts inherits them
                before = os.dup(descriptor)
                undo.callback(os.close, before)
                undo.callback(os.dup2, before, descriptor)
                os.dup2(output.fileno(), descriptor)
            for redirected in (redirect_stdout(output), redirect_stderr(output), chdir(self.folder)):
                undo.enter_context(redirected)
            changed = self._whole_environment()
            os.environ.clear()
            os.environ.update(changed)
            yield

    def start_measuring(self, *options: str, **changes: Any) -> tuple[Command, Path]:
        """Start a long run; returns when users have been at work for a second, with the run's folder."""
        before = set(self.runs.glob("*/*/manifest.json"))
        command = self.start("run", self.scenario(**({"measure": "600s"} | changes)), *options)

        def record_with_transactions() -> Path | None:
            assert command.process.poll() is None, command.text
            for manifest in set(self.runs.glob("*/*/manifest.json")) - before:
                if Record(manifest.parent).table("transactions").num_rows:
                    return manifest.parent
            return None

        return command, eventually(record_with_transactions, "a record with transactions")

    def scenario(self, **changes: Any) -> str:
        """The path of a scenario file: a small one, with changes; what is changed to None is left out."""
        said = MINI | ({"think_time": None} if "arrivals" in changes else {}) | changes
        path = self.folder / "scenario.yaml"
        path.write_text(json.dumps({key: value for key, value in said.items() if value is not None}))  # JSON is YAML
        return str(path)

    def processes(self) -> list[psutil.Process]:
        """Return what it has started and still runs. A server rewrites its environment, but lives in its folder."""

        def is_ours(process: psutil.Process) -> bool:
            try:
                if process.status() == psutil.STATUS_ZOMBIE:
                    return False
                place = f"{self.folder}/"
                return (
                    process.environ().get("STALLMARK_TEST") == self.mark
                    or f"{process.cwd()}/".startswith(place)
                    or any(place in argument for argument in process.cmdline())
                )
            except psutil.Error:
                return False

        return [process for process in psutil.process_iter() if is_ours(process)]

    def running(self, module: str) -> list[psutil.Process]:
        """The processes of ours that run a module, or a program, of this name."""

        def runs_it(process: psutil.Process) -> bool:
            try:
                return any(part.endswith(module) for part in process.cmdline())
            except psutil.Error:
                return False

        return [process for process in self.processes() if runs_it(process)]

    def nothing_left(self) -> None:
        eventually(lambda: not self.processes(), f"all processes of {self.folder} gone")

    def newest(self) -> Path:
        """The folder of the last experiment."""
        made = set(self.runs.iterdir()) - self._older
        self._newest = max(made, default=self._newest)
        assert self._newest
        return self._newest

    def _remember(self) -> None:
        if self.runs.exists() and any(self.runs.iterdir()):
            self.newest()
            self._older = set(self.runs.iterdir())

    def manifests(self) -> list[Manifest]:
        """Of the last experiment, in order."""
        return [read_manifest(p.parent) for p in sorted(self.newest().glob("*/manifest.json"))]
