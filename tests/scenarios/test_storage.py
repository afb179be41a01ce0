"""The storage of a scenario: raw loads, arrays emulated or real, and devices named on the command line."""

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import ValidationError

from stallmark.errors import StallmarkError
from stallmark.experiment.preflight import refuse_impossible_devices
from stallmark.scenarios.load import MOST_AT_ONCE, RawLoad
from stallmark.scenarios.model import on_devices
from stallmark.scenarios.read import read_scenario
from stallmark.scenarios.storage import Array
from stallmark.storage.arrivals import MOST_PER_S
from stallmark.storage.emulator import ArrayModel, FlashCache, FlashTier
from stallmark.storage.fio import NAMES, WEB, find_pattern, with_least_block
from stallmark.storage.probe_file import LEAST_BYTES

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
