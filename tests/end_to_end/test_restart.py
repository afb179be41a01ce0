"""Settings that a server by URL reads when it starts: the scenario's command restarts it for each variant."""

import json
import subprocess
import sys
from pathlib import Path

import psycopg
import pytest
from ruamel.yaml import YAML
from support.command_line import stallmark
from support.remote import PREFIX, Remote, programs, remote

from stallmark.record.reader import find_records

__all__ = ["remote"]
pytestmark = pytest.mark.server


@pytest.fixture(autouse=True)
def address(remote: Remote, monkeypatch):
    monkeypatch.setenv("STALLMARK_SERVER", remote.url())  # a password on a command line is refused


@pytest.fixture
def restart(remote: Remote):
    """A command that restarts the server. Afterwards the server is one of the test's again."""
    control = [*PREFIX, programs() / "pg_ctl", "-D", remote.folder / "data", "-m", "fast", "-w"]
    yield [*map(str, [*control, "-l", remote.folder / "log", "restart"])]
    subprocess.run([*control, "stop"], check=True, capture_output=True)
    remote.stop()
    remote.start()


def written(folder: Path, **keys) -> Path:
    (folder / "mine").mkdir(exist_ok=True)
    (folder / "mine/look.sql").write_text("SELECT 1")
    with (path := folder / "scenario.yaml").open("w") as file:
        YAML().dump({"name": "restarted", "workload": {"sql": "mine"}, "users": 2, "warm_up": "0s", "measure": "1s",
                     "reset": "continue"} | keys, file)  # fmt: skip
    return path


VARIANTS = [
    {"name": "small", "settings": {"wal_buffers": "1MB"}},
    {"name": "large", "settings": {"wal_buffers": "16MB"}},
    {"name": "own"},
]


def test_each_variant_has_its_setting_of_the_start_and_the_server_its_own_at_the_end(remote, restart, tmp_path):
    def wal_buffers() -> str:
        with psycopg.connect(remote.url()) as connection:
            return connection.execute("SHOW wal_buffers").fetchall()[0][0]

    before = wal_buffers()
    path = written(tmp_path, variants=VARIANTS, restart={"command": restart})
    result = stallmark("run", path, "--out", tmp_path / "runs", "--json")
    assert result.exit_code == 0, result.output
    runs = json.loads(result.stdout)["runs"]
    assert [len(run["steps"]) for run in runs] == [1, 1, 1]
    records = find_records([next((tmp_path / "runs").iterdir())])
    recorded = {record.manifest.variant.name: record.manifest.server.settings["wal_buffers"] for record in records}
    assert recorded == {"small": "1MB", "large": "16MB", "own": before}
    assert wal_buffers() == before


def test_each_variant_has_its_buffer_pool_and_the_server_its_own_at_the_end(remote, restart, tmp_path):
    def pool() -> str:
        with psycopg.connect(remote.url()) as connection:
            return connection.execute("SHOW shared_buffers").fetchall()[0][0]

    before = pool()
    variants = [{"name": size, "buffer_pool": size} for size in ("16MiB", "24MiB")]
    path = written(tmp_path, variants=variants, start_cache="cold", restart={"command": restart})
    result = stallmark("run", path, "--out", tmp_path / "runs")
    assert result.exit_code == 0, result.output
    records = [record.manifest for record in find_records([next((tmp_path / "runs").iterdir())])]
    assert [(made.memory.configured_bytes, made.memory.reached_bytes) for made in records] == [
        (size * 1024**2, size * 1024**2) for size in (16, 24)
    ]
    assert [made.server.settings["shared_buffers"] for made in records] == ["16MB", "24MB"]
    assert pool() == before


@pytest.mark.parametrize(
    ("command", "code", "named"),
    [
        ([sys.executable, "-c", "import sys; sys.exit('no right')"], 3, "no right"),
        (["no-such-program"], 3, "'no-such-program' is not there"),
        (None, 3, "write how, `restart: {command: […]}`"),
    ],
)
def test_a_restart_that_fails_leaves_the_server_as_it_was(remote, tmp_path, command, code, named):
    keys = {"restart": {"command": command}} if command else {}
    path = written(tmp_path, variants=VARIANTS[:1], **keys)
    result = stallmark("run", path, "--out", tmp_path / "runs")
    assert result.exit_code == code and named in " ".join(result.output.split()), result.output
    with psycopg.connect(remote.url()) as connection:
        [(entries,)] = connection.execute("SELECT count(*) FROM pg_file_settings WHERE name = 'wal_buffers'").fetchall()
    assert entries == 0


def test_a_restart_is_of_a_server_by_url(tmp_path, monkeypatch):
    monkeypatch.delenv("STALLMARK_SERVER")
    path = written(tmp_path, variants=VARIANTS[:1], restart={"command": ["true"]})
    result = stallmark("run", path, "--data-dir", tmp_path / "db", "--out", tmp_path / "runs")
    assert result.exit_code == 3 and "Stallmark restarts the embedded server itself" in " ".join(result.output.split())
    written(tmp_path, variants=[{"name": "a"}], restart={"command": ["true"]})
    refused = stallmark("run", path, "--out", tmp_path / "runs")
    assert refused.exit_code == 3 and "restart is for settings that need one" in " ".join(refused.output.split())
