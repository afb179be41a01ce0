"""Scenarios about raw storage, and `stallmark probe`: what they may say, and what they refuse before any I/O."""

import json

import pytest
from click.testing import CliRunner
from support.findings import facts_of

from stallmark.analysis.finding import EndKind
from stallmark.cli.main import main
from stallmark.errors import StallmarkError
from stallmark.probe import runner
from stallmark.probe.scenario import ProbeScenario
from stallmark.probe.summary import summarise_probes
from stallmark.record.manifest.storage import Asked, ProbeStep
from stallmark.record.reader import find_records
from stallmark.scenarios.read import read_any_scenario, read_scenario
from stallmark.storage import programs
from stallmark.storage.emulator import NoCompiler

RAW = """name: mine
title: t
answers: a?
needs: n
probe: {size: 32MiB, patterns: [8k-random-read], outstanding: [1, 4], seconds: 1s}
variants:
  - {name: disks, emulated_array: {spindles: 4, read_ms: 5, write_ms: 5, sync_ms: 1, mb_per_s: 100}}
"""


@pytest.fixture
def write(tmp_path):
    def write(text: str = RAW) -> str:
        (tmp_path / "mine.yaml").write_text(text)
        return str(tmp_path / "mine.yaml")

    return write


@pytest.fixture
def found(monkeypatch):
    """In place of fio: every step has 100 I/Os a second; what was asked is kept."""
    asked: list[Asked] = []

    class Found(programs.Tool):
        def measure(self, file, one, seconds, seed, environment):
            asked.append(one)
            return ProbeStep(one.pattern, one.outstanding, 1.0, 100, 819_200, 10.0 * one.outstanding, ((10.0, 100),))

    for module in ("probe", "programs"):
        monkeypatch.setattr(
            f"stallmark.storage.{module}.find_tool", lambda *, emulated: Found("fio", "fio-3.99", "libaio")
        )
    monkeypatch.setattr("stallmark.probe.runner.find_tool", lambda *, emulated: None)
    for module in ("storage.probe", "probe.runner"):  # temporary folders are in memory on some machines
        monkeypatch.setattr(f"stallmark.{module}.refuse_memory", lambda folder: None)
    return asked


def run(*arguments: str):
    return CliRunner().invoke(main, arguments)


def test_the_shipped_one_asks_storage_for_everything_e6_did():
    scenario = read_any_scenario("saturation")
    assert isinstance(scenario, ProbeScenario)
    asked = {(one.pattern.name, one.outstanding) for one in scenario.probe.steps()}
    for size in ("8k", "64k"):
        for operation in ("read", "write"):
            assert {(f"{size}-random-{operation}", n) for n in (1, 2, 4, 8, 16, 32)} <= asked
    assert len(scenario.variants) > 1


@pytest.mark.parametrize(
    ("change", "sentence"),
    [
        (("32MiB", "10 %"), "probe.size: 10 % is a share, and of what is not known here: write a size"),
        (("[8k-random-read]", "[8k-read]"), "probe.patterns.0 must be .*8k-random-read.*, not .8k-read."),
        (("32MiB", "31MiB"), "probe.size must be at least 32MiB, not '31MiB'"),
        (("seconds: 1s", "seconds: 25h"), "probe.seconds must be at most 86400s, not '25h'"),
        (("[1, 4]", "[4, 1]"), r"outstanding: the numbers must rise: write \[1, 4\]"),
        (("probe:", "raw:"), "raw is called probe now: rename it"),
        (("probe:", "users: 4\nprobe:"), "users belongs to a database, and `probe` without `workload` asks storage"),
        (("emulated_array: {spindles: 4, read_ms: 5, write_ms: 5, sync_ms: 1, mb_per_s: 100}", "x: 1"), "unknown key"),
        (("variants:", "variants:\n  - {name: real, folder: /mnt}"), "some variants are emulated and others real"),
        (("variants:", "variants:\n  - {name: none}"), "must have either an emulated_array or a folder"),
        (("variants:", "variants:\n  - {name: none, folder: ''}"), "variants.0.folder must not be empty"),
        (("name: disks, emu", "name: d, folder: /x, emu"), "must have either an emulated_array"),
    ],
)
def test_what_is_wrong_is_said(write, change, sentence):
    with pytest.raises(StallmarkError, match=sentence):
        read_any_scenario(write(RAW.replace(*change)))


def test_it_has_no_database(write):
    with pytest.raises(StallmarkError, match="mine has no database: `stallmark run mine` runs it"):
        read_scenario(write())


@pytest.mark.parametrize(
    "option", ["--data-dir=/x", "--server=mssql://me@host/db", "--drop-caches", "--expect-workers=2"]
)
def test_options_of_a_database_are_refused(write, option):
    result = run("run", write(), option)
    assert result.exit_code == 2 and "only --set, --out and --json of `run` apply" in result.stderr


@pytest.mark.parametrize("option", ["--web=8089", "--locust-web=8089", "--device=new=/x"])
def test_options_of_runs_are_refused(write, option):
    result = run("run", write(), option)
    assert result.exit_code == 2 and "names its own places and has no page" in result.stderr


def test_a_real_storage_is_probed_into_a_record_and_reported_again(write, found, tmp_path):
    text = RAW[: RAW.index("  - {name")] + f"  - {{name: array, folder: {tmp_path}}}\n"
    result = run("run", write(text), "--out", str(tmp_path / "runs"), "--json")
    assert result.exit_code == 0, result.output
    said = json.loads(result.stdout)
    assert said["kind"] == "probe" and said["emulated"] is False
    assert [step["iops"] for step in said["runs"][0]["steps"]] == [100, 100]
    assert said["runs"][0]["saturation"][0]["knee"] == 1
    [runs] = (tmp_path / "runs").iterdir()
    again = run("report", str(runs))
    assert again.exit_code == 0 and "saturates at 1 outstanding" in again.stdout.replace("\n", " ")
    for command in ("compare", "plan"):
        refused = run(command, str(runs))
        assert refused.exit_code == 3 and "(probe) is no record of transactions" in refused.stderr.replace("\n", " ")
    assert not list(tmp_path.glob("stallmark-probe-*")), "its file is gone"


def test_without_a_compiler_an_emulated_one_says_so(write, found, tmp_path, monkeypatch):
    def none(build_dir):
        raise NoCompiler("An emulated array needs a C compiler and none is there; install one.")

    monkeypatch.setenv("STALLMARK_HOME", str(tmp_path / "home"))
    monkeypatch.setattr("stallmark.storage.emulator.arrays.interposer", none)
    result = run("run", write(), "--out", str(tmp_path / "runs"))
    assert result.exit_code == 3 and "needs a C compiler" in result.stderr


def test_a_probe_that_cannot_begin_is_told_by_the_record_before_it(found, write, tmp_path, monkeypatch):
    for name in ("first", "second"):
        (tmp_path / name).mkdir()
    monkeypatch.setenv("STALLMARK_HOME", str(tmp_path / "home"))
    variants = "".join(f"  - {{name: {name}, folder: {tmp_path / name}}}\n" for name in ("first", "second"))
    real = runner.make_probe_file

    def full(folder, size_bytes):
        if folder.name == "second":
            raise OSError(28, "No space left on device", str(folder))
        return real(folder, size_bytes)

    monkeypatch.setattr(runner, "make_probe_file", full)
    result = run("run", write(RAW.partition("  - ")[0] + variants), "--out", str(tmp_path / "runs"))
    assert result.exit_code == 3 and "No space left on device" in result.stderr
    [record] = find_records([tmp_path / "runs" / path.name for path in (tmp_path / "runs").iterdir()])
    said = {"before": "second", "said": f"{tmp_path / 'second'}: No space left on device"}
    assert facts_of(summarise_probes([record]).cautions, EndKind.EXPERIMENT) == [said]


def test_a_folder_is_probed(found, tmp_path):
    (tmp_path / "array").mkdir()
    result = run(
        "probe",
        str(tmp_path / "array"),
        "--size=32MiB",
        "--seconds=1",
        "--outstanding=1,8",
        "--out",
        str(tmp_path / "r"),
    )
    assert result.exit_code == 0, result.output
    assert len(found) == 4 * 2 + 4 * 2 and found[0].pattern.reads and not found[-1].pattern.reads
    assert not list((tmp_path / "array").iterdir()), "its file is gone"


def test_a_pattern_that_is_named_twice_is_measured_once(found, tmp_path):
    twice = ["--pattern=8k-random-read"] * 2
    result = run("probe", str(tmp_path), "--size=32MiB", "--outstanding=1", *twice, "--out", str(tmp_path / "r"))
    assert result.exit_code == 0 and len(found) == 1, result.output


def test_a_folder_that_is_not_there_is_none_on_the_storage_that_was_meant(found, tmp_path):
    result = run("probe", str(tmp_path / "aray"), "--out", str(tmp_path / "r"))
    assert result.exit_code == 3 and "name a folder on the storage to measure" in result.stderr.replace("\n", " ")
    assert not found and not any(tmp_path.iterdir())


def test_a_file_of_somebody_is_read_when_asked_for_and_never_written(found, tmp_path):
    mine = tmp_path / "mine"
    with mine.open("wb") as file:
        file.truncate(2**26)
    refused = run("probe", str(mine), "--out", str(tmp_path / "r"))
    assert refused.exit_code == 3 and "--i-know" in refused.stderr and not found
    assert run("probe", str(mine), "--i-know", "--size=1MiB", "--out", str(tmp_path / "r")).exit_code == 2 and not found
    write = run("probe", str(mine), "--i-know", "--pattern=8k-random-write", "--out", str(tmp_path / "r"))
    assert write.exit_code == 2 and "writes only to files that it made" in write.stderr.replace("\n", " ")
    assert run("probe", str(mine), "--i-know", "--seconds=1", "--out", str(tmp_path / "r")).exit_code == 0
    assert found and all(one.pattern.reads for one in found)
    assert mine.read_bytes() == bytes(2**26)


@pytest.mark.parametrize(
    ("option", "sentence"),
    [
        ("--size=much", "'much' is not a size: write it as 4GiB"),
        ("--size=1MiB", "too small to distinguish a device from its caches"),
        ("--outstanding=0", "write numbers from 1 to 256"),
        ("--outstanding=a,b", "write numbers from 1 to 256"),
        ("--pattern=8k", "'8k' is not a pattern of a probe"),
    ],
)
def test_a_wrong_command_line_is_a_sentence(found, tmp_path, option, sentence):
    result = run("probe", str(tmp_path), option, "--out", str(tmp_path / "r"))
    assert result.exit_code == 2 and sentence in " ".join(result.stderr.replace("│", " ").split())
    assert not found


def test_without_fio_nothing_is_begun(tmp_path, monkeypatch):
    monkeypatch.setenv("PATH", str(tmp_path))
    result = run("probe", str(tmp_path), "--out", str(tmp_path / "r"))
    assert result.exit_code == 3 and "needs fio, which is not on the PATH" in result.stderr
    assert not any(tmp_path.iterdir())
