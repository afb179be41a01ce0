"""The options that own SQL adds to commands: what they take, and what they refuse before anything begins."""

import pytest
from support.command_line import stallmark

from stallmark.own_sql.folder import read_definition
from stallmark.own_sql.run_options import document
from stallmark.scenarios.read import LoadOptions, read_document


def test_a_new_workload_is_a_copy_and_replaces_nothing(tmp_path):
    folder = tmp_path / "mine"
    assert stallmark("new", "--workload", folder).exit_code == 0
    assert read_definition(str(folder))["name"] == "mine"
    again = stallmark("new", "--workload", folder)
    assert again.exit_code == 3 and "holds something" in again.output
    assert stallmark("new").exit_code == 2


def test_a_quick_run_is_a_scenario_that_set_changes(tmp_path):
    (tmp_path / "look.sql").write_text("SELECT 1")
    scenario = read_document(document(str(tmp_path)), ("warm_up=1s", "call_timeout=5s"), LoadOptions(7, 12.0, 50.0))
    assert (scenario.users, scenario.measure, scenario.reset) == ([7], 12.0, "continue")
    assert (scenario.warm_up, scenario.call_timeout, scenario.arrivals.rate) == (1.0, 5.0, 50.0)


@pytest.mark.parametrize(
    ("given", "code", "named"),
    [
        (("--sql", "a", "-f", "b.sql"), 2, "two loads"),
        (("--sql", "a", "-D", "x=1"), 2, "--define"),
        (("-f", "b.sql", "-D", "x"), 2, "name=value"),
        (("-f", "nowhere.sql"), 3, "cannot be read"),
        (("--sql", "nowhere"), 3, "is not a folder"),
        (("demo", "--sql", "nowhere"), 2, "leave out"),
        (("--sql", "nowhere", "-T", "soon"), 2, "--duration"),
    ],
)
def test_what_cannot_be_is_refused(given, code, named):
    result = stallmark("run", *given)
    assert result.exit_code == code and named in result.output
