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

# For each folder that holds the package: imports every module that is there, and writes the help of all commands.
REST = """
import gc, importlib, pkgutil, sys
gc.disable()
for folder in sys.argv[1:]:
    for name in [name for name in sys.modules if name.partition(".")[0] == "stallmark"]:
        del sys.modules[name]
    sys.path.insert(0, folder)
    import stallmark
    assert stallmark.__file__.startswith(folder)
    for module in pkgutil.walk_packages(stallmark.__path__, "stallmark."):
        importlib.import_module(module.name)
    from stallmark.cli.main import main
    main(["--help"], standalone_mode=False)
    print("\f", flush=True)
"""


def copy_without(name: str, place: Path) -> str:
    """Return a folder that holds the package as it is without one of its folders."""
    copy = place / f"without-{name}" / "stallmark"
    if not copy.exists():
        copy.mkdir(parents=True)
        for entry in PACKAGE.iterdir():
            if entry.name != name:
                (copy / entry.name).symlink_to(entry.resolve())
    return str(copy.parent)


def run(place: Path, *arguments: str, **environment: str) -> subprocess.CompletedProcess[str]:
    environment |= {"PATH": "/usr/bin:/bin", "STALLMARK_HOME": str(place / "home")}
    command = [sys.executable, *arguments]
    return subprocess.run(command, capture_output=True, text=True, env=environment, cwd=place, check=False)


@pytest.fixture
def without(tmp_path):
    """Return a function that runs a command with the package as it is without one of its folders."""

    def run_without(name: str, *arguments: str) -> subprocess.CompletedProcess[str]:
        package = copy_without(name, tmp_path)
        return run(tmp_path, "-m", "stallmark.cli.main", *arguments, PYTHONPATH=package)

    return run_without


@pytest.fixture(scope="module")
def helps(tmp_path_factory):
    """Return what is left without each of the folders, imported: its errors, and the help by the folder."""
    place = tmp_path_factory.mktemp("rest")
    done = run(place, "-c", REST, *(copy_without(name, place) for name in capabilities.NAMES))
    return done.stderr, dict(zip(capabilities.NAMES, done.stdout.split("\f")[:-1], strict=False))


def test_all_that_are_named_are_there():
    assert tuple(COMMANDS) == capabilities.NAMES


def test_a_folder_that_only_byte_code_keeps_is_none(monkeypatch):
    monkeypatch.setattr(capabilities, "import_module", ModuleType)
    assert capabilities.installed.__wrapped__() == ()


@pytest.mark.thorough
@pytest.mark.parametrize("name", capabilities.NAMES)
def test_the_rest_works_without_it(name, helps):
    errors, help_without = helps
    assert name in help_without, errors
    listed = {
        line.split()[0] for line in help_without[name].splitlines() if line.startswith("  ") and line[2:3].isalpha()
    }
    assert {command for command in main.commands if command not in COMMANDS[name]} <= listed
    assert not COMMANDS[name] & listed


@pytest.mark.thorough
def test_a_record_with_parts_of_one_that_is_gone_says_so(tmp_path, without):
    with tarfile.open(RECORDS / "attached.tar.xz") as records:
        records.extractall(tmp_path, filter="data")
    reports = {}
    for gone in ("lab", "attach"):
        done = without(gone, "report", str(tmp_path / "runs"), "--json")
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
        done = without("sizing", command, str(sizing))
        assert done.returncode == 3 and not done.stdout and "a sizing" in done.stderr
        assert ("which this installation does not support" in done.stderr) == (command == "report")
    [stand_in] = {path.parent.parent for path in sizing.glob("*/*/manifest.json")}
    done = without("sizing", "report", str(stand_in), "--json")
    assert done.returncode == 0 and json.loads(done.stdout)
    listed = without("sizing", "list", "--json")
    names = {scenario["name"] for scenario in json.loads(listed.stdout)}
    assert "demo" in names and not {"sizing", "sizing-emulated"} & names


@pytest.mark.thorough
@pytest.mark.parametrize("command", ["report", "status", "compare", "export --csv tables", "sql"])
def test_a_probe_is_refused_by_name_without_the_capability(tmp_path, without, command):
    with tarfile.open(RECORDS / "probe.tar.xz") as records:
        records.extractall(tmp_path, filter="data")
    [probes, *_] = {path.parents[1] for path in tmp_path.rglob("manifest.json")}
    what, *options = command.split()
    done = without("probe", what, str(probes), *options, *(["select 1"] if what == "sql" else []))
    assert done.returncode == 3 and not done.stdout, done.stdout
    assert "is a probe, which this installation does not support" in done.stderr and done.stderr.count("\n") == 1


def test_no_option_is_added_that_the_command_has():
    for command in {command for each in capabilities.installed() for command in each.options}:
        unloaded = main.commands[command]
        assert isinstance(unloaded, Unloaded)
        names = [parameter.name for parameter in unloaded.load().params]
        assert len(names) == len(set(names))
