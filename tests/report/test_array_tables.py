"""The storage itself in the report: arrays side by side, their flash, what was active, what was done."""

import pytest
from support.flash_records import REAL, on_array, probe_result, with_flash
from support.manifests import changed
from support.pages import render
from support.synthetic import MIB, Truth, make_run

from stallmark.analysis.experiment import summarise
from stallmark.record.reader import find_records
from stallmark.report.sections import environment
from stallmark.report.sections.timeline import active_figures, time_figures

RAW_IOPS = 5000.0


@pytest.fixture(scope="module")
def with_flash_cache(tmp_path_factory):
    """An emulated array without flash and with it, probed before and after."""
    folder = tmp_path_factory.mktemp("with_flash_cache")
    for number, name in enumerate(("HDD", "cached"), 1):
        run = make_run(folder / f"{number}", Truth(variant=name, sequence=number, measured_s=20))
        probes = {when: probe_result(RAW_IOPS) for when in ("before", "after")}
        changed(run, probes=probes)
    with_flash(folder / "2", hit_share=0.5, active_extents=500)
    return summarise(find_records([folder]))


@pytest.fixture(scope="module")
def array(tmp_path_factory):
    folder = tmp_path_factory.mktemp("array")
    hdd, cached = (
        make_run(folder / name, Truth(variant=name, sequence=number, measured_s=20, **REAL))
        for number, name in enumerate(("HDD", "cached"), 1)
    )
    on_array(hdd, raid="RAID 10", dram_bytes=MIB)
    on_array(cached, raid="RAID 10", dram_bytes=MIB, flash_cache_bytes=4096 * MIB)
    changed(hdd, hook={"ask": "Take the flash out.", "answer": "Enter", "seconds": 90.0})
    changed(cached, hook={"command": ["set-cache", "<on>"], "output": "pool <A>: cache on", "seconds": 2.0})
    changed(cached, precondition={"size_bytes": 1 << 30, "round_s": 60.0, "rounds_ms": [4.0, 2.0], "steady": True})
    return summarise(find_records([folder]))


def test_what_was_done_to_an_array_is_told_with_the_output_of_commands(array):
    done = environment.preparations(array)
    assert [(note.mark, note.text, note.output) for note in done[:2]] == [
        ("HDD", "The operator was asked: Take the flash out. Answer: Enter (90\u00a0s).", ""),
        ("cached", "set-cache <on> (2\u00a0s)", "pool <A>: cache on"),
    ]
    assert done[2].mark == "cached" and "1\u00a0GiB" in done[2].text
    page = render(array)
    assert "<pre>pool &lt;A&gt;: cache on</pre>" in page and "The storage itself" in page


def test_what_is_only_bounded_says_so_and_what_holds_it_is_marked(array):
    table = environment.active(array)
    assert table
    [hdd, cached] = table.rows
    assert str(hdd[1]).startswith("at most ") and str(cached[1]).startswith("at most ")
    assert [cell.kind for cell in (hdd[4], cached[4], hdd[5], cached[5])] == ["", "", "", "apart"]
    [(steps, text)] = environment.warnings(array)
    assert steps == "cached" and "fits into the flash cache (4\u00a0GiB)" in text


def test_hits_over_time_are_drawn_beside_throughput_from_the_first_second_on(with_flash_cache):
    [figure] = time_figures(with_flash_cache)
    assert figure.header[-3:] == ["from flash", "read time", "read stall"]
    drawn = [line for line in figure.plotly["data"] if line["yaxis"] == "y2"]
    assert {line["name"] for line in drawn} >= {"HDD (warm-up)", "cached (warm-up)"}
    known = {line["name"] for line in drawn if any(value is not None for value in line["y"])}
    assert known == {"cached", "cached (warm-up)"}


def test_what_was_active_is_drawn_beside_the_flash_that_could_hold_it(with_flash_cache):
    [figure] = active_figures(with_flash_cache)
    assert figure.emulated and [line["name"] for line in figure.plotly["data"]] == ["cached", "cached (in a minute)"]
    [held] = figure.plotly["layout"]["shapes"]
    assert held["y0"] == 64 and "flash cache, 64" in str(figure.plotly["layout"]["annotations"])
    assert 'id="chart-active-emulated"' in render(with_flash_cache)


def test_of_a_real_array_what_is_drawn_is_called_a_bound(array):
    [figure] = active_figures(array)
    assert "at most" in figure.plotly["layout"]["annotations"][0]["text"] and "is an upper bound" in figure.method
    assert [key.text for key in figure.key] == ["HDD", "cached"]
    assert sorted(shape["y0"] for shape in figure.plotly["layout"]["shapes"]) == pytest.approx([1 / 1024, 4])


@pytest.mark.thorough
def test_what_was_done_once_before_several_repeats_is_told_once(tmp_path):
    for number in range(3):
        run = make_run(tmp_path / f"{number}", Truth(variant="HDD", sequence=number + 1, measured_s=20))
        changed(run, repeat=number + 1, hook={"ask": "Ready?", "answer": "Enter", "seconds": 9.0 + number // 2})
    told = environment.preparations(summarise(find_records([tmp_path])))
    assert [note.mark for note in told] == ["HDD, repeat 1 to repeat 2", "HDD, repeat 3"]
