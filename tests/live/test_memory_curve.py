"""The live view of a curve of memory: sizes as they are chosen, and the most there may be."""

from support.synthetic import Truth, make_run

from stallmark.live.state import state
from stallmark.live.view import View
from stallmark.record.manifest.server import ChosenSize
from stallmark.record.manifest_file import read_manifest, write_manifest
from stallmark.scenarios.read import read_scenario
from stallmark.stats.curve_search import MIB


def test_sizes_are_named_as_they_are_chosen(tmp_path):
    scenario = read_scenario("memory-curve", ["buffer_pool.sizes=5", "repeats=2"])
    folder = tmp_path / "20260101-000000-memory-curve"
    for number, mib in enumerate((16, 512, 128), 1):
        variant = scenario.with_size(mib * MIB).name
        cut_at = 28 if number == 3 else None
        run = make_run(folder / f"{number:02d}", Truth(variant=variant, sequence=number, cut_at=cut_at))
        made = read_manifest(run)
        chosen = ChosenSize(bytes=mib * MIB, why="end")
        write_manifest(run, made.changed(memory=made.memory.changed(chosen=chosen)))
    view = View(folder, scenario)
    for _ in range(3):
        seen = view.look()
    names = [run["name"] for run in state(seen)["runs"]]
    assert len(names) == 10 and [name.split(",")[0] for name in names[:3]] == ["16 MiB", "512 MiB", "128 MiB"]
    assert seen.status.planned == 10 and seen.status.whole == 2 and seen.present == 3
