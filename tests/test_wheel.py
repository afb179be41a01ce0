"""The wheel: it is built, it holds what a Windows can hold, and it works from there without what only Unix has."""

import re
import shutil
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
NOT_IN_IT = (".git", ".venv", ".stallmark", "tests", "stallmark-runs", "build", "*.egg-info", "__pycache__")
RESERVED = re.compile(r"(?i)^(con|prn|aux|nul|com\d|lpt\d)(\.|$)")  # "Naming Files, Paths, and Namespaces" (Windows)

# Imports every module as on Windows: ours may not import what only Unix has while they are imported.
WITHOUT_UNIX = """
import builtins, importlib, pkgutil, sys
unix, real = {"fcntl", "grp", "pwd", "resource", "termios", "tty", "pty"}, builtins.__import__
def windows(name, names=None, *more):
    if name in unix and (names or {}).get("__name__", "").startswith("stallmark"):
        raise ImportError(f"no {name} on Windows")
    return real(name, names, *more)
builtins.__import__ = windows
import stallmark
assert sys.argv[1] in stallmark.__file__, stallmark.__file__
failed = {}
for module in pkgutil.walk_packages(stallmark.__path__, "stallmark."):
    try:
        importlib.import_module(module.name)
    except ImportError as error:
        failed[module.name] = str(error)
print(failed)
"""


@pytest.fixture(scope="module")
def wheel(tmp_path_factory) -> Path:
    """Built from a copy: setuptools leaves its own folders beside the sources."""
    folder = tmp_path_factory.mktemp("wheel")
    shutil.copytree(ROOT, folder / "source", symlinks=True, ignore=shutil.ignore_patterns(*NOT_IN_IT))
    options = ["--no-deps", "--no-build-isolation", "--quiet", "-w", folder]
    command = [sys.executable, "-m", "pip", "wheel", *options, folder / "source"]
    subprocess.run(command, check=True, capture_output=True, cwd=folder)
    [built] = folder.glob("*.whl")
    return built


def test_a_windows_can_hold_its_files(wheel):
    with zipfile.ZipFile(wheel) as archive:
        entries = archive.infolist()
    names = [entry.filename for entry in entries]
    assert len(names) > 500 and any(name.endswith("trade_order.mssql.sql") for name in names)
    assert [name for name in names if re.search(r'[<>:"|?*\\\x00-\x1f]', name)] == []
    assert [name for name in names if any(RESERVED.match(p) or p[-1] in " ." for p in name.split("/"))] == []
    assert len({name.lower() for name in names}) == len(names) and max(map(len, names)) < 160
    assert [one.filename for one in entries if one.external_attr >> 28 == 0o12] == [], "links"


def test_it_is_imported_from_there_without_what_only_unix_has(wheel, tmp_path):
    with zipfile.ZipFile(wheel) as archive:
        archive.extractall(tmp_path)
    command = [sys.executable, "-c", WITHOUT_UNIX, str(tmp_path)]
    done = subprocess.run(
        command, capture_output=True, text=True, env={"PYTHONPATH": str(tmp_path), "PATH": "/usr/bin:/bin"}, check=False
    )
    assert done.returncode == 0 and done.stdout.strip().splitlines()[-1] == "{}", done.stdout + done.stderr


def test_commands_work_from_there_without_a_checkout(wheel, tmp_path):
    with zipfile.ZipFile(wheel) as archive:
        archive.extractall(tmp_path / "installed")
    environment = {"PYTHONPATH": str(tmp_path / "installed"), "PATH": "/usr/bin:/bin", "HOME": str(tmp_path)}
    for command in (["list"], ["doctor"], ["run", "--help"], ["db", "list"]):
        done = subprocess.run(
            [sys.executable, "-m", "stallmark.cli.main", *command],
            capture_output=True, text=True, env=environment, cwd=tmp_path, check=False,
        )  # fmt: skip
        assert done.returncode == 0, done.stdout + done.stderr
        assert str(ROOT) not in done.stdout, "it looks for nothing in the checkout"
