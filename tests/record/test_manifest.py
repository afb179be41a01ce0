"""The manifest: what is written is read back, and what is no manifest of this format is refused in a sentence."""

import json
from copy import deepcopy
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from support.manifests import a_manifest, on
from support.synthetic import EMULATED

from stallmark.errors import StallmarkError
from stallmark.record.manifest import FORMAT, Manifest, read_manifest, write_manifest
from stallmark.record.manifest import course as recorded
from stallmark.scenarios.model import QueryScenario, Scenario
from stallmark.scenarios.variant import During, ResourcePool, Variant

STEP = {"name": "steady", "users": 30, "begin_s": 0.0, "measure_s": 5.0, "end_s": 35.0}
WHOLE = a_manifest(
    experiment="e",
    sequence=1,
    scenario={"name": "demo", "primary": "tps", "users": [30], "device": None},
    variant={"name": "HDD", "buffer_pool": "20 %", "streams": None},
    steps=[STEP | {"waited": {"at_least_s": 5, "at_most_s": 60, "seconds": 10, "steady": True}}],
    workload={
        "name": "bank",
        "scale": {"branches": 20},
        "transactions": [{"name": "transfer", "cards": 1, "source": "users"}],
        "counted": {"transfer": {"before": 0, "after": 3}},
    },
    server={"product": "PostgreSQL", "version": "18.4", "settings": {"shared_buffers": "64MB"}},
    memory={"configured_bytes": 1 << 26, "reached_bytes": 1 << 26},
    devices=on(EMULATED, {"name": "sda", "rotational": True}),
    array={"raid": "RAID 10", "dram_bytes": 8 << 30, "controller": "of the operator's"},
    hook={"command": ["set-cache", "on"], "output": "", "seconds": 1.5},
    precondition={"size_bytes": 1 << 30, "round_s": 10, "rounds_ms": [9.0, 3.0], "steady": False},
    collectors={"waits": {"title": "Waits", "interval_s": 0.1}},
    conditions=[{"name": "balances agree", "holds": True}],
    machine={"cpu": "a CPU", "cores": 2},
    load_machines=[{"number": 1, "executors": 2, "clock_within_ms": 0.5}],
    notes=["one"],
)
DOCUMENT = json.loads(WHOLE.model_dump_json())


def places(value: Any, path: tuple = ()) -> list[tuple]:
    """Where a value stands, of every value in it."""
    inner = list(value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ())
    return [(*path, key) for key, _ in inner] + [one for key, value in inner for one in places(value, (*path, key))]


def with_value(path: tuple, value: Any) -> dict[str, Any]:
    changed = deepcopy(DOCUMENT)
    within: Any = changed
    for key in path[:-1]:
        within = within[key]
    within[path[-1]] = value
    return changed


@pytest.mark.parametrize("seconds", [-1.0, -9e18, 8.64e6, 1e300])
@pytest.mark.parametrize("name", ["begin_s", "measure_s", "end_s"])
def test_a_step_at_no_time_of_a_run_is_refused(tmp_path, name, seconds):
    (tmp_path / "manifest.json").write_text(json.dumps(with_value(("steps", 0, name), seconds)))
    with pytest.raises(StallmarkError, match=rf"is damaged \(steps.*{name}"):
        read_manifest(tmp_path)


def read(folder, document: Any) -> Manifest:
    (folder / "manifest.json").write_text(json.dumps(document))
    return read_manifest(folder)


def test_what_is_written_is_read_back(tmp_path):
    write_manifest(tmp_path, WHOLE)
    assert read_manifest(tmp_path) == WHOLE


def test_fields_of_probes_that_older_versions_wrote_as_null_are_left_out(tmp_path):
    assert read(tmp_path, DOCUMENT | {"probe": None, "probe_plan": None}) == WHOLE


def test_keys_of_a_scenario_that_no_reader_knows_are_kept_as_they_are(tmp_path):
    said = {
        "name": "HDD",
        "buffer_pool": "20 %",
        "during": {"check": True},
        "before": {"ask": "Is it on?"},
        "streams": 0,
    }
    found = read(tmp_path, with_value(("variant",), said)).variant
    assert found.facts() == said
    assert found.during and found.during.kind == "check"


@pytest.mark.parametrize(
    ("recorded", "models", "all_of_it"),
    [
        (recorded.Scenario, (Scenario, QueryScenario), False),
        (recorded.Variant, (Variant,), False),
        (recorded.ResourcePool, (ResourcePool,), True),
        (recorded.During, (During,), True),
    ],
)
def test_fields_of_a_scenario_in_a_record_are_keys_of_a_scenario_file(recorded, models, all_of_it):
    keys = {key for model in models for key in model.model_fields}
    fields = set(recorded.model_fields)
    assert fields == keys if all_of_it else fields < keys


@pytest.mark.parametrize(("format", "advice"), [(FORMAT - 1, "make it again"), (FORMAT + 1, "update")])
def test_another_format_is_refused_with_what_to_do(tmp_path, format, advice):
    with pytest.raises(StallmarkError, match=rf"format {format} .*reads format {FORMAT}: {advice}"):
        read(tmp_path, DOCUMENT | {"format": format})


@pytest.mark.parametrize("document", [[], {}, "x", None, {"format": "2"}])
def test_what_has_no_format_number_is_damaged(tmp_path, document):
    with pytest.raises(StallmarkError, match="damaged"):
        read(tmp_path, document)


@pytest.mark.parametrize(
    ("path", "value", "key"),
    [
        (("memory", "reached_bytes"), "much", r"memory\.reached_bytes"),
        (("steps", 0, "end_s"), None, r"steps\.0\.end_s"),
        (("started",), "yesterday", "started"),
        (("devices", "data", "emulated_array", "spindles"), [], r"devices\.data\.emulated_array\.spindles"),
        (("machine", "hostname"), "db1", r"machine\.hostname"),
        (("variant", "resource_pool"), {"iops": 100}, r"variant\.resource_pool\.iops"),
        (("scenario", "buffer_pool"), 64, r"scenario\.buffer_pool"),
        (("resumed_after_s",), 2**63, "resumed_after_s"),
        (("kind",), "queries", "does not fit"),
        (("kind",), "probe", "probe: Field required"),
        (("kind",), "sizing", "kind"),
        (("kind",), ["probe"], "kind"),
        (("probe",), {}, "probe: Extra inputs are not permitted"),
        (("foo",), 1, "foo: Extra inputs are not permitted"),
        (("foo",), None, "foo: Extra inputs are not permitted"),
    ],
)
def test_a_damaged_field_is_named(tmp_path, path, value, key):
    with pytest.raises(StallmarkError, match=rf"manifest\.json is damaged \(.*{key}"):
        read(tmp_path, with_value(path, value))


@given(
    st.sampled_from(places(DOCUMENT)),
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats()
    | st.text()
    | st.just([])
    | st.just({})
    | st.just({"a": [1]}),
)
def test_whatever_one_value_becomes_it_is_read_or_refused_in_a_sentence(tmp_path, path, value):
    try:
        found = read(tmp_path, with_value(path, value))
    except StallmarkError as refused:
        assert "\n" not in str(refused) and str(tmp_path) in str(refused)
    else:
        assert isinstance(found, Manifest)


def test_a_change_is_checked_as_what_is_read():
    assert WHOLE.changed(notes=["two"]).notes == ("two",) and WHOLE.notes == ("one",)
    with pytest.raises(ValueError, match="extra"):
        WHOLE.changed(note="of no such name")
