"""A curve in place of one buffer pool: what it means, and what is refused in one sentence."""

import pytest

from stallmark.errors import StallmarkError
from stallmark.quantities import PoolSize
from stallmark.scenarios.read import read_scenario
from stallmark.stats.curve_search import MIB, Asked


def test_a_curve_is_of_the_data_and_survives_the_record():
    scenario = read_scenario("memory-curve", ["buffer_pool={curve: auto, from: 2 %, to: 1GiB, sizes: 12}"])
    assert scenario.curve.asked(1000 * MIB) == Asked(20 * MIB, 1024 * MIB, 12, 0.05)
    assert type(scenario).model_validate(scenario.model_dump(mode="json")) == scenario
    assert [scenario.pool_of(variant).share for variant in scenario.sized()] == [0.02, None]


def test_a_size_has_its_own_name_and_pool():
    alone = read_scenario("memory-curve").with_size(96 * MIB)
    assert (alone.name, alone.buffer_pool) == ("96 MiB", PoolSize(size_bytes=96 * MIB))
    beside = read_scenario("memory-curve", ["variants=[{name: disks}, {name: flash, buffer_pool: 5 %}]"])
    assert beside.with_size(96 * MIB).name == "disks, 96 MiB"
    assert [run.variant.name for run in beside.run_order([96 * MIB], ended=True)] == ["disks, 96 MiB", "flash"]


@pytest.mark.parametrize(
    ("name", "sets"),
    [
        ("memory-curve", ["buffer_pool.from=100 %"]),
        ("memory-curve", ["buffer_pool={curve: auto, from: 2GiB, to: 1GiB}"]),
        ("memory-curve", ["buffer_pool.from=3"]),
        ("memory-curve", ["buffer_pool.form=3 %"]),
        ("memory-curve", ["buffer_pool.sizes=4"]),
        ("memory-curve", ["buffer_pool.sizes=25"]),
        ("memory-curve", ["buffer_pool.tolerance=0"]),
        ("memory-curve", ["buffer_pool.tolerance=60 %"]),
        ("memory-curve", ["buffer_pool.curve=by hand"]),
        ("memory-curve", ["order=blocks"]),
        ("memory-curve", ["users=[1, 2]"]),
        ("memory-curve", ["variants=[{name: a}, {name: b}]"]),
        ("memory-curve", ["variants=[{name: a, buffer_pool: 5 %}]"]),
        ("memory-curve", ["buffer_pool={curve: auto, from: 2 %}"]),
        ("power-memory-storage", ["buffer_pool={curve: auto, from: 2 %, to: 50 %}", "variants=[{name: a}]"]),
        ("io-blender", ["buffer_pool={curve: auto, from: 2 %, to: 50 %}", "variants=[{name: a}]"]),
    ],
)
def test_what_cannot_be_is_refused_in_one_sentence(name, sets):
    with pytest.raises(StallmarkError) as refused:
        read_scenario(name, sets)
    assert str(refused.value).endswith((".", "?")) and "\n" not in str(refused.value)
    assert "buffer_pool" in str(refused.value)
