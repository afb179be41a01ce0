"""The wheel, built and installed as the page says: what a Windows can hold, and works without what only Unix has."""

import os
import re
import shutil
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest
from support.documents import shell_commands

ROOT = Path(__file__).parents[1]
# Hidden folders are caches, too, in which other test processes write meanwhile.
NOT_IN_IT = (".*", "tests", "stallmark-runs", "build", "dist", "*.egg-info", "__pycache__")
RESERVED = re.compile(r"(?i)^(con|prn|aux|nul|com\d|lpt\d)(\.|$)")  # "Naming Files, Paths, and Namespaces" (Windows)

# Imports every module as on Windows: ours may not import what only Unix has while they are imported.
WITHOUT_UNIX = """
import builtins, importlib, pkgutil, sys
unix, real = {"fcntl", "grp", "pwd", "resource", "termios", "tty", "pty"}, builtins.__import__
def windows(name, names=None, *more, **named):
    if name in unix and (names or {}).get("__name__", "").startswith("stallmark"):
        raise ImportError(f"no {name} on Windows")
    return real(name, names, *more, **named)
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

COMMANDS = """
from stallmark.cli.main import main
for command in ("list", "doctor", "run --help", "db list"):
    try:
        main(command.split(), "stallmark")
    except SystemExit as ended:
        assert ended.code == 0, command
print("all worked")
"""


BUILD, INSTALL = (
    next(one.text for one in shell_commands() if one.page == "installing.md" and one.text.startswith(begins))
    for begins in ("pip wheel", "pip install dist/")
)
"""The commands of the page."""


@pytest.fixture(scope="module")
def wheel(tmp_path_factory) -> Path:
    return built(tmp_path_factory.mktemp("wheel") / "source")


def built(source: Path) -> Path:
    """Build it from a copy: setuptools leaves its own folders beside the sources."""
    shutil.copytree(ROOT, source, symlinks=True, ignore=shutil.ignore_patterns(*NOT_IN_IT))
    _in_the_environment(BUILD, source, SOURCE_DATE_EPOCH="1767225600")
    [found] = source.glob("dist/*.whl")
    return found


@pytest.fixture(scope="module")
def installed(wheel, tmp_path_factory) -> Path:
    """The folder it is installed in, by itself: its dependencies are those of this environment."""
    folder = tmp_path_factory.mktemp("installed")
    _in_the_environment(INSTALL, wheel.parents[1], PIP_TARGET=str(folder), PIP_NO_DEPS="1", PIP_NO_COMPILE="1")
    return folder


def _in_the_environment(command: str, folder: Path, **options: str) -> None:
    path = f"{Path(sys.executable).parent}:{os.environ['PATH']}"
    done = subprocess.run(
        ["sh", "-c", command],
        capture_output=True, text=True, cwd=folder, env=os.environ | {"PATH": path} | options, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr


def test_a_windows_can_hold_its_files(wheel):
    with zipfile.ZipFile(wheel) as archive:
        entries = archive.infolist()
    names = [entry.filename for entry in entries]
    assert len(names) > 500 and any(name.endswith("trade_order.mssql.sql") for name in names)
    assert [name for name in names if re.search(r'[<>:"|?*\\\x00-\x1f]', name)] == []
    assert [name for name in names if any(RESERVED.match(p) or p[-1] in " ." for p in name.split("/"))] == []
    assert len({name.lower() for name in names}) == len(names) and max(map(len, names)) < 160
    assert [one.filename for one in entries if one.external_attr >> 28 == 0o12] == [], "links"


def test_it_is_the_same_to_the_byte_wherever_it_is_built(wheel, tmp_path):
    again = built(tmp_path / "elsewhere" / "deeper")
    assert again.name == wheel.name and again.read_bytes() == wheel.read_bytes()


def test_the_locks_have_a_hash_of_every_package():
    for lock in ("requirements.lock", "requirements-dev.lock"):
        packages = re.split(r"\n(?=[A-Za-z0-9])", (ROOT / lock).read_text())[1:]
        assert len(packages) > 50
        assert [one.splitlines()[0] for one in packages if "==" not in one or "--hash=sha256:" not in one] == []


def test_it_is_imported_from_there_without_what_only_unix_has(installed):
    command = [sys.executable, "-c", WITHOUT_UNIX, str(installed)]
    environment = {"PYTHONPATH": str(installed), "PATH": "/usr/bin:/bin"}
    done = subprocess.run(command, capture_output=True, text=True, env=environment, check=False)
    assert done.returncode == 0 and done.stdout.strip().splitlines()[-1] == "{}", done.stdout + done.stderr


def test_commands_work_from_there_without_a_checkout(installed, tmp_path):
    environment = {"PYTHONPATH": str(installed), "PATH": "/usr/bin:/bin", "HOME": str(tmp_path)}
    done = subprocess.run(
        [sys.executable, "-c", COMMANDS], capture_output=True, text=True, env=environment, cwd=tmp_path, check=False
    )
    assert done.returncode == 0 and done.stdout.endswith("all worked\n"), done.stdout + done.stderr
    assert str(ROOT) not in done.stdout, "it looks for nothing in the checkout"
