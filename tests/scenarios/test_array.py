"""Arrays in a scenario, emulated or real, and what it may not mix."""

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
    assert own.over(common).described() == {"raid": "RAID 5", "dram_bytes": 8 * 1024 * MIB}
    assert own.over(None) == own
