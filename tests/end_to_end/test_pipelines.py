"""The pipelines of docs/ci.md: their shell commands run as CI's shell runs them, on a server by URL and on records."""

import json
import os
import shlex
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from xml.etree import ElementTree

import pytest
import yaml
from support.documents import ROOT, fenced_blocks, scenarios
from support.manifests import changed
from support.prepared import prepared_program
from support.remote import Remote
from support.synthetic import Truth, make_run
from support.tool import Tool

from stallmark.analysis.compare.summary import CheckKind

PAGE = ROOT / "docs" / "ci.md"
SHORT = {
    "workload": {"name": "bank", "scale": {"branches": 1}}, "users": 2, "warm_up": "0s", "measure": "1s", "repeats": 1,
}  # fmt: skip
"""The changes to the load of the page, which takes half an hour."""
PASS, FAIL, OPEN = (400, 400, 400), (200, 200, 200), (400, 250, 560)
"""Throughput of three runs whose baseline does 400: as good, worse, and too varied to tell."""


def github() -> dict:
    [text] = [text for text in fenced_blocks(PAGE, "yaml") if "steps:" in text]
    return yaml.safe_load(text)["jobs"]["setting"]


def gitlab() -> dict:
    [text] = [text for text in fenced_blocks(PAGE, "yaml") if "script:" in text]
    return yaml.safe_load(text)["storage"]


GITHUB = [step["run"] for step in github()["steps"] if "run" in step]
GITLAB = gitlab()["script"]


def start(command: str, tool: Tool, **environment: str) -> subprocess.CompletedProcess:
    """Run a command of a pipeline in a shell that ends at the first failure, as those of GitHub and GitLab do."""
    return subprocess.run(
        ["bash", "-e", "-o", "pipefail", "-c", command],
        cwd=tool.folder,
        env={
            "PATH": f"{tool.folder / 'bin'}:{os.environ['PATH']}", "HOME": str(tool.folder),
            "STALLMARK_HOME": str(tool.home), "STALLMARK_STATE": str(tool.folder / "state"), **environment,
        },
        capture_output=True, text=True, check=False,
    )  # fmt: skip


@pytest.fixture
def checkout(fresh: Tool) -> Iterator[Tool]:
    """A folder as a job of CI has it: the load of the page, and the command."""
    (fresh.folder / "bin").mkdir()
    [load] = [text for page, text in scenarios() if page == "ci.md"]
    (fresh.folder / "load.yaml").write_text(yaml.safe_dump(yaml.safe_load(load) | SHORT))
    with prepared_program(fresh.folder / "bin" / "stallmark"):
        yield fresh


def rule_in(file: Path) -> str:
    """Return the result of the only rule in a JUnit file."""
    [case] = ElementTree.parse(file).getroot().iter("testcase")
    return case[0].tag if len(case) else "passed"


@pytest.mark.thorough
@pytest.mark.server
@pytest.mark.parametrize(
    ("commands", "kept"),
    [
        (GITHUB, github()["steps"][-1]["with"]["path"].split()),
        (GITLAB, [*gitlab()["artifacts"]["paths"], gitlab()["artifacts"]["reports"]["junit"]]),
    ],
    ids=["github", "gitlab"],
)
def test_a_pipeline_measures_and_judges(commands: list[str], kept: list[str], checkout: Tool, remote: Remote):
    (checkout.folder / "server.url").write_text(remote.url())
    (checkout.folder / "server.url").chmod(0o600)
    change = "ALTER SYSTEM SET wal_compression = on", "SELECT pg_reload_conf()"
    (program := checkout.folder / "change-setting.sh").write_text(
        f"#!{sys.executable}\nimport psycopg\nconnection = psycopg.connect({remote.url()!r}, autocommit=True)\n"
        f"for statement in {change}:\n    connection.execute(statement)\n"
    )
    program.chmod(0o755)
    *before, gate = commands
    environment = {"STALLMARK_SERVER": f"@{checkout.folder / 'server.url'}"}
    for command in before:
        done = start(command, checkout, **environment)
        assert done.returncode == 0, f"{command}: {done.stdout}{done.stderr}"
    done = start(gate, checkout, **environment)
    # Runs of a second on a busy machine may lack a verdict; here only their settings must allow one.
    assert done.returncode in (0, 5, 6), f"{gate}: {done.stdout}{done.stderr}"
    assert rule_in(checkout.folder / "gate.xml") in ("passed", "failure", "error")
    assert all(list(checkout.folder.glob(name)) for name in kept), kept
    compared = json.loads(checkout.run(*_comparison(gate, checkout.folder), "--json")[1].splitlines()[-1])
    checks = [check for pair in compared["pairs"] for check in pair["checks"]]
    [alike] = [check["passed"] for check in checks if check["found"].get("kind") == CheckKind.SETTINGS]
    assert alike and {len(side["runs"]) for side in compared["sides"]} == {1}


def _comparison(gate: str, folder: Path) -> list[str]:
    """Return the arguments of the comparison of a gate without its rule, which --json then does not need."""
    _, *words = shlex.split(gate.splitlines()[0].partition(" --fail-if")[0])
    return [match for word in words for match in (sorted(map(str, folder.glob(word))) if "*" in word else [word])]


def make_experiment(folder: Path, figures: tuple[int, int, int], variant: str, *, first: int, **settings: str) -> None:
    for number, tps in enumerate(figures, 1):
        truth = Truth(
            tps=tps, variant=variant, repeat=number, sequence=first + number, seed=first + number, measured_s=10,
            noise=0.01,
        )  # fmt: skip
        run = make_run(folder / f"{first + number:02d}-{variant}", truth, "load")
        server = json.loads((run / "manifest.json").read_text())["server"]
        changed(run, experiment=folder.name, server=server | {"settings": server["settings"] | settings})


@pytest.mark.parametrize(("figures", "result", "code"), [(FAIL, "failure", 5), (OPEN, "error", 6)])
def test_a_gate_of_github_fails_or_is_open(checkout: Tool, figures: tuple, result: str, code: int):
    folder = checkout.folder / "runs" / "20260101-120000-load"
    make_experiment(folder, PASS, "before", first=0, wal_compression="off")
    make_experiment(folder, figures, "after", first=3, wal_compression="off")
    done = start(GITHUB[-1], checkout)
    assert done.returncode == (0 if code == 6 else code), f"{done.stdout}{done.stderr}"
    assert ("::warning::" in done.stdout) == (code == 6)
    assert rule_in(checkout.folder / "gate.xml") == result and (checkout.folder / "gate.md").stat().st_size


def test_a_gate_of_gitlab_is_open_and_needs_the_setting_named(checkout: Tool):
    make_experiment(checkout.folder / "before/20260101-120000-load", PASS, "load", first=0, wal_compression="off")
    make_experiment(checkout.folder / "after/20260102-120000-load", OPEN, "load", first=3, wal_compression="pglz")
    gate = GITLAB[-1]
    done = start(gate, checkout)
    assert done.returncode == 6 and gitlab()["allow_failure"]["exit_codes"] == [6], f"{done.stdout}{done.stderr}"
    assert rule_in(checkout.folder / "gate.xml") == "error"
    done = start(gate.replace("--varied wal_compression", ""), checkout)
    assert done.returncode == 5 and "not comparable" in done.stderr
