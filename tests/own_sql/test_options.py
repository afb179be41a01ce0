"""The options that own SQL adds to commands: what they take, and what they refuse before anything begins."""

from pathlib import Path

import pytest
from support.command_line import stallmark

from stallmark.errors import StallmarkError
from stallmark.own_sql.folder import read_definition
from stallmark.own_sql.new_options import SCHEMA
from stallmark.own_sql.run_options import document
from stallmark.scenarios.read import LoadOptions, read_document


def test_a_new_workload_is_a_copy_and_replaces_nothing(tmp_path):
    folder = tmp_path / "mine"
    assert stallmark("new", "--workload", folder).exit_code == 0
    assert read_definition(str(folder))["name"] == "mine"
    named = (folder / "workload.yaml").read_text().splitlines()[0].partition("$schema=")[2]
    assert Path(named).samefile(SCHEMA)
    again = stallmark("new", "--workload", folder)
    assert again.exit_code == 3 and "holds something" in again.output
    assert stallmark("new").exit_code == 2


def test_a_quick_run_is_a_scenario_that_set_changes(tmp_path):
    (tmp_path / "look.sql").write_text("SELECT 1")
    scenario = read_document(document(str(tmp_path)), ("warm_up=1s", "call_timeout=5s"), LoadOptions(7, 12.0, 50.0))
    assert (scenario.users, scenario.measure, scenario.reset) == ([7], 12.0, "continue")
    assert (scenario.warm_up, scenario.call_timeout, scenario.arrivals.rate) == (1.0, 5.0, 50.0)


@pytest.mark.parametrize(
    ("override", "named"),
    [
        ("think_time=-1s", "--set think_time=-1s: think_time must be written as {mean: …, kind: …}, not '-1s'"),
        ("call_timeout=0s", "--set call_timeout=0s: call_timeout must be at least 100ms"),
        ("measure=5", "--set measure=5: measure: 5 has no unit"),
        ("bufer_pool=1GiB", "unknown key bufer_pool: did you mean buffer_pool"),
    ],
)
def test_a_wrong_key_of_a_quick_run_is_named_with_its_option(override, named):
    given = {"name": "own", "transactions": {"look": {"sql": "SELECT 1"}}}
    with pytest.raises(StallmarkError, match=named):
        read_document(document(given), [override])


@pytest.mark.parametrize(
    ("given", "code", "named"),
    [
        (("--sql", "a", "-f", "b.sql"), 2, "two loads"),
        (("--sql", "a", "-D", "x=1"), 2, "--define"),
        (("-f", "b.sql", "-D", "x"), 2, "name=value"),
        (("-f", "b.sql", "-D", "db_password=hush"), 3, "the list of processes: set STALLMARK_RUN_DEFINE"),
        (("-f", "b.sql", "-D", "place=postgresql://me:hush@db/x"), 3, "holds a secret"),
        (("-f", "nowhere.sql"), 3, "cannot be read"),
        (("--sql", "nowhere"), 3, "is not a folder"),
        (("demo", "--sql", "nowhere"), 2, "leave out"),
        (("--sql", "nowhere", "-T", "soon"), 2, "--duration"),
    ],
)
def test_what_cannot_be_is_refused(given, code, named):
    result = stallmark("run", *given)
    assert result.exit_code == code and named in " ".join(result.output.split()) and "hush" not in result.output


def test_a_secret_of_a_script_may_come_from_the_environment(monkeypatch, tmp_path):
    (script := tmp_path / "a.sql").write_text("SELECT :db_password;")
    monkeypatch.setenv("STALLMARK_RUN_DEFINE", "db_password=hush")
    monkeypatch.setenv("STALLMARK_SERVER", "postgresql://me@127.0.0.1:1/none")
    result = stallmark("run", "-f", script)
    assert result.exit_code == 3 and "No connection" in result.output and "hush" not in result.output
