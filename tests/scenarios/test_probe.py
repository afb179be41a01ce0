"""Scenarios about raw storage, and `stallmark probe`: what they may say, and what they refuse before any I/O."""

import json

import pytest
from click.testing import CliRunner
from hypothesis import given
from hypothesis import strategies as st
from pydantic import ValidationError
from support.findings import facts_of

from stallmark.analysis.finding import EndKind
from stallmark.cli.main import main
from stallmark.errors import StallmarkError
from stallmark.experiment.preflight import refuse_impossible_devices
from stallmark.probe import runner
from stallmark.probe.scenario import ProbeScenario
from stallmark.probe.summary import summarise_probes
from stallmark.record.manifest.storage import Asked, ProbeStep
from stallmark.record.reader import find_records
from stallmark.scenarios.load import MOST_AT_ONCE, RawLoad
from stallmark.scenarios.model import on_devices
from stallmark.scenarios.read import read_any_scenario, read_scenario
from stallmark.scenarios.storage import Array
from stallmark.storage import programs
from stallmark.storage.arrivals import MOST_PER_S
from stallmark.storage.emulator import ArrayModel, FlashCache, FlashTier, NoCompiler
from stallmark.storage.fio import NAMES, WEB, find_pattern, with_least_block
from stallmark.storage.probe_file import LEAST_BYTES

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
        (("[1, 4]", "[4, 1]"), r"outstanding: the numbers must rise: write \[1, 4\]"),
        (("probe:", "raw:"), "raw is called probe now: rename it"),
        (("probe:", "users: 4\nprobe:"), "users belongs to a database, and `probe` without `workload` asks storage"),
        (("emulated_array: {spindles: 4, read_ms: 5, write_ms: 5, sync_ms: 1, mb_per_s: 100}", "x: 1"), "unknown key"),
        (("variants:", "variants:\n  - {name: real, folder: /mnt}"), "some variants are emulated and others real"),
        (("variants:", "variants:\n  - {name: none}"), "must have either an emulated_array or a folder"),
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
    assert result.exit_code == 3 and "names its own places and has no page" in result.stderr


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
    assert result.exit_code in (2, 3) and sentence in " ".join(result.stderr.replace("│", " ").split())
    assert not found


def test_without_fio_nothing_is_begun(tmp_path, monkeypatch):
    monkeypatch.setenv("PATH", str(tmp_path))
    result = run("probe", str(tmp_path), "--out", str(tmp_path / "r"))
    assert result.exit_code == 3 and "needs fio, which is not on the PATH" in result.stderr
    assert not any(tmp_path.iterdir())


# Raw loads of a scenario: what may be asked for, and what is told otherwise


def refusal(**keys) -> str:
    with pytest.raises(ValidationError) as refused:
        RawLoad(**keys)
    return str(refused.value.errors()[0]["ctx"]["error"])


def test_a_scan_is_one_stream_of_large_blocks_as_fast_as_it_goes():
    plan = RawLoad(raw="scan").plan()
    assert (plan.pattern, plan.order, plan.operation) == ("256k-sequential-read", "sequential", "read")
    assert (plan.blocks, plan.outstanding, plan.size_bytes) == ({262_144: 1.0}, 1, 2**30)
    assert (plan.rate_iops, plan.rate_bytes, plan.folder) == (None, None, None)


def test_streams_are_the_outstanding_ios_of_a_scan():
    assert RawLoad(raw="scan", streams=4).plan().outstanding == 4
    assert RawLoad(raw="scan", outstanding=4).plan().outstanding == 4
    assert "write one of them" in refusal(raw="scan", outstanding=4, streams=4)
    assert "write outstanding" in refusal(raw="web", streams=4)


def test_a_rate_is_of_ios_or_of_bytes():
    arriving = RawLoad(raw="web", rate="200/s").plan()
    assert (arriving.rate_iops, arriving.rate_bytes, arriving.outstanding) == (200, None, MOST_AT_ONCE)
    flowing = RawLoad(raw="scan", rate="100 MB/s").plan()
    assert (flowing.rate_iops, flowing.rate_bytes, flowing.outstanding) == (None, 100_000_000, 1)


def test_a_rate_that_one_program_cannot_make_on_time_is_refused():
    assert RawLoad(raw="web", rate=f"{MOST_PER_S}/s").plan().rate_iops == MOST_PER_S
    assert "write several" in refusal(raw="web", rate=f"{MOST_PER_S + 1}/s")
    assert RawLoad(raw="scan", rate="9000 MB/s").plan().rate_bytes == 9e9


def test_ios_in_order_are_offered_the_same_rate_in_bytes():
    said = refusal(raw="scan", rate="200/s")
    assert RawLoad(raw="scan", rate=said.rpartition("rate: ")[2]).plan().rate_bytes == 200 * 262_144


@pytest.mark.parametrize(
    ("written", "meant"), [("skan", "scan"), ("8k-random-reads", "8k-random-read"), ("webb", "web")]
)
def test_an_unknown_pattern_is_told_the_nearest(written, meant):
    assert f"did you mean {meant}?" in refusal(raw=written)
    assert all(name in refusal(raw="?") for name in NAMES)


@pytest.mark.parametrize("rate", ["100", "/s", "0/s", "1.5/s", "-3/s", "nan/s", "200/second", "1 KB/s", "5 %/s", ""])
def test_no_rate_is_told_what_to_write(rate):
    assert "write" in refusal(raw="web", rate=rate)


def test_a_file_that_caches_hold_is_refused():
    with pytest.raises(ValidationError, match=str(LEAST_BYTES)):
        RawLoad(raw="web", size="1MiB")


@given(
    st.sampled_from(["web", "8k-random-write"]),
    st.none() | st.integers(1, MOST_PER_S).map("{}/s".format) | st.integers(1, 10**5).map("{} MB/s".format),
    st.integers(32, 10**6).map("{}MiB".format),
    st.none() | st.integers(1, 256),
)
def test_a_load_survives_being_written_and_read(raw, rate, size, outstanding):
    load = RawLoad(raw=raw, rate=rate, size=size, outstanding=outstanding)
    assert RawLoad(**load.model_dump(mode="json")) == load


def test_a_web_server_reads_all_shares():
    assert sum(WEB.blocks.values()) == pytest.approx(1) and min(WEB.blocks) == 512 and max(WEB.blocks) == 2**19


@given(st.sampled_from([512, 1024, 4096, 8192]))
def test_sizes_below_a_sector_are_rounded_up_to_it(sector):
    rounded = with_least_block(WEB.blocks, sector)
    assert min(rounded) == sector and sum(rounded.values()) == pytest.approx(1)
    assert rounded[sector] == pytest.approx(sum(share for size, share in WEB.blocks.items() if size <= sector))
    assert all(rounded[size] == share for size, share in WEB.blocks.items() if size > sector)


def test_an_alias_is_the_pattern():
    assert find_pattern("scan") is find_pattern("256k-sequential-read")


# Arrays in a scenario, emulated or real, and what it may not mix


MIB = 1 << 20
CACHED = "{spindles: 2, rpm: 10000, seek_ms: 4, sync_ms: 1, mb_per_s: 100, cache: {size: 25 %, channels: 4}}"
TIERED = "{spindles: 2, read_ms: 1, write_ms: 1, sync_ms: 1, mb_per_s: 100, tier: {size: 64MiB, cycle: 2s, move: 5 %}}"
REAL = ("emulated_array=null", "variants=[{name: HDD}, {name: cached, array: {flash_cache: 800GB, firmware: '2.10'}}]")


def test_an_array_is_described_with_its_sizes_in_bytes(read):
    scenario = read(sets=(*REAL, "array={raid: RAID 10, dram: 8GiB, write_cache: true, shelf: 2}"))
    hdd, cached = (scenario.array_of(variant).in_bytes() for variant in scenario.variants)
    assert hdd == {"raid": "RAID 10", "dram_bytes": 8 * 1024 * MIB, "write_cache": "on", "shelf": "2"}
    assert cached == hdd | {"flash_cache_bytes": 800 * 10**9, "firmware": "2.10"}


def test_flash_is_a_share_of_the_data(read):
    [slow, _] = (scenario := read(sets=(f"emulated_array.data={CACHED}", f"emulated_array.wal={TIERED}"))).variants
    assert scenario.emulates(slow) and scenario.emulated_arrays_of(slow, 1000 * MIB) == {
        "data": ArrayModel(2, None, None, 1, 100, 10000, 4, cache=FlashCache(250 * MIB, channels=4)),
        "wal": ArrayModel(2, 1, 1, 1, 100, tier=FlashTier(64 * MIB, cycle_s=2, move=50 * MIB)),
    }


def test_a_share_that_is_no_size_a_device_can_have_is_refused_once_the_data_are_known(read):
    scenario = read(sets=(f"emulated_array.data={CACHED}",))
    refuse_impossible_devices(scenario, 1000 * MIB)
    with pytest.raises(StallmarkError, match="Variant 'slow': The emulated array is not possible with this database: "):
        refuse_impossible_devices(scenario, 1000 * 1024**3)


def test_a_variant_overrides_what_is_common():
    common, own = Array(raid="RAID 10", dram="8GiB"), Array(raid="RAID 5")
    assert own.completed_by(common).in_bytes() == {"raid": "RAID 5", "dram_bytes": 8 * 1024 * MIB}
    assert own.completed_by(None) == own


# A scenario on devices named on the command line, and what cannot be placed


OLD, NEW = "old=/mnt/old/db", "new=/mnt/new/db,/mnt/log"


def test_one_variant_becomes_one_for_each_device():
    scenario = read_scenario("user-ramp")
    placed = on_devices(scenario, [OLD, NEW])
    assert [(one.name, one.place.data, one.place.log) for one in placed.variants] == [
        ("old", "/mnt/old/db", None),
        ("new", "/mnt/new/db", "/mnt/log"),
    ]
    given = scenario.model_dump() | {"variants": None}
    assert placed.model_dump() | {"variants": None} == given
    [bare] = scenario.variants
    assert [one.model_copy(update={"name": bare.name, "place": None}) for one in placed.variants] == [bare, bare]


def test_several_variants_run_on_each_device_as_they_were():
    scenario = read_scenario("buffer-pool")
    placed = on_devices(scenario, [NEW, OLD])
    names = [variant.name for variant in scenario.variants]
    assert [one.name for one in placed.variants] == [f"{device}, {name}" for device in ("new", "old") for name in names]
    assert [placed.pool_of(one) for one in placed.variants] == 2 * [scenario.pool_of(one) for one in scenario.variants]


@pytest.mark.parametrize("device", ["/mnt/old", "old=", "=/mnt/old", "old=,/mnt/log", ""])
def test_a_device_that_is_written_otherwise_is_refused_with_how(device):
    with pytest.raises(StallmarkError, match=r"^--device .*NAME=FOLDER"):
        on_devices(read_scenario("user-ramp"), [device])


@pytest.mark.parametrize(
    ("sets", "devices", "named"),
    [
        ((), [OLD, OLD], "old"),
        (("reset=continue",), [OLD, NEW], "place"),
        (("precondition={size: 1GiB}",), [OLD, NEW], "precondition"),
        (("probe={folder: /mnt/old}",), [OLD, NEW], "probe.folder"),
        ((), [f"{'x' * 61}=/mnt/old"], "60"),
    ],
)
def test_what_cannot_be_placed_is_one_sentence(sets, devices, named):
    with pytest.raises(StallmarkError, match=rf"^--device: .*{named}.*\.$"):
        on_devices(read_scenario("user-ramp", sets), devices)
