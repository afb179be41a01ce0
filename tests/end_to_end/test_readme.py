"""The commands of README and docs: each is run, its load shortened where it takes minutes, or says why it is not.

The reason is a comment above its block, <!-- needs: Docker -->. Such a command is parsed by the real command line, and
its reason is held to be true.
"""

import os
import re
import subprocess
import sys
from collections.abc import Iterator
from contextlib import chdir
from pathlib import Path

import click
import pytest
from support import external_files, record_kinds
from support.documents import ROOT, Shell, shell_commands
from support.manifests import changed
from support.read_once import kept_summaries, read_once
from support.recorders import Moment, iostat_text, perfmon_csv
from support.synthetic import Truth, make_run
from support.tool import Tool

from stallmark.cli.main import main
from stallmark.experiment.estimate import estimate
from stallmark.scenarios.read import LoadOptions, read_any_scenario

__all__ = ["kept_summaries", "read_once"]
COMMANDS = shell_commands()
FIRST = (
    "stallmark db build bank --scale branches=20",
    "stallmark run buffer-pool --data-dir /mnt/array/brokerage --wal-dir /mnt/log/brokerage",
)
"""Those whose database and whose run others use."""
RUN = list({command.text: command for command in reversed(COMMANDS) if not command.needs}.values())[::-1]
"""Those that are run; one that several pages have alike once, with the first of them."""
NOT_RUN = [command for command in COMMANDS if command.needs]

SHORT = {
    "run": (
        *("--set", "workload={name: bank, scale: {branches: 1}}", "--set", "buffer_pool=16MiB", "--set", "repeats=1"),
        *("--set", "think_time={mean: 50ms}", "--set", "ramp=0s", "--set", "warm_up=0s", "--set", "measure=1s"),
    ),
    "characterise": (),
    "probe": ("--size", "64MiB", "--seconds", "1", "--pattern", "8k-random-read", "--outstanding", "1"),
}
"""The options added to commands that take minutes."""
SHORTER = {
    "buffer-pool": ("--set", "users=1", "--set", "variants=[{name: one}]"),
    "memory-curve": ("--set", "users=1"),
    "memory-curve-emulated": ("--set", "users=1", "--set", "variants=[{name: one}]"),
    "own-sql-example": ("--set", "users=1", "--set", "variants=[{name: one}]"),
    "mine.yaml": ("--set", "users=1", "--set", "variants=[{name: one}]"),
    "user-ramp": ("--set", "users=[1, 2]"),
    "ceiling": ("--set", "search={of: users, from: 1, to: 2}", "--set", "slo={transactions: [p50 < 10s]}"),
    "two-devices": ("--set", "users=1"),
    "bank": ("--users", "1", "--warm-up", "1s", "--measure", "1s"),
}
"""The options added besides, by the name of the scenario or workload."""
OWN_SQL = ("--set", "warm_up=0s", "--set", "think_time={mean: 50ms}")
"""The options added in place of those of `run`, if the load is SQL of a user's own."""
SMALLER = {"branches=20": "branches=1", "10s": "1s", "5s": "1s"}

LONG_S = {"minutes": 60, "days": 86_400}
REASONS = {
    "Docker": r"^docker |stallmark server |@server\.url",
    "SQL Server": r"@server\.url|mssql://|-sqlserver |^sqlcmd ",
    "a PostgreSQL server": r"postgresql://|^createdb |^psql ",
    "a package index": r"^pip (install|wheel) |^python3 -m venv|^apt-get |^make |activate$",
    "root": r" array |/mnt/array|^apt-get ",
    "several machines": r"worker|STALLMARK_SERVER",
    "ssh": r"^ssh ",
    "the repository": r" -m benchmarks\.",
    "Windows": r"^(typeperf|logman|relog) ",
    "sysstat": r"^S_TIME_FORMAT=ISO iostat |^sadf |^sar ",
    "Prometheus": r"^curl ",
    "InfluxDB": r"^curl ",
    "telegraf": r"^awk ",
    "a cloud": r"^stallmark profile --from |^(aws|az) ",
    "pip-audit": r"pip-audit",
    "the sizing of": r"^stallmark size ",
    "someone who looks": r"--web|--locust-web|live$",
    "an experiment that ended early": r"--resume",
    "someone who confirms": r"db remove",
    "two experiments": r"--varied",
}
"""The things that may be missing here, with a mark of commands that need them. Beside these: time."""


@pytest.fixture(scope="module")
def tool(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Tool]:
    """A folder with what the pages speak of: mounts, an environment, a URL, the pages' scenarios, and runs of which all
    but the last are synthetic."""
    tool = Tool(tmp_path_factory.mktemp("docs"))
    for mount in ("array", "log", "old", "new"):
        (tool.folder / "mnt" / mount).mkdir(parents=True)
    (tool.folder / ".venv").symlink_to(sys.prefix)
    (tool.folder / "server.url").write_text("mssql://me@db.example/brokerage")
    (tool.folder / "server.url").chmod(0o600)
    Path(tool.scenario(name="ramp", users=[1, 2], measure="60s")).rename(tool.folder / "ramp.yaml")
    pools = ("small", "large")
    for day, scenario, sides in (
        (1, "buffer-pool", pools),
        (2, "two-devices", ("old", "new")),
        (3, "buffer-pool", pools),
    ):
        for number in range(6):
            side, repeat = sides[number // 3], number % 3 + 1
            tps = 400 - 80 * (number // 3) - 20 * day
            truth = Truth(
                tps=tps, variant=side, repeat=repeat, sequence=number + 1, seed=10 * day + number, measured_s=20
            )  # fmt: skip
            experiment = f"2026010{day}-120000-{scenario}"
            run = make_run(tool.runs / experiment / f"0{number + 1}-{side}", truth, scenario)
            changed(run, experiment=experiment)
    with chdir(tool.folder):
        for text in FIRST:
            _run(next(command for command in RUN if command.text == text), tool, "--set", "name=first")
    [run] = tool.newest().glob("01-*")
    external_files.perfmon(tool.folder / "sql01.csv", *external_files.disk_of(run, around_s=5))
    disks = [{"D:": (300.0 * n,) * 6, "L:": (600.0 * n,) * 6} for n in range(9)]
    moments = [Moment(1772445600.0 + 15 * n, one, n, n * 10) for n, one in enumerate(disks)]
    (tool.folder / "sales.csv").write_text(perfmon_csv(moments))
    (tool.folder / "sql01.iostat").write_text(iostat_text(moments, times=False))
    for name, make in (("profile-shop", record_kinds.collected), ("profile-files", record_kinds.imported)):
        (tool.folder / "made").mkdir()
        make(tool.folder / "made")
        (tool.folder / "made" / "profile").rename(tool.folder / name)
        (tool.folder / "made").rmdir()
    yield tool
    tool.nothing_left()


def test_most_pages_have_commands_that_run():
    assert len(RUN) > 30 and len({command.page for command in RUN}) > 12
    assert {"README.md", "two-devices.md", "how-much-memory.md", "postgresql.md"} <= {one.page for one in RUN}


@pytest.mark.usefixtures("read_once")
@pytest.mark.parametrize("page", dict.fromkeys(command.page for command in RUN if command.text not in FIRST))
def test_its_commands_run(page: str, tool: Tool, monkeypatch: pytest.MonkeyPatch):
    """In the order of the page: a later one may need what an earlier one has made."""
    monkeypatch.chdir(tool.folder)
    for command in RUN:
        if command.page == page and command.text not in FIRST:
            _run(command, tool, "--out", "short")


def _run(command: Shell, tool: Tool, *more: str) -> None:
    """Run a command; of those that are shortened, `run` with `more` options."""
    if command.words[0] != "stallmark":
        done = subprocess.run(["sh", "-c", command.text], capture_output=True, text=True, check=False)
        assert done.returncode == 0, f"{command}: {done.stderr}"
        return
    words = _words(command, tool)
    is_scenario = words[0] == "new" and words[1] != "--workload"
    made = tool.folder / words[1] if is_scenario else tool.folder / "ticket.md"
    made.unlink(missing_ok=True)
    shortened = (*SHORT.get(words[0], ()), *SHORTER.get(words[1], ())) if words[0] in SHORT else ()
    if words[0] == "run" and words[1] in ("--sql", "-f", "own-sql-example"):
        duration = () if "--duration" in words else ("--duration", "1s")
        shortened = (*OWN_SQL, *SHORTER.get(words[1], ()), *duration)
    code, said = tool.run_beside(*words, *shortened, *(more if words[0] == "run" else ()))
    if "--fail-if" in words:
        assert code == 5 and made.read_text().startswith("#"), f"{command}: {said}"
    else:
        assert code == 0, f"{command}: {said}"
    if is_scenario:
        read_any_scenario(str(made))


def test_data_and_log_lie_where_the_options_say(tool: Tool):
    assert (tool.folder / "mnt/array/brokerage/data").is_dir() and any((tool.folder / "mnt/log/brokerage").iterdir())


@pytest.mark.parametrize("command", [one for one in NOT_RUN if one.words[0] == "stallmark"], ids=str)
def test_the_command_line_takes_it(command: Shell, tool: Tool, monkeypatch: pytest.MonkeyPatch):
    """Its names, options and values; the scenario that it names, with its changes."""
    monkeypatch.chdir(tool.folder)
    monkeypatch.setenv("STALLMARK_SERVER", "postgresql://me@db.example:5432/brokerage")
    at: click.Command = main
    words, context = _words(command, tool), click.Context(main)
    while isinstance(at, click.Group):
        name, found, words = at.resolve_command(context, words)
        assert found
        at, context = found, _parsed(found, name, words, context)
    if (unit := re.match("minutes|days", command.needs or "")) and at.name == "run":
        scenario = read_any_scenario(context.params["scenario"], context.params["overrides"], _options(context))
        assert estimate(scenario).total_s > LONG_S[unit[0]], f"{command} is short enough to run"
    elif unit:
        assert at.name in ("probe", "build", "check", "characterise") or context.params.get("deep"), command
    elif at.name == "run" and (named := context.params["scenario"]):
        read_any_scenario(named, context.params["overrides"], _options(context))


def _options(context: click.Context) -> LoadOptions:
    return LoadOptions(*(context.params[name] for name in ("users", "duration", "rate")))


def test_make_has_what_it_is_asked_for():
    asked = {word for command in COMMANDS if command.words[0] == "make" for word in command.words[1:]}
    make = ["make", "--dry-run", "--always-make", *asked]
    done = subprocess.run(make, cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.returncode == 0 and len(asked) > 7, done.stderr
    assert "Nothing to be done" not in done.stdout, "a target without a recipe"


def test_reasons_are_true():
    """Each thing that a block is said to need is needed by one of its commands."""
    blocks: dict[tuple[str, str], list[str]] = {}
    for command in NOT_RUN:
        blocks.setdefault((command.page, command.needs or ""), []).append(command.text)
    for (page, needs), texts in blocks.items():
        things = [one for one in REASONS if one in needs]
        assert things or re.match("minutes|days", needs), f"{page}: {needs}"
        for thing in things:
            assert any(re.search(REASONS[thing], text) for text in texts), f"{page}: {needs}"


def _words(command: Shell, tool: Tool) -> list[str]:
    """Return the arguments as a shell would give them, with folders of the test's own in place of the examples."""
    words = [word.replace("/mnt", str(tool.folder / "mnt")) for word in command.words[1:]]
    return [str(match) for word in words for match in (_matches(word, tool.folder) or [SMALLER.get(word, word)])]


def _matches(word: str, folder: Path) -> list[str]:
    return sorted(os.path.relpath(path, folder) for path in folder.glob(word)) if "*" in word else []


def _parsed(found: click.Command, name: str | None, arguments: list[str], parent: click.Context) -> click.Context:
    """Parse as the command would, of a group of commands nothing yet. A path need not be there."""
    if isinstance(found, click.Group):
        return click.Context(found, parent=parent, info_name=name)
    for parameter in found.params:
        if isinstance(parameter.type, click.Path):
            parameter.type.exists = False
    return found.make_context(name, list(arguments), parent=parent)
