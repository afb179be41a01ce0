"""The commands of README and docs: each is parsed by the real command line, and those that are quick are run.

A command of a program that is not ours stands in a block that says what it needs: <!-- needs: Docker -->.
"""

import os
import shutil
import subprocess
from pathlib import Path

import click
import pytest
from support import external_files
from support.documents import ROOT, Shell, shell_commands
from support.synthetic import Truth, make_run
from support.tool import Tool

from stallmark.cli.main import main
from stallmark.scenarios.model import SHIPPED
from stallmark.scenarios.read import read_any_scenario

COMMANDS = shell_commands()
OURS = [command for command in COMMANDS if command.words[0] == "stallmark"]
OTHERS = [command for command in COMMANDS if command.words[0] != "stallmark"]
QUICK = ("doctor", "list", "new", "schema", "status", "runs", "report", "compare", "plan", "whatif", "attach", "export")
"""Commands that are run as they stand, where the files that they name are there."""

RUN = ("run", "user-ramp", "--data-dir", "mnt/array/bank", "--wal-dir", "mnt/log/bank")
SHORT = (
    "workload={name: bank, scale: {branches: 1}}", "users=2", "buffer_pool=16MiB", "start_cache=as it is",
    "think_time={mean: 20ms}", "ramp=0s", "warm_up=0s", "measure=1s",
)  # fmt: skip


def _is_quick(command: Shell) -> bool:
    if command.needs or "--deep" in command.words:
        return False
    return command.words[1] in QUICK or command.words[1:3] == ["db", "list"]


@pytest.fixture(scope="module")
def tool(tmp_path_factory: pytest.TempPathFactory) -> Tool:
    """A folder with what the pages speak of: mounts, a URL, scenarios, and runs, all but the last one synthetic."""
    tool = Tool(tmp_path_factory.mktemp("docs"))
    for mount in ("array", "log", "old", "new"):
        (tool.folder / "mnt" / mount).mkdir(parents=True)
    (tool.folder / "server.url").write_text("mssql://me@db.example/brokerage")
    (tool.folder / "server.url").chmod(0o600)
    for name in ("ramp", "mine", "two-devices"):
        shutil.copy(SHIPPED / "user-ramp.yaml", tool.folder / f"{name}.yaml")
    for day, scenario, sides in ((1, "buffer-pool", ("small", "large")), (2, "two-devices", ("old", "new"))):
        for number in range(6):
            side, repeat = sides[number // 3], number % 3 + 1
            truth = Truth(tps=400 - 80 * (number // 3), variant=side, repeat=repeat, sequence=number + 1, seed=number)
            make_run(tool.runs / f"2026010{day}-120000-{scenario}/0{number + 1}-{side}", truth, scenario)
    code, said = tool.run(*RUN, *(word for change in SHORT for word in ("--set", change)))
    assert code == 0, said
    external_files.perfmon(
        tool.folder / "sql01.csv", *external_files.disk_of(tool.newest() / "01-user-ramp", around_s=5)
    )
    return tool


@pytest.fixture
def in_its_folder(tool: Tool, monkeypatch: pytest.MonkeyPatch) -> Tool:
    monkeypatch.chdir(tool.folder)
    return tool


def test_there_are_commands():
    assert len(OURS) > 80 and {"README.md", "sql-server.md", "probe.md"} <= {command.page for command in OURS}


@pytest.mark.parametrize("command", OURS, ids=str)
def test_the_command_line_takes_it(command: Shell, in_its_folder: Tool, monkeypatch: pytest.MonkeyPatch):
    """Its names, options and values; the scenario that it names, with its changes."""
    if command.needs:
        monkeypatch.setenv("STALLMARK_SERVER", "postgresql://me@db.example:5432/brokerage")
    at: click.Command = main
    words, context = _words(command, in_its_folder), click.Context(main)
    while isinstance(at, click.Group):
        name, found, words = at.resolve_command(context, words)
        assert found
        at, context = found, _parsed(found, name, words, context)
    if at.name == "run" and (scenario := context.params["scenario"]):
        read_any_scenario(scenario, context.params["overrides"])


@pytest.mark.parametrize("command", [one for one in OURS if _is_quick(one)], ids=str)
def test_it_runs(command: Shell, in_its_folder: Tool):
    words = _words(command, in_its_folder)
    if _names_what_is_not_here(words):
        return
    if words[0] == "new":
        (in_its_folder.folder / words[1]).unlink(missing_ok=True)
    (in_its_folder.folder / "ticket.md").unlink(missing_ok=True)
    code, said = in_its_folder.run_beside(*words)
    if "--fail-if" in words:
        assert code == 5 and (in_its_folder.folder / "ticket.md").read_text().startswith("#"), said
    else:
        assert code == 0, said


@pytest.mark.parametrize("command", OTHERS, ids=str)
def test_commands_of_others_say_what_they_need(command: Shell):
    words = command.words
    if words == [".", ".venv/bin/activate"] or words[0] == "chmod":
        return
    if words[0] == "make":
        done = subprocess.run(["make", "--dry-run", *words[1:]], cwd=ROOT, capture_output=True, text=True, check=False)
        assert done.returncode == 0 and ".venv/bin/" in done.stdout, done.stderr
        return
    assert command.needs, f"{command}: write <!-- needs: … --> above the block"


def test_a_database_lies_where_the_options_say(tool: Tool):
    assert (tool.folder / "mnt/array/bank/data").is_dir() and any((tool.folder / "mnt/log/bank").iterdir())


def test_a_database_is_built_and_checked(tool: Tool):
    places = ("bank", "--scale", "branches=1", "--data-dir", "mnt/array/bank", "--wal-dir", "mnt/log/bank")
    assert tool.run("check", *places)[0] == 0


def test_storage_is_probed(tool: Tool):
    words = (
        "--size",
        "64MiB",
        "--seconds",
        "1",
        "--pattern",
        "8k-random-read",
        "--outstanding",
        "1",
        "--out",
        "probes",
    )
    code, said = tool.run("probe", "mnt/array", *words)
    assert code == 0 and "8 KiB random read" in said, said


def _words(command: Shell, tool: Tool) -> list[str]:
    """Return the arguments as a shell would give them, with folders of the test's own in place of the examples."""
    words = [word.replace("/mnt", str(tool.folder / "mnt")) for word in command.words[1:]]
    return [str(match) for word in words for match in (_matches(word, tool.folder) or [word])]


def _matches(word: str, folder: Path) -> list[str]:
    return sorted(os.path.relpath(path, folder) for path in folder.glob(word)) if "*" in word else []


def _names_what_is_not_here(words: list[str]) -> bool:
    return any("db.example" in word or ("/" in word and not Path(word).exists()) for word in words)


def _parsed(found: click.Command, name: str | None, arguments: list[str], parent: click.Context) -> click.Context:
    """Parse as the command would, of a group of commands nothing yet. A path need not be there."""
    if isinstance(found, click.Group):
        return click.Context(found, parent=parent, info_name=name)
    for parameter in found.params:
        if isinstance(parameter.type, click.Path):
            parameter.type.exists = False
    return found.make_context(name, list(arguments), parent=parent)
