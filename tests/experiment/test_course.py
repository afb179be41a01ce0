"""The course of an experiment with a curve: sizes chosen from records, the same ones after a kill, repeats of each."""

from pathlib import Path

import pytest
from support.memory_curves import Curve, cliff, flat, rate
from support.synthetic import Truth, make_run

from stallmark.errors import StallmarkError
from stallmark.experiment.course import Course, order_of
from stallmark.experiment.estimate import estimate
from stallmark.record.manifest_file import read_manifest, write_manifest
from stallmark.record.reader import Record
from stallmark.scenarios.model import AnyScenario
from stallmark.scenarios.read import read_scenario
from stallmark.stats.curve_search import MIB

DATA = 500 * MIB
KNEE = cliff(100 * MIB)
CURVE = "buffer_pool={curve: auto, from: 4 %, to: 100 %, sizes: 6, tolerance: 10 %}"
FLASH = "variants=[{name: disks}, {name: flash, buffer_pool: 20 %}]"


def a_scenario(*sets: str) -> AnyScenario:
    return read_scenario("memory-curve", [CURVE, *sets])


def made(
    scenario: AnyScenario, folder: Path, reads: Curve = KNEE, *, kill_after: int = 99, begun: bool = False
) -> dict[int, Record]:
    """Make the runs of a course that records of `folder` lack, up to a kill; return all, by number."""
    records = {read_manifest(path.parent).sequence: Record(path.parent) for path in folder.glob("*/manifest.json")}
    assert bool(records) == begun
    course = Course(scenario, scenario.curve.asked(DATA), records)
    for turn in course:
        if len(records) >= kill_after:
            break
        pool = turn.planned.variant.buffer_pool.resolve(DATA)
        truth = Truth(
            variant=turn.planned.variant.name, repeat=turn.planned.repeat, sequence=turn.number, pool_bytes=pool,
            tps=rate(reads)(pool), reads_per_transaction=reads(pool), measured_s=6, warm_up_s=2,
        )  # fmt: skip
        record = make_run(folder / f"{turn.number:02d}", truth)
        of_run = read_manifest(record)
        write_manifest(record, of_run.changed(memory=of_run.memory.changed(chosen=turn.chosen)))
        course.add(turn.number, record)
        records[turn.number] = Record(record)
    return {number: Record(record.folder) for number, record in records.items()}


def sizes(records: dict[int, Record]) -> list[int]:
    return [records[number].manifest.memory.configured_bytes // MIB for number in sorted(records)]


def test_sizes_are_chosen_one_after_the_other_and_the_record_says_why(tmp_path):
    records = made(a_scenario(), tmp_path)
    chosen = [record.manifest.memory.chosen for record in records.values()]
    assert [one.why for one in chosen[:3]] == ["end", "end", "middle"] and sizes(records)[:2] == [20, 500]
    assert [one.bytes // MIB for one in chosen] == sizes(records) and len(records) <= 6
    assert not any(one.last for one in chosen) and len(records) == 6  # there were as many as asked
    assert all((one.error is None) == (one.why != "bend") for one in chosen)


def test_an_experiment_that_was_killed_goes_on_with_the_same_choice(tmp_path):
    scenario = a_scenario("repeats=2", FLASH)
    whole = made(scenario, tmp_path / "whole")
    for after in (1, 4, 8):
        folder = tmp_path / str(after)
        made(scenario, folder, kill_after=after)
        assert sizes(made(scenario, folder, begun=True)) == sizes(whole)
    manifests = [record.manifest for record in whole.values()]
    assert len(order_of(scenario, manifests)) == len(whole)


@pytest.mark.parametrize("order", ["alternating", "abba"])
def test_every_size_and_every_other_variant_is_repeated(tmp_path, order):
    records = made(a_scenario("repeats=3", f"order={order}", FLASH), tmp_path)
    by_variant: dict[str, list[int]] = {}
    for record in records.values():
        by_variant.setdefault(record.manifest.variant.name, []).append(record.manifest.repeat)
    assert set(map(tuple, by_variant.values())) == {(1, 2, 3)} and by_variant.keys() >= {"flash", "disks, 20 MiB"}
    first, second = sizes(records)[: len(by_variant)], sizes(records)[len(by_variant) : 2 * len(by_variant)]
    assert second == (first[::-1] if order == "abba" else first)
    assert sum(record.manifest.memory.chosen is not None for record in records.values()) == len(by_variant) - 1


def test_a_flat_curve_ends_with_few_runs_of_the_most_that_were_planned(tmp_path):
    scenario = a_scenario("repeats=2")
    assert len(estimate(scenario).runs_s) == 12 and estimate(scenario).ends_sooner
    records = made(scenario, tmp_path, flat)
    assert len(records) == 8 and [one.manifest.memory.chosen.last for one in list(records.values())[:4]] == [0, 0, 0, 1]
    assert len(order_of(scenario, [one.manifest for one in records.values()])) == 8


def test_the_order_holds_the_most_runs_until_the_choice_has_ended(tmp_path):
    scenario = a_scenario()
    part = made(scenario, tmp_path, kill_after=2)
    names = [run.variant.name for run in order_of(scenario, [one.manifest for one in part.values()])]
    assert len(names) == 6 and names[:2] == ["20 MiB", "500 MiB"]


def test_sizes_that_are_no_range_of_these_data_are_refused():
    curve = a_scenario("buffer_pool={curve: auto, from: 600MiB, to: 100 %}").curve
    with pytest.raises(StallmarkError, match="600"):
        curve.asked(DATA)
    assert curve.asked(2 * DATA).low == 600 * MIB


def test_sizes_have_one_storage_and_a_hook_another():
    hooks = "variants=[{name: a, before: {command: [one]}}, {name: b, buffer_pool: 20 %, before: {command: [two]}}]"
    scenario = a_scenario(hooks)
    small, large, other = scenario.with_size(20 * MIB), scenario.with_size(40 * MIB), scenario.variants[1]
    assert scenario.same_storage(small, large)
    assert not scenario.same_storage(small, None) and not scenario.same_storage(small, other)
