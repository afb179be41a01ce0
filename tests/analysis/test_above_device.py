"""The caution on time in storage above the device: said of the steps it is true of, with the limits on their server."""

from dataclasses import replace

import pytest
from support.manifests import changed
from support.synthetic import Truth, make_run
from support.synthetic_steps import WAITS

from stallmark.analysis.experiment import summarise
from stallmark.analysis.storage_cautions import AboveKind, above_device
from stallmark.record.reader import Record

REAL = {"name": "vda", "model": None, "rotational": True}
IN_DEVICE = Truth(read_ms=27, waits=WAITS, emulated=False, device=REAL, variant="A")
ABOVE = replace(IN_DEVICE, device_share=0.1, variant="B", sequence=2)
LIMIT = {"limited": "reads", "per_s": 1500, "file": "/sys/fs/cgroup/db/io.max"}


def cautions_on(*folders):
    runs = summarise([Record(folder) for folder in folders]).runs
    return [finding.facts for finding in above_device(runs)]


def test_steps_above_the_device_are_named_with_the_limits_on_their_server(tmp_path):
    a, b = make_run(tmp_path / "a", IN_DEVICE), make_run(tmp_path / "b", ABOVE)
    changed(b, devices={"data": {**REAL, "limits": [LIMIT]}})
    [facts] = cautions_on(a, b)
    assert facts["steps"] == ["B"] and facts["limits"] == [LIMIT]
    assert facts["share"] == pytest.approx([0.9, 0.9], abs=0.05)


def test_the_limit_that_steps_waited_for_most_comes_first(tmp_path):
    least = make_run(tmp_path / "a", replace(ABOVE, device_share=0.4, variant="A", sequence=1))
    most = make_run(tmp_path / "b", ABOVE)
    changed(most, devices={"data": {**REAL, "limits": [LIMIT]}})
    assert [facts["steps"] for facts in cautions_on(least, most)] == [["B"], ["A"]]


def test_no_step_is_named_whose_time_was_in_the_device_or_at_a_cpu(tmp_path):
    waited = replace(ABOVE, run_delay=25, host_cpu=0.75)
    little = replace(ABOVE, waits={name: share / 8 for name, share in WAITS.items()})
    for number, truth in enumerate((IN_DEVICE, waited, little)):
        assert cautions_on(make_run(tmp_path / str(number), truth)) == []


def test_every_step_is_said_only_if_all_are(tmp_path):
    [facts] = cautions_on(make_run(tmp_path / "b", ABOVE))
    assert facts["steps"] is None and facts["limits"] == []
    assert str(AboveKind.ABOVE) == "io_above_device"


def test_what_is_true_of_these_runs_alone_comes_before_what_is_true_of_any(tmp_path):
    kinds = [str(one.kind) for one in summarise([Record(make_run(tmp_path / "b", ABOVE))]).cautions]
    assert kinds.index("io_above_device") < kinds.index("derived_workload") and "io_above_device" in kinds[:2]
