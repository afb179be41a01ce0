"""The command characterise: which scenario it makes, and what it refuses."""

from pathlib import Path

import pytest
from support.command_line import stallmark
from support.traces import make_pools

from stallmark.cli.characterise import MEASURE_S, USERS, scenario_for
from stallmark.errors import StallmarkError


def test_a_workload_is_traced_with_the_smallest_pool_by_default():
    made = scenario_for("brokerage", "customers=5000,days=5", 7, (), {})
    [variant] = made.variants
    assert str(variant.buffer_pool) == "2 %" and made.observe == ["io_trace"] and made.start_cache == "prefilled"
    assert (made.counts, made.measure, made.workload.seed) == ([USERS], MEASURE_S, 7)
    [small] = scenario_for("bank", "branches=1", None, (), {}).variants
    assert str(small.buffer_pool) == "8MiB"


def test_every_pool_is_a_variant_and_options_replace_what_a_scenario_says():
    made = scenario_for("memory-curve", "", None, ("4 %", "64MiB"), {"users": 3})
    assert [str(one.buffer_pool) for one in made.variants] == ["4 %", "64MiB"]
    assert made.counts == [3] and made.workload.scale["customers"] == 1000 and made.warm_up == 28
    assert made.repeats == 1 and made.curve is None


@pytest.mark.parametrize(
    ("load", "scale", "pools", "message"),
    [
        ("user-ramp", "", (), "is not one load of a fixed number of users"),
        ("htap", "", (), "is not one load of a fixed number of users"),
        ("memory-curve", "customers=1000", (), "says scale and seed itself"),
        ("warehouse", "factor=1", (), "has no transactions that users could execute"),
        ("bank", "branches=1", ("a lot",), "a lot"),
        ("nonsense", "", (), "neither a file nor a scenario"),
    ],
)
def test_what_cannot_be_characterised_is_refused(load, scale, pools, message):
    with pytest.raises(StallmarkError) as refused:
        scenario_for(load, scale, None, pools, {})
    assert message in str(refused.value)


def test_records_are_told_of_and_take_no_options_of_a_load(tmp_path: Path):
    make_pools(tmp_path / "runs", (0.02, 0.08, 0.32))
    shown = stallmark("characterise", tmp_path / "runs", "--page", tmp_path / "page.html")
    assert shown.exit_code == 0 and "How brokerage reads" in shown.output, shown.output
    assert (tmp_path / "page.html").read_text().startswith("<!doctype html>")
    assert stallmark("characterise", tmp_path / "runs", "--users", 4).exit_code == 2
    assert stallmark("characterise").exit_code == 2
    assert stallmark("characterise", tmp_path / "none").exit_code == 3


@pytest.mark.parametrize("name", ["bank", "memory-curve"])
def test_a_folder_of_the_same_name_hides_no_workload_and_no_scenario(tmp_path: Path, monkeypatch, name):
    monkeypatch.chdir(tmp_path)
    make_pools(tmp_path / name, (0.02, 0.08, 0.32))
    asked = []

    def note(scenario, *_):
        asked.append(scenario.workload.name)
        raise StallmarkError("That is enough.")

    monkeypatch.setattr("stallmark.cli.characterise._run", note)
    scale = ["--scale", "branches=1"] if name == "bank" else []
    assert stallmark("characterise", name, *scale).exit_code == 3 and len(asked) == 1
    for folder in (f"./{name}", f"{name}/", tmp_path / name):
        assert stallmark("characterise", folder).exit_code == 0
    assert len(asked) == 1


def test_another_server_cannot_be_traced():
    refused = stallmark("characterise", "bank", "--server", "postgresql://me@db.example/bank")
    assert refused.exit_code == 3 and "Only the embedded PostgreSQL can be traced" in " ".join(refused.output.split())
