"""A sizing on the embedded engine and an emulated array: a profile's I/O is replayed, and a bank and queries stand in
for it."""

import json
from pathlib import Path

import pytest
from support.profiles import write_made_profile
from support.tool import Tool

from stallmark.record.reader import find_records
from stallmark.sizing import runner
from stallmark.sizing.manifest import read_sizing
from stallmark.storage.programs import can_probe

pytestmark = pytest.mark.skipif(can_probe() is not None, reason=can_probe() or "")
PER_S = {"reads": 120.0, "writes": 20.0}
LOG = {"reads": 0.0, "read_bytes": 0.0, "writes": 40.0, "write_bytes": 40 * 8192.0, "write_stall_ms": 40.0}
SMALL = [
    "loads={bank: {workload: bank, scale: {branches: 1}, users: 2}, "
    "reports: {workload: warehouse, scale: {factor: 0.01}, streams: 3}}",
    "search={of: load, from: 1, to: 1}",
    "slo={read: 100ms}",
    "replay={size: 32MiB, log_size: 32MiB, window: 30s, play: 5s}",
    "ramp=0s",
    "warm_up=0s",
    "measure=2s",  # costs and trials are measured for three times as long
    "buffer_pool=16MiB",
    "candidate={name: small, cost: 10}",
]


@pytest.fixture(scope="module")
def tool(tmp_path_factory: pytest.TempPathFactory) -> Tool:
    return Tool(tmp_path_factory.mktemp("sizing"))


@pytest.fixture(scope="module")
def profile(tmp_path_factory: pytest.TempPathFactory) -> Path:
    data = {name: value * 15 for name, value in PER_S.items()}
    data |= {"read_bytes": data["reads"] * 65_536, "write_bytes": data["writes"] * 8192}
    data |= {"read_stall_ms": data["reads"] * 5, "write_stall_ms": data["writes"] * 2, "size_bytes": 2.0**28}
    log = {name: value * 15 for name, value in LOG.items()}
    folder = tmp_path_factory.mktemp("profile") / "shop"
    return write_made_profile(folder, 8, file_io=lambda n: {"data": data, "log": log})


@pytest.mark.thorough
def test_a_sizing_is_whole_and_answers(tool: Tool, profile: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(runner, "TRIALS", 2)  # the second is with corrected rates
    changes = [word for change in SMALL for word in ("--set", change)]
    code, said = tool.run("run", "sizing-emulated", "--profile", str(profile), *changes)
    assert code == 0, said
    [folder] = sorted(tool.runs.glob("*-sizing-emulated"))
    made = read_sizing(folder)
    assert made.status == "complete" and made.because is None and made.candidate.cost == 10
    assert made.replay and made.replay.emulated and made.replay.outcome == "at_least"
    for stream in made.replay.levels[-1].streams:
        per_s = LOG["writes"] if stream.name == "log" else PER_S[stream.name]
        assert stream.ios == pytest.approx(per_s * made.replay.levels[-1].seconds, rel=0.25)
    assert made.stand_in and made.stand_in.rates["bank"] > 0 and made.stand_in.ceiling
    rates = made.stand_in.rates
    assert rates["reports"] > 0 and made.stand_in.queries["reports"] > 0
    reached = {one.name: one.reached for one in made.stand_in.matched}
    assert reached["log_bytes"] and reached["cpu_cores"] is None
    [searched] = find_records([folder / made.stand_in.ceiling])
    assert searched.manifest.search and searched.manifest.search.of == "load"
    assert {load.name: load.rate for load in searched.manifest.loads} == rates
    [tried] = find_records([folder / made.stand_in.trial])
    for record in (tried, searched):
        [reports] = [load for load in record.manifest.loads if load.kind == "streams"]
        executed = record.table("queries").to_pylist()
        assert reports.arrivals == "poisson" and executed
        assert all(row["due_s"] <= row["started_s"] for row in executed)
        due = len(executed) + reports.given_up + reports.left_waiting.arrivals
        expected = rates["reports"] * record.manifest.steps[-1].end_s
        assert abs(due - expected) <= 5 * expected**0.5 + 5
    code, said = tool.run("size", str(profile), str(folder), "--growth", "0.05", "--json")
    assert code == 0, said
    assert json.loads(said.splitlines()[-1])["candidates"][0]["standing"] == "carries"
    for words in (["compare"], ["plan"], ["export", "--csv", "figures"]):
        assert tool.run(*words, str(folder))[0] == 3
    assert tool.run("status", str(folder))[0] == tool.run("report", str(folder))[0] == 0


@pytest.mark.thorough
def test_own_sql_stands_in_for_the_database_of_a_profile(
    tool: Tool, profile: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(runner, "TRIALS", 1)  # the test above corrects rates
    (folder := tmp_path / "mine").mkdir()
    (folder / "setup.sql").write_text(
        "CREATE TABLE item (id integer PRIMARY KEY, n integer NOT NULL DEFAULT 0, text text NOT NULL);"
        "INSERT INTO item SELECT n, 0, repeat(md5(n::text), 30) FROM generate_series(1, 60000) AS n"
    )
    (folder / "look.sql").write_text("SELECT text FROM item WHERE id = :id")
    (folder / "change.sql").write_text("UPDATE item SET n = n + 1 WHERE id = :id")
    (folder / "workload.yaml").write_text(
        "{transactions: {look: 4, change: 2}, parameters: {id: {from: 1, to: 60000}}}"
    )
    loads = f"loads={{mine: {{workload: {{sql: {folder}}}, users: 2}}}}"
    changes = [word for change in [loads, *SMALL[1:]] for word in ("--set", change)]
    code, said = tool.run("run", "sizing-emulated", "--profile", str(profile), *changes)
    assert code == 0, said
    [made_in] = [
        path for path in tool.runs.glob("*-sizing-emulated*") if read_sizing(path).stand_in.rates.keys() == {"mine"}
    ]
    stand_in = read_sizing(made_in).stand_in
    reached = {quantity.name: quantity for quantity in stand_in.matched}
    assert reached["reads"].reached and reached["writes"].reached and stand_in.ceiling
    [searched] = find_records([made_in / stand_in.ceiling])
    [own] = [load for load in searched.manifest.loads if load.workload]
    assert own.rate == stand_in.rates["mine"] > 0 and own.workload.name == "mine"
    assert searched.table("own_statements").num_rows
    assert (
        tool.run("report", str(made_in))[0] == tool.run("size", str(profile), str(made_in), "--growth", "0.05")[0] == 0
    )


@pytest.mark.parametrize(
    ("words", "code"),
    [
        (["run", "sizing-emulated"], 2),
        (["run", "demo", "--profile", "."], 2),
        (["run", "sizing-emulated", "--profile", "."], 3),
        (["run", "sizing-emulated", "--profile", "nowhere"], 2),
    ],
)
def test_what_cannot_be_is_a_sentence(tool: Tool, words: list[str], code: int) -> None:
    found, said = tool.run(*words)
    assert found == code and "Traceback" not in said
