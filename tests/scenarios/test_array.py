"""What a scenario says of an array, emulated or real, and what it may not mix."""

import pytest

from stallmark.errors import StallmarkError
from stallmark.experiment.preflight import refuse_impossible_devices
from stallmark.scenarios.array import Array
from stallmark.storage.emulator import ArrayModel, FlashCache, FlashTier

MIB = 1 << 20
CACHED = "{spindles: 2, rpm: 10000, seek_ms: 4, sync_ms: 1, mb_per_s: 100, cache: {size: 25 %, channels: 4}}"
TIERED = "{spindles: 2, read_ms: 1, write_ms: 1, sync_ms: 1, mb_per_s: 100, tier: {size: 64MiB, cycle: 2s, move: 5 %}}"
REAL = ("emulated_array=null", "variants=[{name: HDD}, {name: cached, array: {flash_cache: 800GB, firmware: '2.10'}}]")


def test_an_array_is_described_with_its_sizes_in_bytes(read):
    scenario = read(sets=(*REAL, "array={raid: RAID 10, dram: 8GiB, write_cache: true, shelf: 2}"))
    hdd, cached = (scenario.array_of(variant).described() for variant in scenario.variants)
    assert hdd == {"raid": "RAID 10", "dram_bytes": 8 * 1024 * MIB, "write_cache": "on", "shelf": "2"}
    assert cached == hdd | {"flash_cache_bytes": 800 * 10**9, "firmware": "2.10"}


def test_what_an_array_is_survives_its_own_record(read):
    scenario = read(sets=(*REAL, "array={dram: 8GiB, shelf: 2}"))
    assert type(scenario).model_validate(scenario.model_dump(mode="json")) == scenario


@pytest.mark.parametrize(
    ("array", "sentence"),
    [
        ("{dram: 25 %}", "25 % is a share, and of what is not known here"),
        ("{dram: much}", "'much' is no size"),
        ("{firmware: 2.10}", "it is read as the number 2.1: put it in quotes"),
        ("{admin_password: x}", "admin_password would be in every record and report: remove it"),
    ],
)
def test_what_an_array_cannot_be(read, array, sentence):
    with pytest.raises(StallmarkError, match=sentence):
        read(sets=("emulated_array=null", f"array={array}"))


@pytest.mark.parametrize(
    ("sets", "key"),
    [
        (("array={raid: RAID 10}",), "array"),
        (("variants.0.before={ask: Ready?}",), "before"),
        (("precondition={size: 1GiB}",), "precondition"),
        (("probe={folder: /mnt/array}",), "probe.folder"),
    ],
)
def test_what_is_of_a_real_array_does_not_go_with_an_emulated_one(read, sets, key):
    with pytest.raises(StallmarkError, match=rf"'slow' runs on an emulated array.*, and `{key}` is of a real"):
        read(sets=sets)


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


@pytest.mark.parametrize(
    ("emulated", "sentence"),
    [
        ("{spindles: 2, sync_ms: 1, mb_per_s: 100, cache: {size: 25 %}}", "read_ms"),
        (CACHED.replace("size", "sise"), "unknown key emulated_array.data.cache.sise: did you mean size?"),
        (CACHED.replace("25 %", "25"), "25 has no unit: write 25MiB or 25 %"),
    ],
)
def test_what_a_device_cannot_be(read, emulated, sentence):
    with pytest.raises(StallmarkError, match=sentence.replace("?", r"\?")):
        read(sets=(f"emulated_array.data={emulated}",))


def test_a_variant_overrides_what_is_common():
    common, own = Array(raid="RAID 10", dram="8GiB"), Array(raid="RAID 5")
    assert own.over(common).described() == {"raid": "RAID 5", "dram_bytes": 8 * 1024 * MIB}
    assert own.over(None) == own
