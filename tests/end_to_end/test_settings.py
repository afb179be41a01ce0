"""Settings of the server that a scenario chooses, from its file to the record, the page and the next command."""

import json

import psycopg
import pytest
from support.remote import Remote
from support.tool import Tool

from stallmark.analysis.compare.settings import IntentKind
from stallmark.analysis.compare.summary import CheckKind

WAITS, DOES_NOT = {"synchronous_commit": True}, {"synchronous_commit": False, "max_wal_size": "2GB"}
VARIANTS = [{"name": "waits", "settings": WAITS}, {"name": "does not", "settings": DOES_NOT}]
NAMES = ("work_mem", "synchronous_commit", "max_wal_size")
CHOSEN = [["8MB", "on", "4GB"], ["8MB", "off", "2GB"]]
OWN = ["4MB", "on", "4GB"]


def recorded(tool: Tool) -> list[list[str]]:
    return [[manifest.server.settings[name] for name in NAMES] for manifest in tool.manifests()]


def settings_alike(compared: dict) -> bool:
    [pair] = compared["pairs"]
    [passed] = [check["passed"] for check in pair["checks"] if check["found"].get("kind") == CheckKind.SETTINGS]
    return passed


def test_variants_of_the_embedded_server_have_their_settings_and_a_kill_leaves_none(fresh):
    scenario = {"settings": {"work_mem": "8192kB"}, "variants": VARIANTS}
    code, said = fresh.run("run", fresh.scenario(**scenario))
    assert code == 0, said
    assert recorded(fresh) == CHOSEN
    assert "synchronous_commit off" in (fresh.newest() / "report.html").read_text()
    code, said = fresh.run("compare", str(fresh.newest()), "--json")
    assert settings_alike(json.loads(said))
    command, folder = fresh.start_measuring(**scenario)
    command.process.kill()
    fresh.nothing_left()
    assert folder.name.endswith("waits")
    code, said = fresh.run("run", fresh.scenario(variants=[{"name": "own", "settings": {"jit": "off"}}]))
    assert code == 0, said
    assert [manifest.server.settings["work_mem"] for manifest in fresh.manifests()] == ["4MB"]


@pytest.mark.parametrize("settings", [{"work_mm": "8MB"}, {"work_mem": "8XB"}, {"shared_buffers": "1GB"}])
def test_a_setting_that_the_server_does_not_take_is_refused_before_the_load(fresh, settings):
    code, said = fresh.run("run", fresh.scenario(settings=settings))
    assert code == 3 and "Loading" not in said and next(iter(settings)) in said, said
    assert not list(fresh.runs.glob("*/*/manifest.json"))


@pytest.fixture
def tool(fresh: Tool, remote: Remote) -> Tool:
    fresh.environment |= {"STALLMARK_SERVER": remote.url(), "STALLMARK_STATE": str(fresh.folder / "state")}
    return fresh


def there(remote: Remote) -> list[str]:
    with psycopg.connect(remote.url()) as connection:
        return [connection.execute(f"SHOW {name}").fetchall()[0][0] for name in NAMES]


def test_a_server_by_url_has_its_own_again_also_after_a_kill(tool, remote):
    own = there(remote)
    variants = [{"name": "waits", "settings": WAITS}, {"name": "does not", "settings": DOES_NOT}]
    code, said = tool.run("run", tool.scenario(settings={"work_mem": "8192kB"}, variants=variants))
    assert code == 0, said
    assert recorded(tool) == [["8MB", "on", own[2]], ["8MB", "off", "2GB"]] and there(remote) == own
    command, _ = tool.start_measuring(settings={"work_mem": "9MB"})
    assert there(remote)[0] == "9MB"
    command.process.kill()
    tool.nothing_left()
    assert there(remote)[0] == "9MB"
    code, said = tool.run("check", "bank", "--scale", "branches=1")
    code, said = tool.run("run", tool.scenario())
    assert code == 0, said
    assert there(remote) == own
    command, _ = tool.start_measuring(settings={"work_mem": "9MB"})
    command.press_ctrl_c()
    assert command.wait() == 130, command.text
    assert there(remote) == own


def test_experiments_between_which_a_setting_was_changed_by_hand_are_compared_if_it_is_named(tool, remote):
    experiments = []
    for value in ("on", "off"):
        with psycopg.connect(remote.url(), autocommit=True) as connection:
            connection.execute(f"ALTER SYSTEM SET synchronous_commit = {value}")
            connection.execute("SELECT pg_reload_conf()")
        code, said = tool.run("run", tool.scenario(name=f"commits-{value}"))
        assert code == 0, said
        experiments.append(str(tool.newest()))
    alike = {}
    for varied in ([], ["--varied", "synchronous_commit"]):
        code, said = tool.run("compare", *experiments, *varied, "--json")
        compared = json.loads(said)
        alike[bool(varied)] = settings_alike(compared)
    assert alike == {False: False, True: True}
    chosen = [
        intent["facts"] for side in compared["sides"] for intent in side["differs"]
        if intent["kind"] == IntentKind.SETTING
    ]  # fmt: skip
    assert chosen == [{"name": "synchronous_commit", "value": value} for value in ("on", "off")]
    code, said = tool.run("compare", *experiments, "--fail-if", "worse")
    assert code == 5 and "not comparable" in said
