"""Resuming an experiment that ended early: what is read of it, and what is refused."""

import shlex
import shutil
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from support.manifests import a_manifest
from support.memory_curves import Curve, cliff, flat, rate
from support.synthetic import Truth, make_run

import stallmark
from stallmark.cli.run import run
from stallmark.errors import StallmarkError
from stallmark.experiment.estimate import estimate
from stallmark.experiment.manifest import EndNote
from stallmark.experiment.remaining_runs import EarlierExperiment, RemainingRuns, command, order_of
from stallmark.experiment.target import Target
from stallmark.record.files import exclusive_folder
from stallmark.record.manifest import read_manifest, write_manifest
from stallmark.record.reader import INTERRUPTED, Record, find_records
from stallmark.record.writer import RecordWriter
from stallmark.scenarios.model import AnyScenario
from stallmark.scenarios.read import read_any_scenario, read_scenario, shipped
from stallmark.scenarios.variant import PlaceChoice
from stallmark.stats.curve_search import MIB
from stallmark.transactions import find_workload

pytestmark = pytest.mark.thorough

SERVER = {"product": "PostgreSQL", "version": "18.4"}


def runs(folder: Path, read, *reasons: str | None, variants: int = 4, **fields) -> Path:
    """An experiment that was to have `variants` runs; a reason makes one incomplete, "" leaves it as if killed."""
    named = ", ".join(f"{{name: v{number}}}" for number in range(1, variants + 1))
    scenario = read(sets=("emulated_array=null", f"variants=[{named}]"))
    for number, reason in enumerate(reasons, 1):
        writer = RecordWriter(
            folder / f"{number:02d}-v{number}",
            a_manifest(
                scenario=scenario.model_dump(mode="json"), variant={"name": f"v{number}"}, sequence=number,
                experiment=folder.name, server=SERVER, stallmark=stallmark.__version__, **fields,
            ),
        )  # fmt: skip
        if reason != "":
            writer.close(reason)
    return folder


def test_whole_runs_are_kept_and_the_scenario_is_that_of_the_record(read, tmp_path):
    begun = EarlierExperiment.read(runs(tmp_path / "x", read, None, "the server was gone"))
    assert set(begun.records) == {1}
    assert [variant.name for variant in begun.scenario.variants] == ["v1", "v2", "v3", "v4"]
    assert begun.scenario == type(begun.scenario).model_validate(begun.scenario.model_dump(mode="json"))


def test_a_run_that_was_killed_is_not_whole(read, tmp_path):
    assert set(EarlierExperiment.read(runs(tmp_path / "x", read, None, None, "")).records) == {1, 2}


def test_an_incomplete_run_is_set_aside_and_the_end_taken_back(read, tmp_path):
    folder = runs(tmp_path / "x", read, None, "the server was gone")
    EndNote().preparing(folder / "01-v1", "v2")
    begun = EarlierExperiment.read(folder)
    begun.make_room(2)
    assert read_manifest(folder / "01-v1").ended is None
    assert [record.folder.name for record in find_records([folder])] == ["01-v1"]
    assert Record(folder / INTERRUPTED / "02-v2-1").incomplete_because
    again = RecordWriter(folder / "02-v2", begun.last.changed(sequence=2))
    again.close("it was gone again")
    begun.make_room(2)
    assert {path.name for path in (folder / INTERRUPTED).iterdir()} == {"02-v2-1", "02-v2-2"}


def test_it_goes_on_even_where_no_run_was_whole(read, tmp_path):
    folder = runs(tmp_path / "x", read, "the server was gone")
    EarlierExperiment.read(folder).make_room(1)
    assert EarlierExperiment.read(folder).records == {}


@pytest.mark.parametrize("what", ["complete", "a run", "a probe", "nothing"])
def test_what_cannot_go_on_is_refused(read, tmp_path, what):
    folder = tmp_path / "x"
    if what == "complete":
        runs(folder, read, None, None, variants=2)
    elif what == "a run":
        folder = runs(folder, read, None) / "01-v1"
    elif what == "a probe":
        scenario = read_any_scenario("saturation").model_dump(mode="json")
        RecordWriter(folder / "01-a", a_manifest(scenario=scenario, experiment="x", sequence=1)).close("cut")
    else:
        folder.mkdir()
    with pytest.raises(StallmarkError):
        EarlierExperiment.read(folder)


@pytest.mark.parametrize(
    ("version", "product", "made_with", "refused"),
    [
        ("18.4", "PostgreSQL", stallmark.__version__, False),
        ("18.5", "PostgreSQL", stallmark.__version__, True),
        ("18.4", "Another", stallmark.__version__, True),
        ("18.4", "PostgreSQL", "0.0.9", True),
    ],
)
def test_another_server_or_another_stallmark_is_refused(read, tmp_path, version, product, made_with, refused):
    begun = EarlierExperiment.read(runs(tmp_path / "x", read, None))
    begun = replace(begun, last=begun.last.changed(stallmark=made_with))
    engine = SimpleNamespace(identity=lambda: SimpleNamespace(product=product, version_text=version))
    if refused:
        with pytest.raises(StallmarkError):
            begun.refuse_another_server(engine)  # type: ignore[arg-type]
    else:
        begun.refuse_another_server(engine)  # type: ignore[arg-type]


@pytest.mark.parametrize(("version", "refused"), [(0, True), (find_workload("bank").version, False), (None, False)])
def test_data_of_another_version_are_refused_with_the_reason(read, tmp_path, version, refused):
    """A version that the record does not name is not held against it."""
    begun = EarlierExperiment.read(runs(tmp_path / "x", read, None))
    last = begun.last.changed(workload={"name": "bank", "version": version})
    begun = replace(begun, last=last.changed(stallmark=stallmark.__version__, server=SERVER))
    engine: Any = SimpleNamespace(identity=lambda: SimpleNamespace(product="PostgreSQL", version_text="18.4"))
    if not refused:
        begun.refuse_another_server(engine)
        return
    with pytest.raises(
        StallmarkError, match=r"was begun on data version 0 of the bank, .*: run the experiment again\.$"
    ):
        begun.refuse_another_server(engine)


def test_data_in_another_place_is_refused(read, tmp_path):
    begun = EarlierExperiment.read(runs(tmp_path / "x", read, None))
    devices = begun.last.devices.model_copy(update={"folders": {"data": "/mnt/a/data", "wal": "/mnt/a/wal"}})
    begun = replace(begun, last=begun.last.changed(devices=devices))

    def engine(**folders: str) -> SimpleNamespace:
        return SimpleNamespace(directories=lambda: {name: Path(folder) for name, folder in folders.items()})

    for folders in ({"data": "/mnt/a/data", "wal": "/mnt/a/wal"}, {}):  # a server by URL tells no folders
        begun.refuse_another_place(engine(**folders))  # type: ignore[arg-type]
    with pytest.raises(StallmarkError, match="/mnt/b/data"):
        begun.refuse_another_place(engine(data="/mnt/b/data", wal="/mnt/a/wal"))  # type: ignore[arg-type]
    # The folders of a variant that lies elsewhere say nothing of where the others lie.
    variants = [
        one.model_copy(update={"place": PlaceChoice(data="/mnt/a")} if one.name == begun.last.variant.name else {})
        for one in begun.scenario.variants
    ]
    placed = replace(begun, scenario=begun.scenario.model_copy(update={"variants": variants}), records={})
    placed.refuse_another_place(engine(data="/mnt/b/data", wal="/mnt/a/wal"))  # type: ignore[arg-type]


def test_the_gap_begins_where_the_last_whole_run_ended(read, tmp_path):
    began = datetime.now(UTC) - timedelta(hours=3)
    begun = EarlierExperiment.read(runs(tmp_path / "x", read, None, "cut", started=began.isoformat()))
    assert begun.gap_s() == pytest.approx(3 * 3600, abs=60)


@pytest.mark.parametrize("name", shipped())
def test_the_scenario_in_a_record_is_the_scenario_that_was_run(name: str):
    given = read_any_scenario(name)
    recorded = a_manifest(scenario=given.model_dump(mode="json"))
    read = type(recorded).model_validate_json(recorded.model_dump_json())
    assert type(given).model_validate(read.scenario.facts()) == given


def test_of_two_that_add_runs_to_an_experiment_the_second_is_refused(tmp_path):
    folder = tmp_path / "x"
    with (
        exclusive_folder(folder, taken="It is held."),
        pytest.raises(StallmarkError),
        exclusive_folder(folder, taken="It is held."),
    ):
        pass
    assert not folder.exists()  # no run was made
    with exclusive_folder(folder, taken="It is held."):
        (folder / "01-v1").mkdir()
    assert folder.exists()


@pytest.mark.parametrize(
    ("fields", "options"),
    [
        ({}, "--server URL"),
        ({"cache_start": "cold"}, "--server URL --drop-caches"),
        ({"server": {"shared": True}}, "--server URL --shared"),
        ({"devices": {"built_in": {"data": "/mnt/a b"}}}, "--data-dir '/mnt/a b'"),
        ({"devices": {"built_in": {"data": "/mnt/a", "wal": "/mnt/log"}}}, "--data-dir /mnt/a --wal-dir /mnt/log"),
        ({"expected_machines": {"count": 3, "host": "*", "port": 5557}}, "--server URL --expect-workers 3"),
        (
            {"expected_machines": {"count": 2, "host": "10.0.0.1", "port": 6000}},
            "--server URL --expect-workers 2 --master-bind-host 10.0.0.1 --master-bind-port 6000",
        ),
    ],
)
def test_the_command_to_resume_places_data_and_load_as_they_were(read, fields, options):
    said = command(Path("runs/x"), read().workload, [a_manifest(**fields)])
    assert said == f"stallmark run --resume runs/x {options}".rstrip()


def test_the_command_to_resume_needs_no_option_for_the_usual_folder(read, monkeypatch, tmp_path):
    choice = read().workload
    monkeypatch.setenv("STALLMARK_HOME", str(tmp_path))
    folder = Target().folder(choice)
    made = a_manifest(devices={"built_in": {"data": str(folder)}})
    assert command(Path("x"), choice, [made]) == "stallmark run --resume x"
    monkeypatch.setenv("STALLMARK_HOME", str(tmp_path / "another"))
    assert command(Path("x"), choice, [made]) == f"stallmark run --resume x --data-dir {folder}"


def test_the_command_is_one_that_the_command_line_takes(read, tmp_path):
    folder = runs(tmp_path / "x", read, None, expected_machines={"count": 2, "host": "h", "port": 6000})
    words = shlex.split(command(folder, read().workload, [Record(folder / "01-v1").manifest]))
    context = run.make_context("run", words[2:], resilient_parsing=True)
    assert context.params["resume"] == folder and context.params["expect_workers"] == 2


# The runs of an experiment with a curve: sizes chosen from records, the same ones after a kill, repeats of each


DATA = 500 * MIB
KNEE = cliff(100 * MIB)
CURVE = "buffer_pool={curve: auto, from: 4 %, to: 100 %, sizes: 6, tolerance: 10 %}"
FLASH = "variants=[{name: disks}, {name: flash, buffer_pool: 20 %}]"


def a_scenario(*sets: str) -> AnyScenario:
    return read_scenario("memory-curve", [CURVE, *sets])


def made(scenario: AnyScenario, folder: Path, reads: Curve = KNEE, *, kill_after: int = 99) -> dict[int, Record]:
    """Make the runs of an experiment that records of `folder` lack, up to a kill; return all, by number."""
    records = {read_manifest(path.parent).sequence: Record(path.parent) for path in folder.glob("*/manifest.json")}
    remaining = RemainingRuns(scenario, scenario.curve.spec(DATA), records)
    for turn in remaining:
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
        remaining.add(turn.number, record)
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
        for number in range(1, after + 1):
            shutil.copytree(tmp_path / "whole" / f"{number:02d}", folder / f"{number:02d}")
        assert sizes(made(scenario, folder)) == sizes(whole)
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
        curve.spec(DATA)
    assert curve.spec(2 * DATA).low == 600 * MIB


def test_sizes_have_one_storage_and_a_hook_another():
    hooks = "variants=[{name: a, before: {command: [one]}}, {name: b, buffer_pool: 20 %, before: {command: [two]}}]"
    scenario = a_scenario(hooks)
    small, large, other = scenario.with_size(20 * MIB), scenario.with_size(40 * MIB), scenario.variants[1]
    assert scenario.same_storage(small, large)
    assert not scenario.same_storage(small, None) and not scenario.same_storage(small, other)
