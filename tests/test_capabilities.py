"""Capabilities: each can be removed, and the rest works without it."""

import json
import subprocess
import sys
import tarfile
from pathlib import Path
from types import ModuleType

import pytest

import stallmark
from stallmark import capabilities
from stallmark.cli.command import Unloaded
from stallmark.cli.main import main

RECORDS = Path(__file__).parent / "golden"
PACKAGE = Path(stallmark.__file__).parent
COMMANDS = {each.name: {entry.name for entry in each.commands} for each in capabilities.installed()}

# Imports every module that is there, and writes the help of all commands.
REST = """
import importlib, os, pkgutil
import stallmark
assert stallmark.__file__.startswith(os.environ["PYTHONPATH"])
for module in pkgutil.walk_packages(stallmark.__path__, "stallmark."):
    importlib.import_module(module.name)
from stallmark.cli.main import main
main(["--help"])
"""


@pytest.fixture
def without(tmp_path):
    """Return a function that runs Python with the package as it is without one of its folders."""

    def run(name: str, *arguments: str) -> subprocess.CompletedProcess[str]:
        copy = tmp_path / f"without-{name}" / "stallmark"
        if not copy.exists():
            copy.mkdir(parents=True)
            for entry in PACKAGE.iterdir():
                if entry.name != name:
                    (copy / entry.name).symlink_to(entry.resolve())
        environment = {
            "PYTHONPATH": str(copy.parent),
            "PATH": "/usr/bin:/bin",
            "STALLMARK_HOME": str(tmp_path / "home"),
        }
        command = [sys.executable, *arguments]
        return subprocess.run(command, capture_output=True, text=True, env=environment, cwd=tmp_path, check=False)

    return run


def test_all_that_are_named_are_there():
    assert tuple(COMMANDS) == capabilities.NAMES


def test_a_folder_that_only_byte_code_keeps_is_none(monkeypatch):
    monkeypatch.setattr(capabilities, "import_module", ModuleType)
    assert capabilities.installed.__wrapped__() == ()


@pytest.mark.thorough
@pytest.mark.parametrize("name", capabilities.NAMES)
def test_the_rest_works_without_it(name, without):
    done = without(name, "-c", REST)
    assert done.returncode == 0, done.stderr
    listed = {line.split()[0] for line in done.stdout.splitlines() if line.startswith("  ") and line[2:3].isalpha()}
    assert {command for command in main.commands if command not in COMMANDS[name]} <= listed
    assert not COMMANDS[name] & listed


@pytest.mark.thorough
def test_a_record_with_parts_of_one_that_is_gone_says_so(tmp_path, without):
    with tarfile.open(RECORDS / "attached.tar.xz") as records:
        records.extractall(tmp_path, filter="data")
    reports = {}
    for gone in ("lab", "attach"):
        done = without(gone, "-m", "stallmark.cli.main", "report", str(tmp_path / "runs"), "--json")
        assert done.returncode == 0, done.stderr
        [run] = json.loads(done.stdout)["runs"]
        reports[gone] = bool(run["external"]), "which this installation of Stallmark lacks" in done.stdout
    assert reports == {"lab": (True, False), "attach": (False, True)}


@pytest.mark.thorough
def test_a_sizing_is_refused_by_name_and_its_runs_are_shown_without_the_capability(tmp_path, without):
    with tarfile.open(RECORDS / "sizing.tar.xz") as records:
        records.extractall(tmp_path, filter="data")
    sizing = tmp_path / "b"
    for command in ("report", "status"):
        done = without("sizing", "-m", "stallmark.cli.main", command, str(sizing))
        assert done.returncode == 3 and not done.stdout and "a sizing" in done.stderr
        assert ("which this installation does not support" in done.stderr) == (command == "report")
    [stand_in] = {path.parent.parent for path in sizing.glob("*/*/manifest.json")}
    done = without("sizing", "-m", "stallmark.cli.main", "report", str(stand_in), "--json")
    assert done.returncode == 0 and json.loads(done.stdout)
    listed = without("sizing", "-m", "stallmark.cli.main", "list", "--json")
    names = {scenario["name"] for scenario in json.loads(listed.stdout)}
    assert "demo" in names and not {"sizing", "sizing-emulated"} & names


def test_no_option_is_added_that_the_command_has():
    for command in {command for each in capabilities.installed() for command in each.options}:
        unloaded = main.commands[command]
        assert isinstance(unloaded, Unloaded)
        names = [parameter.name for parameter in unloaded.load().params]
        assert len(names) == len(set(names))
