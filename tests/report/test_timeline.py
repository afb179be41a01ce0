import math

import numpy as np
from hypothesis import given as property_of
from hypothesis import strategies as st
from support import report_summaries as given
from support.manifests import changed
from support.pages import render
from support.synthetic import Truth, make_run

from stallmark.analysis.run import summarise_run
from stallmark.record.manifest import read_manifest
from stallmark.record.reader import Record
from stallmark.report.figures import POINTS, WIDE, bucket_means, bucket_width, extremes, rate_axis
from stallmark.report.sections.timeline import stretches, time_figures

EXTREMES = "(least and most)"


@property_of(st.integers(1, 300_000), st.integers(1, 20))
def test_no_line_has_more_points_than_a_screen(samples, parts):
    width = bucket_width(samples, parts)
    assert 2 * (-(-samples // width) + parts) <= POINTS or samples <= POINTS


@property_of(st.lists(st.floats(-1e6, 1e6), min_size=1, max_size=200), st.integers(1, 50))
def test_buckets_are_means_of_their_own_samples(values, width):
    means = bucket_means(np.array(values), width)
    expected = [np.mean(values[i : i + width]) for i in range(0, len(values), width)]
    np.testing.assert_allclose(means, expected, rtol=1e-9, atol=1e-6)


def test_unknown_samples_are_left_out_and_unknown_buckets_stay_unknown():
    means = bucket_means(np.array([1.0, np.nan, np.nan, np.nan, 5.0]), 2)
    assert means[0] == 1.0 and np.isnan(means[1]) and means[2] == 5.0


def test_a_day_is_drawn_with_few_points_that_keep_the_mean_and_says_so():
    step = given.step(measured_s=86_380.0)
    run = given.run([step])
    (figure,) = time_figures(given.experiment([run]))
    tps = [t for t in figure.plotly["data"] if t["yaxis"] == "y"]
    extremes = [len(t["x"]) for t in tps if t["name"].endswith(EXTREMES)]
    assert sum(extremes) <= POINTS and sum(len(t["x"]) for t in tps) <= 1.5 * POINTS
    measured = max((t for t in tps if not t["name"].endswith(EXTREMES)), key=lambda t: len(t["x"]))
    assert abs(np.mean(measured["y"]) / run.series.tps[20:].mean() - 1) < 0.001
    assert "Lines are means of 87" in figure.method
    assert figure.plotly["layout"]["xaxis"]["title"]["text"].startswith("hours")
    assert len(render(given.experiment([run]))) < 6e6


def test_a_peak_of_one_second_in_a_day_is_in_the_page():
    step = given.step(measured_s=86_380.0)
    run = given.run([step])
    begin = run.manifest.steps[0].measure_s
    run.series.tps[50_000], run.series.read_ms[70_000] = 12_340.0, 6_789.0
    (figure,) = time_figures(given.experiment([run]))
    for place, second, peak in (("y", 50_000, 12_340.0), ("y2", 70_000, 6_789.0)):
        points = [
            (round(x * 3600 + begin), y)
            for trace in figure.plotly["data"]
            if trace["yaxis"] == place
            for x, y in zip(trace["x"], trace["y"], strict=True)
        ]
        assert max(points, key=lambda point: point[1] or 0) == (second, peak)
        assert figure.plotly["layout"][f"yaxis{place[1:]}"]["range"][1] >= peak


@property_of(st.lists(st.one_of(st.just(math.nan), st.floats(-1e6, 1e6)), min_size=1, max_size=200), st.integers(1, 50))
def test_extremes_are_those_of_each_bucket_at_their_own_time(values, width):
    x, y = extremes(np.arange(len(values)), np.array(values), width)
    assert np.all(np.diff(x) >= 0)
    for bucket, begin in enumerate(range(0, len(values), width)):
        known = [value for value in values[begin : begin + width] if not math.isnan(value)]
        found = y[2 * bucket : 2 * bucket + 2]
        assert sorted(found) == [min(known), max(known)] if known else np.isnan(found).all()
    assert all(math.isnan(one) or values[at] == one for at, one in zip(x, y, strict=True))


def test_warm_up_is_kept_apart_and_shaded():
    (figure,) = time_figures(given.user_ramp())
    run = given.user_ramp().runs[0]
    assert [s.measured for s in stretches(run)] == [False, True] * 5
    bands = {(s["x0"], s["x1"]) for s in figure.plotly["layout"]["shapes"]}
    assert bands == {(i * 80 - 20, i * 80) for i in range(5)}
    for trace in figure.plotly["data"]:
        inside = [any(low <= x < high for low, high in bands) for x in trace["x"]]
        assert all(inside) if trace["name"].endswith("(warm-up)") else not any(inside)


def test_runs_are_aligned_where_measuring_began_even_if_they_warmed_up_longer():
    short, long = given.step(), given.step(key="b", run="b", variant="b", warm_up_s=45.0)
    (figure,) = time_figures(given.experiment([given.run([short]), given.run([long])]))
    measured = [t for t in figure.plotly["data"] if not t["name"].endswith("(warm-up)")]
    assert {t["x"][0] for t in measured} == {0.0}
    assert not figure.chart.shapes  # no common warm-up to shade: the thin lines tell


def test_seconds_that_are_unknown_leave_a_gap():
    run = given.run([given.step()])
    run.series.read_ms[30:35] = np.nan
    (figure,) = time_figures(given.experiment([run]))
    drawn = next(t for t in figure.plotly["data"] if t["yaxis"] == "y2" and t["x"][0] == 0)
    assert drawn["y"][10:15] == [None] * 5 and drawn["y"][15] is not None


@property_of(st.lists(st.floats(0.01, 1e6), min_size=2, max_size=9))
def test_rates_far_apart_are_drawn_by_their_ratios_and_all_are_on_the_axis(rates):
    axis = rate_axis(rates)
    assert (axis is not None) is (max(rates) >= WIDE * min(rates))
    if axis:
        low, high = axis["range"]
        assert all(low < np.log10(rate) < high for rate in rates)
        assert sum(low <= np.log10(tick) <= high for tick in axis["tickvals"]) >= 1


def test_a_variant_of_a_tenth_of_the_throughput_is_still_seen():
    steps = [given.step(key=f"{n}", run=f"{n}", variant=f"{n}", tps=tps) for n, tps in enumerate((5.0, 180.0))]
    (figure,) = time_figures(given.experiment([given.run([step]) for step in steps]))
    layout = figure.plotly["layout"]
    assert layout["yaxis"]["type"] == "log" and "type" not in layout["yaxis2"]
    assert "committed transactions per second, log scale" in [note["text"] for note in layout["annotations"]]


def test_a_standstill_is_seen_on_every_scale_and_the_hover_does_not_lie():
    steps = [given.step(key=f"{n}", run=f"{n}", variant=f"{n}", tps=tps) for n, tps in enumerate((5.0, 180.0))]
    runs = [given.run([step]) for step in steps]
    runs[0].series.tps[40:45] = 0.0
    (figure,) = time_figures(given.experiment(runs))
    axis, line = (
        figure.plotly["layout"]["yaxis"],
        next(t for t in figure.plotly["data"] if 0.0 in t.get("customdata", ())),
    )
    drawn = line["y"][list(line["customdata"]).index(0.0)]
    assert axis["ticktext"][0] == "0" and drawn == axis["tickvals"][0] and math.log10(drawn) > axis["range"][0]
    assert "customdata" in line["hovertemplate"]
    assert all(figure.plotly["layout"][f"yaxis{n}"]["range"][0] < 0 for n in (2, 3))


def test_the_end_where_users_stop_is_not_drawn(tmp_path):
    folder = make_run(tmp_path / "run", Truth())
    [planned] = read_manifest(folder).steps
    changed(folder, steps=[planned.changed(end_s=planned.end_s - 5)])
    run = summarise_run(Record(folder), "run")
    (figure,) = time_figures(given.experiment([run]))
    step = run.manifest.steps[0]
    assert max(x for line in figure.plotly["data"] for x in line["x"]) < step.end_s - step.measure_s
