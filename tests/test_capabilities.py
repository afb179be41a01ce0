"""Capabilities: each can be removed, and the rest works without it."""

import subprocess
import sys
from pathlib import Path

import pytest

import stallmark
from stallmark import capabilities
from stallmark.cli.command import Unloaded
from stallmark.cli.main import main

PACKAGE = Path(stallmark.__file__).parent
COMMANDS = {each.name: {entry.name for entry in each.commands} for each in capabilities.installed()}

# Imports every module that is there, and writes the help of all commands.
REST = """
import importlib, pkgutil, sys
import stallmark
assert stallmark.__path__ == [sys.argv.pop()]
for module in pkgutil.walk_packages(stallmark.__path__, "stallmark."):
    importlib.import_module(module.name)
from stallmark.cli.command import Unloaded
from stallmark.cli.main import main
main(["--help"])
"""


@pytest.fixture
def without(tmp_path):
    """Return a function that runs Python with the package as it is without one of its folders."""

    def run(name: str, *arguments: str) -> subprocess.CompletedProcess[str]:
        copy = tmp_path / "stallmark"
        copy.mkdir()
        for entry in PACKAGE.iterdir():
            if entry.name != name:
                (copy / entry.name).symlink_to(entry.resolve())
        environment = {"PYTHONPATH": str(tmp_path), "PATH": "/usr/bin:/bin", "STALLMARK_HOME": str(tmp_path / "home")}
        command = [sys.executable, *arguments, str(copy)]
        return subprocess.run(command, capture_output=True, text=True, env=environment, cwd=tmp_path, check=False)

    return run


def test_all_that_are_named_are_there():
    assert tuple(COMMANDS) == capabilities.NAMES


@pytest.mark.thorough
@pytest.mark.parametrize("name", capabilities.NAMES)
def test_the_rest_works_without_it(name, without):
    done = without(name, "-c", REST)
    assert done.returncode == 0, done.stderr
    listed = {line.split()[0] for line in done.stdout.splitlines() if line.startswith("  ") and line[2:3].isalpha()}
    assert {command for command in main.commands if command not in COMMANDS[name]} <= listed
    assert not COMMANDS[name] & listed


def test_no_option_is_added_that_the_command_has():
    for command in {command for each in capabilities.installed() for command in each.options}:
        unloaded = main.commands[command]
        assert isinstance(unloaded, Unloaded)
        names = [parameter.name for parameter in unloaded.load().params]
        assert len(names) == len(set(names))
