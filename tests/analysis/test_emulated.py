"""Data and log are each on an emulated device or on a real one, and each is called what it is."""

import pyarrow as pa
import pytest
from support.comparisons import made, template, with_step
from support.flash_records import EMULATED as DISKS
from support.flash_records import REAL, on_array
from support.manifests import changed
from support.manifests import on as laid_on
from support.synthetic import MIB, Truth, make_run
from support.tables import get, put

from stallmark.analysis.compare.verdicts import compare_runs
from stallmark.analysis.experiment import ExperimentSummary, summarise
from stallmark.record.devices import DeviceLabel, data_device_label
from stallmark.record.reader import Record
from stallmark.report.experiment import experiment_in_json
from stallmark.report.sections.environment import devices

ARRAY = {"name": "loop0", "emulated_array": {"block_device": True, "name": "array"} | DISKS}
SDA = {"name": "sda", "model": "Disk", "rotational": True}


def on(folder, data, wal) -> ExperimentSummary:
    run = changed(make_run(folder, Truth(**REAL)), devices=laid_on(data, wal))
    return summarise([Record(on_array(run, dram_bytes=64 * 1024 * MIB))])


def test_with_an_emulated_log_a_run_is_emulated_and_its_data_device_is_not(tmp_path):
    experiment = on(tmp_path / "run", SDA, DISKS)
    [step] = experiment.steps
    assert experiment.emulated and step.emulated and step.emulated_roles == ("wal",)
    assert step.device == DeviceLabel(
        f"log on {DISKS['spindles']} spindles, {DISKS['read_ms']:g} ms; data on sda Disk", emulated=True
    )
    # What is said of the data's device is of a real one: nobody counted, and there is an array's DRAM.
    assert (
        step.storage.active
        and step.storage.active.counted_bytes is None
        and step.storage.active.dram_bytes == 64 * 1024 * MIB
    )
    assert [one.title for one in devices(experiment)] == ["Device: data", "EMULATED device: WAL"]
    assert data_device_label(experiment.runs[0].manifest) == DeviceLabel("sda Disk", emulated=False)
    assert experiment_in_json(experiment)["runs"][0]["steps"][0]["emulated"] is True


def test_a_lab_under_the_log_is_emulated_as_well(tmp_path):
    [step] = on(tmp_path / "run", SDA, ARRAY).steps
    assert step.emulated_roles == ("wal",) and step.device.name.startswith("log on")


def test_a_lab_that_counts_for_itself_is_as_busy_as_the_same_disks_without_one(tmp_path):
    """Its spindles' service times are added up; counted by the kernel it is time with anything under way."""
    own, array = (make_run(tmp_path / name, Truth()) for name in ("own", "array"))
    changed(array, devices=laid_on(ARRAY))
    counters = get(array, "device")
    late = pa.array([0] * counters.num_rows)  # what no kernel counts
    put(array, "device", counters.append_column("late", late))
    as_own, as_array = (summarise([Record(folder)]).steps[0] for folder in (own, array))
    assert as_array.storage.busy_share == as_own.storage.busy_share and 0 < (as_array.storage.busy_share or 0) < 1
    assert as_array.bottleneck.device_verdict == as_own.bottleneck.device_verdict


@pytest.mark.parametrize(("roles", "role"), [(("wal",), "wal"), (("data",), "data"), (("data", "wal"), "data")])
def test_what_is_emulated_on_one_side_alone_is_not_compared(tmp_path, roles, role):
    runs = made(template(tmp_path, measured_s=40), A=[400.0, 404.0, 402.0], B=[480.0, 478.0, 484.0])
    runs = [with_step(run, emulated_roles=roles if run.manifest.variant.name == "A" else ()) for run in runs]
    [pair] = compare_runs(runs).pairs
    assert pair.verdict == "not_comparable" and pair.failed[0].reason.facts == {"role": role}
