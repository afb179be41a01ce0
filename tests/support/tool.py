"""The tool as a user has it: a process of its own, in an empty folder, with an empty home."""

import json
import os
import signal
import subprocess
import sys
import uuid
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import psutil

from stallmark.engines import open_engine
from stallmark.engines.base import Engine
from stallmark.record.manifest import Manifest
from stallmark.record.manifest_file import read_manifest
from stallmark.record.reader import Record
from support.waiting import PATIENCE_S, eventually

MINI: dict[str, Any] = {
    "name": "mini",
    "title": "A miniature",
    "answers": "Does the whole chain work?",
    "needs": "Nothing.",
    "takes": "seconds",
    "workload": {"name": "bank", "scale": {"branches": 1}},
    "users": 2,
    "warm_up": "0s",
    "measure": "1s",
    "start_cache": "as it is",
    "reset": "continue",
    "variants": [{"name": "only"}],
}


@dataclass
class Command:
    """A `stallmark` that was started. What it says goes to files, as it does in CI."""

    process: psutil.Popen
    said: Path

    def wait_for(self, words: str) -> None:
        def is_said() -> bool:
            assert self.process.poll() is None or words in self.text, f"ended without {words!r}:\n{self.text}"
            return words in self.text

        eventually(is_said, f"{words!r} in:\n{self.text}")

    @property
    def text(self) -> str:
        return self.said.read_text()

    def press_ctrl_c(self) -> None:
        """As a terminal does: the signal goes to everybody in the foreground."""
        os.killpg(self.process.pid, signal.SIGINT)

    def wait(self) -> int:
        return self.process.wait(PATIENCE_S)


@dataclass
class Tool:
    """The command `stallmark` with a home and a working folder. `mark` is in the environment of all it starts."""

    folder: Path
    environment: dict[str, str] = field(default_factory=dict)
    mark: str = field(default_factory=lambda: uuid.uuid4().hex)

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

    def start(self, *arguments: str, stdin: int = subprocess.DEVNULL) -> Command:
        said = self.folder / f"said-{uuid.uuid4().hex}"
        environment = {"PATH": os.environ["PATH"], "HOME": str(self.folder), "STALLMARK_HOME": str(self.home)}
        with said.open("w") as output:
            process = psutil.Popen(
                [sys.executable, "-m", "stallmark.cli.main", *arguments],
                cwd=self.folder,
                env=environment | {"STALLMARK_TEST": self.mark} | self.environment,
                stdin=stdin,
                stdout=output,
                stderr=subprocess.STDOUT,
                start_new_session=True,
                # Whoever runs the tests in the background has Ctrl-C ignored, and so would the tool.
                preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL),
            )
        return Command(process, said)

    def run(self, *arguments: str) -> tuple[int, str]:
        """Exit code and all that was said. Afterwards no process may be left, and no traceback shown."""
        finished = self.run_beside(*arguments)
        self.nothing_left()
        return finished

    def run_beside(self, *arguments: str) -> tuple[int, str]:
        """As `run`, while another one is at work."""
        command = self.start(*arguments)
        code = command.wait()
        assert "Traceback" not in command.text, command.text
        return code, command.text

    def start_measuring(self, **changes: Any) -> tuple[Command, Path]:
        """Start a long run; returns when users have been at work for a second, with the run's folder."""
        before = set(self.runs.glob("*/*/manifest.json"))
        command = self.start("run", self.scenario(**({"measure": "60s"} | changes)))

        def record_with_transactions() -> Path | None:
            assert command.process.poll() is None, command.text
            for manifest in set(self.runs.glob("*/*/manifest.json")) - before:
                if Record(manifest.parent).table("transactions").num_rows:
                    return manifest.parent
            return None

        return command, eventually(record_with_transactions, "a record with transactions")

    def scenario(self, **changes: Any) -> str:
        """The path of a scenario file: a small one, with changes."""
        path = self.folder / "scenario.yaml"
        path.write_text(json.dumps(MINI | changes, indent=1))  # JSON is YAML
        return str(path)

    def processes(self) -> list[psutil.Process]:
        """What this tool has started and still runs. A server rewrites its environment, but lives in its folder."""

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
        eventually(lambda: not self.processes(), f"all processes gone, still there: {self.processes()}")

    def newest(self) -> Path:
        """The folder of the last experiment."""
        return max(self.runs.iterdir())

    def manifests(self) -> list[Manifest]:
        """Of the last experiment, in order."""
        return [read_manifest(p.parent) for p in sorted(self.newest().glob("*/manifest.json"))]
