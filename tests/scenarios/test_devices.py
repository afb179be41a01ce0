"""A scenario on devices named on the command line, and what cannot be placed."""

import pytest

from stallmark.errors import StallmarkError
from stallmark.scenarios.model import on_devices
from stallmark.scenarios.read import read_scenario

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
