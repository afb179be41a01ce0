"""Settings of the server that a scenario chooses, from its file to the record, the page and the next command; those of
the server's start, by the scenario's command that restarts it."""

import json
import subprocess
import sys
from pathlib import Path

import psycopg
import pytest
from ruamel.yaml import YAML
from support.command_line import stallmark
from support.remote import PREFIX, Remote, programs
from support.tool import Tool

from stallmark.analysis.compare.summary import CheckKind
from stallmark.record.reader import find_records

WAITS, DOES_NOT = {"synchronous_commit": True}, {"synchronous_commit": False, "max_wal_size": "2GB"}
NAMES = ("work_mem", "synchronous_commit", "max_wal_size")


def recorded(tool: Tool) -> list[list[str]]:
    return [[manifest.server.settings[name] for name in NAMES] for manifest in tool.manifests()]


def test_variants_of_the_embedded_server_have_their_settings_and_a_kill_leaves_none(shared):
    more = {"work_mem": "8192kB"}
    variants = [{"name": "waits", "settings": WAITS | more}, {"name": "does not", "settings": DOES_NOT | more}]
    command, folder = shared.start_measuring(variants=variants)
    command.process.kill()
    shared.nothing_left()
    assert folder.name.endswith("waits")
    own = {"name": "own", "settings": {"jit": "off"}}
    code, said = shared.run("run", shared.scenario(variants=[own, variants[1]]))
    assert code == 0, said
    assert recorded(shared) == [["4MB", "on", "4GB"], ["8MB", "off", "2GB"]]
    assert "synchronous_commit off" in (shared.newest() / "report.html").read_text()
    compared = json.loads(shared.run("compare", str(shared.newest()), "--json")[1])
    checks = [check for pair in compared["pairs"] for check in pair["checks"]]
    assert all(check["passed"] for check in checks if check["found"].get("kind") == CheckKind.SETTINGS)


def test_a_setting_that_the_server_does_not_take_is_refused(shared):
    before = set(shared.runs.glob("*"))
    for settings in ({"work_mm": "8MB"}, {"work_mem": "8XB"}, {"shared_buffers": "1GB"}):
        code, said = shared.run("run", shared.scenario(settings=settings))
        assert code == 3 and next(iter(settings)) in said, said
    assert set(shared.runs.glob("*")) == before


@pytest.fixture
def tool(fresh: Tool, remote: Remote) -> Tool:
    fresh.environment |= {"STALLMARK_SERVER": remote.url(), "STALLMARK_STATE": str(fresh.folder / "state")}
    return fresh


def there(remote: Remote, *names: str) -> list[str]:
    with psycopg.connect(remote.url()) as connection:
        return [connection.execute(f"SHOW {name}").fetchall()[0][0] for name in names]


def test_a_server_by_url_has_its_own_again_also_after_a_kill(tool, remote):
    own = there(remote, *NAMES)
    command, _ = tool.start_measuring(settings={"work_mem": "9MB"})
    assert there(remote, "work_mem") == ["9MB"]
    command.process.kill()
    tool.nothing_left()
    assert there(remote, "work_mem") == ["9MB"]
    variants = [{"name": "does not", "settings": DOES_NOT}, {"name": "waits"}]
    code, said = tool.run("run", tool.scenario(settings=WAITS | {"work_mem": "8192kB"}, variants=variants))
    assert code == 0, said
    assert recorded(tool) == [["8MB", "off", "2GB"], ["8MB", "on", own[2]]] and there(remote, *NAMES) == own


# Settings that a server reads when it starts


@pytest.fixture
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
                     "think_time": {"mean": "20ms"}, "reset": "continue"} | keys, file)  # fmt: skip
    return path


SMALL_WAL = {"name": "small", "settings": {"wal_buffers": "1MB"}}


def test_each_variant_has_its_own_at_the_start_and_the_server_its_own_at_the_end(address, remote, restart, tmp_path):
    """A setting by itself, and the size of the buffer pool."""
    names = ("wal_buffers", "shared_buffers")
    before = there(remote, *names)
    pool = {"name": "pool", "buffer_pool": "24MiB"}
    path = written(tmp_path, variants=[SMALL_WAL, pool], start_cache="cold", restart={"command": restart})
    result = stallmark("run", path, "--shared", "--out", tmp_path / "runs", "--json")
    assert result.exit_code == 0, result.output
    records = [record.manifest for record in find_records([next((tmp_path / "runs").iterdir())])]
    recorded = [[made.server.settings[name] for name in names] for made in records]
    # By itself wal_buffers is a 32nd of the pool.
    assert recorded == [["1MB", before[1]], ["768kB", "24MB"]] and not {"1MB", "24MB"} & {*before}
    assert [made.memory.configured_bytes for made in records] == [None, 24 * 1024**2]
    assert records[1].memory.reached_bytes == 24 * 1024**2
    assert there(remote, *names) == before


@pytest.mark.parametrize(
    ("command", "named"),
    [
        ([sys.executable, "-c", "import sys; sys.exit('no right')"], "no right"),
        (["no-such-program"], "'no-such-program' is not there"),
        (None, "write how, `restart: {command: […]}`"),
    ],
)
def test_a_restart_that_fails_leaves_the_server_as_it_was(address, remote, tmp_path, command, named):
    keys = {"restart": {"command": command}} if command else {}
    path = written(tmp_path, variants=[SMALL_WAL], **keys)
    result = stallmark("run", path, "--shared", "--out", tmp_path / "runs")
    assert result.exit_code == 3 and named in " ".join(result.output.split()), result.output
    with psycopg.connect(remote.url()) as connection:
        [(entries,)] = connection.execute("SELECT count(*) FROM pg_file_settings WHERE name = 'wal_buffers'").fetchall()
    assert entries == 0


def test_a_restart_is_of_a_server_by_url(tmp_path, address, monkeypatch):
    path = written(tmp_path, variants=[{"name": "a"}], restart={"command": ["true"]})
    refused = stallmark("run", path, "--out", tmp_path / "runs")
    assert refused.exit_code == 3 and "restart is for settings that need one" in " ".join(refused.output.split())
    monkeypatch.delenv("STALLMARK_SERVER")
    written(tmp_path, variants=[SMALL_WAL], restart={"command": ["true"]})
    result = stallmark("run", path, "--data-dir", tmp_path / "db", "--out", tmp_path / "runs")
    assert result.exit_code == 3 and "Stallmark restarts the embedded server itself" in " ".join(result.output.split())
