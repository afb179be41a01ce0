"""The emulated array's model on a virtual clock: exact times, its laws, and an independent simulation of the same."""

from __future__ import annotations

import itertools
import random
import sys
import time
from collections.abc import Callable
from dataclasses import replace
from functools import partial
from pathlib import Path
from statistics import fmean

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from support.array_model import READ, SYNC, WRITE, Array, library
from support.array_oracle import Oracle

from stallmark.storage.emulator import ArrayModel, FlashCache, FlashTier, layout
from stallmark.storage.emulator.arrays import empty_flash, engage, exchange
from stallmark.storage.emulator.layout import WINDOW_S, next_interval

pytestmark = pytest.mark.skipif(not sys.platform.startswith("linux"), reason="the array is emulated on Linux only")

MIB = 1 << 20
KIB = 1 << 10
FIXED = ArrayModel(spindles=4, read_ms=6, write_ms=7, sync_ms=2, mb_per_s=100)
DISKS = ArrayModel(spindles=4, rpm=10_000, seek_ms=4, sync_ms=0, mb_per_s=100)
FLASH_READ = 0.0005 + 8192 / 400e6


@pytest.fixture(scope="session")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("model")


@pytest.fixture
def array(folder: Path) -> Callable[[ArrayModel], Array]:
    return lambda model: Array(model, folder)


def test_python_and_c_agree_on_the_layout(folder: Path) -> None:
    import ctypes

    assert library(folder).device_bytes() == ctypes.sizeof(layout.EmulatedDevice)


# ---- Disks -------------------------------------------------------------------------------------------------


def test_a_disk_at_one_outstanding_io_takes_seek_half_a_turn_and_transfer(array) -> None:
    disks = array(DISKS)
    chance = random.Random(1)
    served = disks.closed(1, 20_000, lambda: (READ, chance.randrange(16 * 1024) * MIB, 8192))
    expected = 0.004 + 0.5 * 60 / 10_000 + 8192 / 100e6
    assert fmean(io.latency for io in served) == pytest.approx(expected, rel=0.01)
    longest = 0.004 * 1.7 + 60 / 10_000 + 8192 / 100e6
    assert max(io.latency for io in served) <= longest


def test_a_disk_waits_for_the_angle_of_the_place(array) -> None:
    # The same place again, after a read elsewhere in its stripe: no seek, and a turn's worth apart each time.
    disks = array(replace(DISKS, spindles=1))
    turn = 60 / 10_000
    first = disks.io(READ, 0).done
    disks.io(READ, 512 * KIB, at=1)
    again = disks.io(READ, 0, at=2).done
    assert (again - first) / turn == pytest.approx(round((again - first) / turn), abs=1e-4)
    assert disks.io(READ, 8192, at=3).latency == pytest.approx(8192 / 100e6)  # goes on where it stopped


def test_a_sequential_reader_gets_the_bandwidth(array) -> None:
    disks, now = array(replace(DISKS, spindles=1)), 0.0
    start = disks.io(READ, 0, 256 * KIB).done
    for offset in range(256 * KIB, 64 * MIB, 256 * KIB):
        now = disks.io(READ, offset, 256 * KIB, at=max(now, start)).done
    assert (64 * MIB - 256 * KIB) / (now - start) == pytest.approx(100e6, rel=1e-6)


# ---- Cache -------------------------------------------------------------------------------------------------


def test_a_miss_fills_the_cache_and_the_next_read_is_a_hit(array) -> None:
    cached = array(replace(FIXED, cache=FlashCache(MIB)))
    miss, hit = cached.io(READ, 0), cached.io(READ, 0, at=1)
    assert miss.latency == pytest.approx(0.006 + 8192 / 100e6) and not miss.by_flash
    assert hit.latency == pytest.approx(FLASH_READ) and hit.by_flash
    write = cached.io(WRITE, 0, at=2)
    assert write.latency == pytest.approx(0.007 + 8192 / 100e6)  # write-through
    assert cached.io(READ, 0, at=3).by_flash  # and kept
    sync = cached.io(SYNC, 0, 0, at=4)
    assert sync.latency == pytest.approx(0.002)
    flash = cached.counters.flash
    assert (flash.hits, flash.misses, flash.evictions, flash.used_bytes) == (2, 1, 0, 8192)
    assert (flash.reads, flash.writes) == (2, 2)  # filled once, written through once
    assert (cached.counters.spindle_reads, cached.counters.spindle_writes) == (1, 1)


def test_nobody_waits_for_the_filling_but_those_behind_it(array) -> None:
    flash = FlashCache(MIB, write_ms=3, channels=1)
    cached = array(replace(FIXED, cache=flash))
    cached.io(READ, 0)
    assert cached.io(READ, 64 * MIB, at=1).latency == pytest.approx(0.006 + 8192 / 100e6)
    assert cached.io(READ, 0, at=1).latency == pytest.approx(0.003 + 8192 / 400e6 + FLASH_READ)


def test_a_partial_hit_is_a_miss_and_a_stream_goes_past(array) -> None:
    cached = array(replace(FIXED, cache=FlashCache(MIB)))
    cached.io(READ, 8192)
    assert not cached.io(READ, 0, 16 * KIB, at=1).by_flash
    assert cached.io(READ, 0, 16 * KIB, at=2).by_flash
    before = cached.counters.flash
    assert not cached.io(READ, 0, 128 * KIB, at=3).by_flash
    assert not cached.io(READ, 0, 128 * KIB, at=4).by_flash
    assert cached.counters.flash == before


@given(blocks=st.lists(st.integers(0, 1000), min_size=1, max_size=400))
def test_a_cache_never_holds_more_than_its_size_nor_invents_a_hit(blocks: list[int], folder: Path) -> None:
    cached = Array(replace(FIXED, cache=FlashCache(MIB)), folder)
    seen: set[int] = set()
    for number, block in enumerate(blocks):
        assert not cached.io(READ, block * 8192, at=number).by_flash or block in seen
        seen.add(block)
    flash = cached.counters.flash
    assert flash.hits + flash.misses == len(blocks)
    assert flash.used_bytes == (flash.misses - flash.evictions) * 8192 <= MIB


def test_what_is_on_flash_stays_until_it_is_emptied(array) -> None:
    model = replace(FIXED, cache=FlashCache(MIB))
    cached = array(model)
    cached.io(READ, 0)
    engage(cached.device, None)
    assert cached.io(READ, 0, at=1).latency == 0  # the bare device
    engage(cached.device, model)
    assert cached.io(READ, 0, at=2).by_flash
    empty_flash(cached.device)
    assert cached.counters.flash.used_bytes == 0
    assert not cached.io(READ, 0, at=3).by_flash
    assert cached.counters.flash.evictions == 0


# ---- Tier --------------------------------------------------------------------------------------------------


def test_the_hottest_extents_move_up_at_the_end_of_a_cycle(array) -> None:
    tiered = array(replace(FIXED, tier=FlashTier(MIB, cycle_s=1, move=2 * 64 * KIB)))
    tiered.io(READ, 0)
    for number, extent in enumerate([1, 2, 2, 3, 3, 3]):
        assert not tiered.io(READ, extent * 64 * KIB, at=number / 10).by_flash
    assert tiered.io(READ, 3 * 64 * KIB, at=1.5).by_flash  # whoever comes first makes them migrate
    assert tiered.io(WRITE, 2 * 64 * KIB, at=1.6).by_flash
    assert not tiered.io(READ, 64 * KIB, at=1.7).by_flash
    flash = tiered.counters.flash
    assert (flash.bytes_up, flash.bytes_down, flash.used_bytes) == (2 * 64 * KIB, 0, 2 * 64 * KIB)
    assert tiered.counters.spindle_reads == 8 + 2  # ours below, and two extents read to move them
    assert flash.writes == 2 + 1


def test_a_full_tier_exchanges_the_coldest_only_for_something_much_hotter(array) -> None:
    size, extent = MIB, 64 * KIB
    tiered = array(replace(FIXED, tier=FlashTier(size, cycle_s=1, move=size)))
    for number in range(16):
        for _ in range(4):
            tiered.io(READ, number * extent)
    tiered.io(READ, 0, at=1.1)
    assert tiered.counters.flash.used_bytes == size
    for _ in range(4):  # on flash is 3 + 0 or 1, this has 4, and that is not half as much again
        tiered.io(READ, 20 * extent, at=1.2)
    assert not tiered.io(READ, 20 * extent, at=2.2).by_flash
    for _ in range(6):
        tiered.io(READ, 20 * extent, at=2.3)
    assert tiered.io(READ, 20 * extent, at=3.3).by_flash
    flash = tiered.counters.flash
    assert (flash.bytes_down, flash.used_bytes) == (extent, size)


def test_a_long_pause_is_one_cycle(array) -> None:
    tiered = array(replace(FIXED, tier=FlashTier(MIB, cycle_s=1, move=64 * KIB)))
    for extent in range(5):
        tiered.io(READ, extent * 64 * KIB)
    tiered.io(READ, 0, at=100)
    assert tiered.counters.flash.bytes_up == 64 * KIB


def test_arrays_may_be_exchanged_and_taken_away_under_streams_of_io(array) -> None:
    # A division by a number that has just become 0 would end this process.
    device, ios = array(FIXED), 1_500_000
    caches = [replace(FIXED, cache=FlashCache(size)) for size in (MIB, 32 * MIB)]
    tier = replace(FIXED, tier=FlashTier(MIB, cycle_s=0.01))
    streams = device.streams(ios)
    while any(stream.is_alive() for stream in streams):
        for model in (tier, *caches, FIXED, DISKS, tier):
            exchange(device.device, model)
            until = device.counters.reads + 20  # however busy this machine is, every model meets some I/O
            while device.counters.reads < until and any(stream.is_alive() for stream in streams):
                time.sleep(0)
        engage(device.device, None)
    done = device.counters
    assert (done.reads, done.syncs) == (2 * ios // 3, 2 * ios // 3)
    assert done.spindle_reads > 0 and device.device.flash.misses > 0


def test_a_cache_is_as_full_as_it_has_blocks_also_when_it_is_exchanged(array) -> None:
    device = array(FIXED)
    streams = device.streams(300_000)
    while any(stream.is_alive() for stream in streams):
        for size in (MIB, 2 * MIB):
            exchange(device.device, replace(FIXED, cache=FlashCache(size)))
    device.stream(1)
    assert device.counters.flash.used_bytes == len(device.cached_blocks()) * 8192 > 0


def test_of_two_who_miss_a_block_at_once_one_fills_the_cache(array) -> None:
    device, ios = array(replace(FIXED, cache=FlashCache(256 * MIB))), 5_000
    device.pair(ios)
    blocks = device.cached_blocks()
    assert len(blocks) == len(set(blocks)) == ios
    assert device.counters.flash.used_bytes == ios * 8192


# ---- Active set --------------------------------------------------------------------------------------------


@given(
    st.lists(st.lists(st.tuples(st.integers(0, 3), st.integers(0, 64), st.integers(1, 40)), max_size=40), max_size=5)
)
def test_the_active_set_is_the_number_of_different_extents(folder: Path, intervals) -> None:
    array, everything = Array(FIXED, folder), set()
    for ios in intervals:
        touched = set()
        for file, start, blocks in ios:
            array.io(READ, start * 8192, blocks * 8192, file=file)
            last = (start + blocks - 1) * 8192 // (64 * KIB)
            touched |= {(file, extent) for extent in range(start * 8192 // (64 * KIB), last + 1)}
        everything |= touched
        active = next_interval(array.device.active, 0)
        assert (active.interval, active.run) == (len(touched), len(everything))


def in_one_bucket(extents: int) -> list[int]:
    """Extents of file 1 that share a bucket of the table (state.h's hash)."""
    with np.errstate(over="ignore"):
        x = np.uint64(0x9E3779B97F4A7C15) + np.arange(1 << 22, dtype=np.uint64)
        x = (x ^ (x >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
        x = (x ^ (x >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    bucket = (x ^ (x >> np.uint64(31))) & np.uint64(0xFFFFFFFF)
    return [int(extent) for extent in np.flatnonzero(bucket % np.uint64(1 << 16) == 0)[:extents]]


def test_of_extents_that_find_no_room_none_is_counted_twice(array) -> None:
    device, extents = array(FIXED), in_one_bucket(40)
    assert len(extents) == 40
    for interval in range(3):
        for extent in extents:
            device.io(READ, extent * 64 * KIB, at=interval)
        active = next_interval(device.device.active, interval)
        assert (active.interval, active.run) == (layout.WAYS, layout.WAYS)


def test_the_active_set_of_a_minute_is_that_of_the_last_full_one(array) -> None:
    device = array(FIXED)
    start = device.device.active.window_start / 1e9
    device.io(READ, 0, MIB)
    assert next_interval(device.device.active, start + 1).window is None
    device.io(WRITE, 0, 2 * MIB)
    device.io(SYNC, 8 * MIB, 0)
    assert next_interval(device.device.active, start + WINDOW_S).window == 32
    device.io(READ, 0)
    assert next_interval(device.device.active, start + 1.5 * WINDOW_S).window == 32
    assert next_interval(device.device.active, start + 2 * WINDOW_S).window == 1
    engage(device.device, FIXED)
    assert next_interval(device.device.active, start + 3 * WINDOW_S).run == 0


# ---- Against the oracle ------------------------------------------------------------------------------------

BLOCKS, STEP = 8192, 64 * KIB  # over 512 stripes: their random places average out
FLASH = {
    "miss": FlashCache(MIB),
    "hit": FlashCache(256 * MIB),
    "mixed": FlashCache(32 * MIB),
    "cache": FlashCache(64 * MIB),
    "tier": FlashTier(128 * MIB, cycle_s=0.5),
}


Draw = Callable[[], tuple[int, int, int]]


def skewed(seed: int) -> Draw:
    """Of everything: four of five I/Os go to a fifth of the data, which lies together in pieces of 1 MiB."""
    chance = random.Random(seed)
    megabytes = list(range(BLOCKS * STEP // MIB))
    random.Random(7).shuffle(megabytes)
    hot = len(megabytes) // 5
    kinds = {(READ, 8192): 65, (READ, 32 * KIB): 5, (READ, 128 * KIB): 5, (WRITE, 8192): 20, (SYNC, 0): 5}

    def draw() -> tuple[int, int, int]:
        [(operation, size)] = chance.choices(list(kinds), kinds.values())
        part = megabytes[:hot] if chance.random() < 0.8 else megabytes[hot:]
        return operation, chance.choice(part) * MIB + chance.randrange(112) * 8192, size

    return draw


def uniform(seed: int) -> Draw:
    chance = random.Random(seed)
    return lambda: (READ, chance.randrange(BLOCKS) * STEP, 8192)


def around() -> Draw:
    blocks = itertools.cycle(range(BLOCKS))
    return lambda: (READ, next(blocks) * STEP, 8192)


DRAWS = {"hit": around, "cache": partial(skewed, 1), "tier": partial(skewed, 1)}


@pytest.mark.parametrize("outstanding", [1, 4, 32])
@pytest.mark.parametrize("kind", FLASH)
def test_latency_is_that_of_an_independent_simulation(array, kind: str, outstanding: int) -> None:
    flash = FLASH[kind]
    model = replace(DISKS, spindles=6, **{"tier" if kind == "tier" else "cache": flash})
    warm, measured = (12_000, 4_000) if kind != "miss" else (500, 3_000)
    ours, truth = array(model), Oracle(model, seed=outstanding)
    # Both are asked for the same: what chance does differently is where the data lie on the disks.
    draw = DRAWS.get(kind, partial(uniform, 1))
    served = ours.closed(outstanding, warm + measured, draw())[warm:]
    truth.closed(outstanding, warm + measured, draw())
    expected = truth.latencies[warm:]
    assert fmean(io.by_flash for io in served) == pytest.approx(fmean(truth.by_flash[warm:]), abs=0.03)
    assert fmean(io.latency for io in served) == pytest.approx(fmean(expected), rel=0.06)
