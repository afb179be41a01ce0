"""Every command of the README is run, the long ones with less to do; in its order, in one folder."""

import os
import re
import shlex
import subprocess
from pathlib import Path

import pytest
from support import external_files
from support.tool import Tool
from support.whole_selftest import assert_everything_works

from stallmark.scenarios.model import SHIPPED
from stallmark.scenarios.read import read_scenario

ROOT = Path(__file__).parents[2]
SCALES = {"brokerage": ("customers=1000", "days=0.02"), "bank": ("branches=1",)}
LESS = {
    "customers=5000,days=1": ",".join(SCALES["brokerage"]),  # which a run before has built
    "branches=20": "branches=2",
    "factor=0.1": "factor=0.01",
}
SMALL = (
    "warm_up=0s",
    "ramp=0s",
    "measure=1s",
    "think_time={mean: 20ms}",
    "buffer_pool=16MiB",
    "variants=[{name: one}]",
)
# Enough for commands that compare runs; that short they are not to be believed, and the verdict says so.
TWICE = (
    "workload={name: bank, scale: {branches: 1}}", "reset=continue", "repeats=2", "users=2", "warm_up=0s", "ramp=0s",
    "measure=1s", "think_time={mean: 20ms}",
    "variants=[{name: small, buffer_pool: 16MiB}, {name: large, buffer_pool: 64MiB}]",
)  # fmt: skip
SMALL_QUERIES = ("workload.scale.factor=0.01", "emulated_array=null", "buffer_pool=64MiB", "variants=[{name: one}]")


def commands() -> list[str]:
    blocks = re.findall(r"```sh\n(.*?)```", (ROOT / "README.md").read_text(), re.DOTALL)
    lines = [line.split(" #")[0].strip() for block in blocks for line in block.splitlines()]
    return [line for line in lines if line]


@pytest.fixture(scope="module")
def tool(tmp_path_factory: pytest.TempPathFactory) -> Tool:
    tool = Tool(tmp_path_factory.mktemp("readme"))
    for mount in ("array", "log"):
        (tool.folder / "mnt" / mount).mkdir(parents=True)
    (tool.folder / "ramp.yaml").write_text(
        (SHIPPED / "user-ramp.yaml")
        .read_text()
        .replace("reset: restore", "reset: continue")
        .replace("customers: 5000, days: 5", "customers: 1000, days: 0.02")
    )
    return tool


@pytest.mark.parametrize("command", commands())
def test_a_command_of_the_readme(command: str, tool: Tool):
    # As the shell would, but with folders of the test's own in place of the examples.
    words = shlex.split(command.replace("/mnt", str(tool.folder / "mnt")))
    if words[0] == "make":
        done = subprocess.run(["make", "--dry-run", *words[1:]], cwd=ROOT, capture_output=True, text=True, check=False)
        assert done.returncode == 0 and ".venv/bin/" in done.stdout, done.stderr
        return
    # tests/scenarios/test_htap.py runs htap, on the smallest database there is; an array takes hours, and a person.
    if words[1] == "run" and words[2] in ("htap", "flash-emulated", "flash-cache-vs-tiering"):
        read_scenario(words[2])
        return
    if words[0] == ".":
        assert words == [".", ".venv/bin/activate"]
        return
    assert words[0] == "stallmark"
    for large, small in LESS.items():
        words = [word.replace(large, small) for word in words]
    if words[1] == "server" or "@server.url" in words:
        pytest.skip("It needs a container engine, and somebody who accepts Microsoft's licence: see sqlserver.yml.")
    arguments = [str(match) for word in words[1:] for match in (_matches(word, tool.folder) or [word])]
    if arguments[0] == "attach":
        last = max((tool.folder / "stallmark-runs").glob("*/*/manifest.json"), key=os.path.getmtime).parent
        external_files.perfmon(tool.folder / "sql01.csv", *external_files.disk_of(last, around_s=5))
    if arguments == ["selftest"]:
        assert_everything_works(tool)
        return
    if arguments[0] == "run":
        if "--data-dir" in words:  # it is about places, and the bank is there sooner
            arguments += ["--set", "workload={name: bank, scale: {branches: 1}}"]
        scale = SCALES["bank" if "name: bank" in " ".join(arguments) else "brokerage"]
        changes = [*(f"workload.scale.{measure}" for measure in scale), *SMALL]
        if "users=" not in command and "ramp.yaml" not in words:
            changes.append("users=2")  # several are asked for by the command that has them
        if "power-memory-storage" in command:
            changes = [*SMALL_QUERIES]
        if "order=abba" in words:
            changes = [*TWICE]
        arguments += [word for change in changes for word in ("--set", change)]
    code, said = tool.run(*arguments)
    if "db.example" in command:
        assert code == 3 and "No connection to db.example:5432/brokerage" in " ".join(said.split()), said
    elif arguments[0] == "plan":  # of so short runs there may be none that is valid
        assert code == 0 or (
            code == 3 and "of 4 are incomplete, invalid or limited by the driver" in " ".join(said.split())
        ), said
    elif "--fail-if" in words:
        assert code == 5 and "NOT COMPARABLE" in said, said
        assert (tool.folder / "ticket.md").read_text().startswith("#")
    else:
        assert code == 0, said


def _matches(word: str, folder: Path) -> list[Path]:
    """Of experiments of one scenario the last: those before it were of something else."""
    found = sorted(folder.glob(word)) if "*" in word else []
    return found[-1:] if word.endswith("-buffer-pool") else found
