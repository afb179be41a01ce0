"""The command whatif."""

import json
from dataclasses import replace
from pathlib import Path

import pytest
from support.command_line import stallmark
from support.synthetic import Truth, make_run

WAITS = {"io": 0.72, "wal": 0.06, "lock": 0.04, "client": 0.03, "other": 0.01}


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return make_run(tmp_path_factory.mktemp("whatif") / "run", Truth(variant="slow array", read_ms=27, waits=WAITS))


def test_it_predicts_for_the_times_asked_for(run):
    shown = stallmark("whatif", run, "--read", "0.5ms", "--read", "9ms")
    assert shown.exit_code == 0, shown.output
    assert "0.500 ms" in shown.output and "9.00 ms" in shown.output and "Not tested" in shown.output
    [found] = json.loads(stallmark("whatif", run, "--read", "9ms", "--json").stdout)["found"]
    assert found["variant"] == "slow array" and [one["read_ms"] for one in found["predictions"]] == [9.0]


@pytest.mark.parametrize("text", ["0ms", "soon", "5", "-1ms"])
def test_what_is_no_time_of_a_read_is_refused_with_how_to_write_it(run, text):
    refused = stallmark("whatif", run, "--read", text)
    assert refused.exit_code == 3 and "write it as 1ms" in " ".join(refused.output.split())


def test_a_run_without_the_means_says_which_it_lacks(tmp_path):
    blind = make_run(tmp_path / "run", replace(Truth(), off=("waits",)))
    refused = stallmark("whatif", blind)
    assert refused.exit_code == 3 and "sessions were not sampled" in " ".join(refused.output.split())
