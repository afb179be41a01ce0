"""How much was active, what of it could have held it, and what flash did."""

import numpy as np
import pytest
from support.findings import facts_of
from support.flash_records import EXTENT, FLASH_MS, REAL, on_array, with_flash
from support.manifests import changed, on
from support.synthetic import BLOCK, MIB, Truth, make_run
from support.synthetic_steps import only_step

from stallmark.analysis.environment_cautions import ArrayKind
from stallmark.analysis.experiment import summarise
from stallmark.analysis.finding import ExperimentKind
from stallmark.analysis.read.times import ReadKind
from stallmark.analysis.run import summarise_run
from stallmark.record.reader import Record, find_records

pytestmark = pytest.mark.thorough


def test_what_an_emulated_device_counted(tmp_path):
    step = only_step(with_flash(make_run(tmp_path / "run", Truth(read_ms=8)), hit_share=0.5, active_extents=2000))
    active, flash = step.storage.active, step.storage.flash
    assert active and active.counted_bytes == pytest.approx(2000 * EXTENT, rel=0.1)
    assert (active.minute_bytes, active.at_most_bytes) == (1000 * EXTENT, None)
    assert flash and flash.share == pytest.approx(0.5, abs=0.01)
    assert flash.read_ms == pytest.approx(FLASH_MS)
    # The mean of all is that of both, by their share.
    assert step.storage.data_device and step.storage.data_device.read_ms == pytest.approx(
        flash.share * flash.read_ms + (1 - flash.share) * flash.spindle_read_ms
    )
    assert flash.evictions_per_s == pytest.approx(100, rel=0.01) and flash.up_bytes is None
    assert flash.used_bytes == 32 * MIB and not active.warnings
    assert step.device.name == "8 spindles, 8 ms + 64\u00a0MiB flash cache"


def test_what_may_be_too_much_to_be_counted_is_a_bound(tmp_path):
    folder = with_flash(make_run(tmp_path / "run", Truth(database_bytes=40 << 30)), active_extents=(33 << 30) // EXTENT)
    run = summarise_run(Record(folder), "run1")
    active = run.steps[0].storage.active
    assert active and active.counted_bytes is None and 0 < active.at_most_bytes <= 40 << 30
    assert active.minute_bytes == pytest.approx(16.5 * (1 << 30), rel=0.01)  # which is known
    assert np.nanmax(run.series.line("active_bytes")) < 33 << 30


def test_a_tier_moves_what_a_cache_evicts(tmp_path):
    step = only_step(with_flash(make_run(tmp_path / "run", Truth(measured_s=30)), kind="tier"))
    flash = step.storage.flash
    assert flash and flash.evictions_per_s is None
    assert flash.up_bytes == pytest.approx(30 * MIB, rel=0.1) and flash.down_bytes == pytest.approx(15 * MIB, rel=0.1)


def test_what_flash_answered_is_a_line_over_time(tmp_path):
    run = summarise_run(Record(with_flash(make_run(tmp_path / "run", Truth()), hit_share=0.25)), "run1")
    line = run.series.line("flash_share")
    assert line[10:-2] == pytest.approx(0.25, abs=0.02)
    plain = summarise_run(Record(make_run(tmp_path / "plain", Truth())), "run1")
    assert plain.series.flash_share is None and len(plain.series.line("flash_share")) == len(plain.series.second)


def test_it_grows_over_the_run_and_is_known_from_the_first_sample_on(tmp_path):
    run = summarise_run(Record(with_flash(make_run(tmp_path / "run", Truth()), active_extents=500)), "run1")
    line = run.series.line("active_bytes")
    known = line[~np.isnan(line)]
    assert (np.diff(known) >= 0).all() and known[-1] == pytest.approx(500 * EXTENT, rel=0.05)
    minute = run.series.line("active_minute_bytes")
    assert np.isnan(minute[:18]).all() and (minute[21:] == 250 * EXTENT).all()


def test_of_a_real_array_the_line_is_the_bound(tmp_path):
    folder = make_run(tmp_path / "run", Truth(database_bytes=20 * MIB, **REAL))
    run = summarise_run(Record(folder), "run1")
    line = run.series.line("active_bytes")
    assert (np.diff(line) >= 0).all() and line[-1] == run.steps[0].storage.active.at_most_bytes == 20 * MIB
    assert run.series.active_minute_bytes is None


@pytest.mark.parametrize(("later", "warming"), [(0.5, False), (0.51, False), (0.7, True), (0.3, False)])
def test_flash_that_answers_ever_more_is_still_warming_up(tmp_path, later, warming):
    """Halves of the measured interval, whose shares differ."""
    with_flash(make_run(tmp_path / "1", Truth(variant="cached", sequence=1)), hit_share=0.5, later_share=later)
    make_run(tmp_path / "2", Truth(variant="disks", sequence=2))
    found = summarise(find_records([tmp_path]))
    [use] = [step.storage.flash for step in found.steps if step.storage.flash]
    assert use.first_half == pytest.approx(0.5, abs=0.01)
    assert use.second_half == pytest.approx(later, abs=0.01) and use.warming is warming
    [told] = facts_of(found.findings, ExperimentKind.FLASH)
    assert told["halves_share"] == ([use.first_half, use.second_half] if warming else None)
    assert facts_of(found.cautions, ArrayKind.FLASH_WARMING) == ([{"steps": ["cached"]}] if warming else [])


def test_of_a_real_array_a_bound_is_known_and_it_is_called_one(tmp_path):
    truth = Truth(tps=50, reads_per_transaction=2, database_bytes=10_000 * MIB, **REAL)
    step = only_step(on_array(make_run(tmp_path / "run", truth), dram_bytes=64 * MIB))
    active = step.storage.active
    assert active and active.counted_bytes is None and step.storage.flash is None
    # 50 × 2 reads of 8 KiB for the 35 s of the run, and some writes.
    moved = 35 * 50 * 2 * BLOCK
    assert active.at_most_bytes == pytest.approx(moved, rel=0.25) and active.at_most_bytes > 0.9 * moved
    [warning] = active.warnings
    assert warning.kind == ReadKind.ACTIVE_FITS_DRAM and warning.facts["at_most"]


def test_no_more_than_the_database_is_active(tmp_path):
    truth = Truth(database_bytes=20 * MIB, pool_bytes=8 * MIB, **REAL)
    active = only_step(on_array(make_run(tmp_path / "run", truth), flash_cache_bytes=64 * MIB)).storage.active
    assert active and active.at_most_bytes == 20 * MIB
    assert [one.kind for one in active.warnings] == [ReadKind.ACTIVE_FITS_FLASH]


def test_without_an_array_described_nobody_is_warned(tmp_path):
    active = only_step(make_run(tmp_path / "run", Truth(**REAL))).storage.active
    assert active and not active.warnings


def test_what_fits_is_a_caution_of_the_variants_it_is_true_of(tmp_path):
    with_flash(make_run(tmp_path / "1", Truth(variant="small", sequence=1)), active_extents=500)
    with_flash(make_run(tmp_path / "2", Truth(variant="large", sequence=2)), active_extents=5000)
    [told] = facts_of(summarise(find_records([tmp_path])).cautions, ArrayKind.ACTIVE)
    assert told["steps"] == ["small"]


def test_a_lab_s_block_device_is_as_emulated_as_any(tmp_path):
    """Its counters are the kernel's: time with anything under way, which spindles do not divide."""
    tier = {"size": 64 * MIB, "read_ms": 0.5, "write_ms": 0.5, "mb_per_s": 400, "channels": 8}
    array = {"block_device": True, "name": "array", "spindles": 4, "rpm": 10000, "tier": tier}
    device = {"name": "loop0", "emulated_array": array}
    folder = changed(make_run(tmp_path / "run", Truth(**REAL)), devices=on(device, {}))
    step = only_step(folder)
    assert step.emulated and step.device.name == "4 spindles, 10,000 rpm + 64\u00a0MiB flash tier"
    assert step.storage.flash is None and step.storage.active and step.storage.active.flash_bytes == 64 * MIB


def test_what_flash_took_off_the_disks_is_a_finding(tmp_path):
    with_flash(make_run(tmp_path / "1", Truth(variant="cached", read_ms=8)), hit_share=0.5)
    make_run(tmp_path / "2", Truth(variant="disks", sequence=2))
    [told] = facts_of(summarise(find_records([tmp_path])).findings, ExperimentKind.FLASH)
    assert (told["step"], told["flash"]) == ("cached", "cache") and told["share"] == pytest.approx(0.5, abs=0.01)
    assert told["read_ms"] == pytest.approx(0.5, abs=0.01) and told["spindle_read_ms"] > 5
