import pytest
from support.manifests import a_manifest

from stallmark.analysis.read.times import measured_intervals


def steps(*times):
    return a_manifest(
        steps=[{"name": "", "users": 1, "begin_s": 0, "measure_s": measure, "end_s": end} for measure, end in times]
    )


def test_takes_whole_seconds_only():
    (interval,) = measured_intervals(steps((9.25, 33.5)), recorded=40, cut=False)
    assert (interval.begin, interval.end, interval.cut) == (10, 33, False)


@pytest.mark.parametrize(
    ("recorded", "found"),
    [
        (9, []),
        (10, []),
        (15, [(10, 15, True)]),
        (30, [(10, 30, False)]),
        (38, [(10, 30, False)]),
        (45, [(10, 30, False), (40, 45, True)]),
        (99, [(10, 30, False), (40, 60, False)]),
    ],
)
def test_a_cut_run_keeps_what_there_is(recorded, found):
    intervals = measured_intervals(steps((10, 30), (40, 60)), recorded, cut=True)
    assert [(i.begin, i.end, i.cut) for i in intervals] == found


def test_silence_at_the_end_of_a_complete_run_is_measured():
    (interval,) = measured_intervals(steps((10, 30)), recorded=25, cut=False)
    assert interval.end == 30 and not interval.cut


def test_without_steps_nothing_is_measured():
    assert measured_intervals(a_manifest(), 50, cut=True) == []
