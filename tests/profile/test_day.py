"""A day in production: restarts, gaps, wraps, clocks that are set, a kill. The truth is known, and the totals of the
profile are within 1 % of it."""

import shutil
from collections import defaultdict
from pathlib import Path

import pyarrow.compute as pc
import pytest
from support.production import CORES, COUNTERS, DAY, FILES, HOUR, MIDNIGHT, WAITS, Production, between, direct
from support.tds.odbc import needs_odbc

from stallmark.analysis.profile import ProfileSummary, summarise_profile
from stallmark.analysis.profile_intervals import intervals_of
from stallmark.analysis.profile_rates import Measure, ProfileKind
from stallmark.profile.collection import Collection
from stallmark.record.profile import read_profile

OUTAGES = [(2.2 * HOUR, 2.9 * HOUR), (5.5 * HOUR, 5.5 * HOUR + 180), (11 * HOUR, 11 * HOUR + 40)]
KILLED, RESUMED = 22 * HOUR, 22 * HOUR + 600
NOT_SEEN = [*OUTAGES, (KILLED, RESUMED)]
DAY_OF_TROUBLE = {
    "outages": OUTAGES,
    "restarts": [5.5 * HOUR + 180, 11 * HOUR + 40],
    "names": [(0.0, "SQL-A"), (11 * HOUR, "SQL-B")],
    "anew": {"5/3": [16 * HOUR], "5/2!": [14 * HOUR], "waits": [18 * HOUR], "counters": [19 * HOUR]},
    "clock_set": [(20 * HOUR, 3600.0)],
    "server_clock_set": [(21 * HOUR, -30.0)],
}

pytestmark = [pytest.mark.thorough, needs_odbc]


@pytest.fixture(scope="module")
def day(tmp_path_factory) -> ProfileSummary:
    """The profile of a day. At ten in the evening the folder is as a kill leaves it, and another process goes on."""
    folder: Path = tmp_path_factory.mktemp("day")
    production = Production(**DAY_OF_TROUBLE)
    with pytest.MonkeyPatch.context() as monkeypatch:

        def snapshot(_: object) -> None:
            if production.now >= KILLED and not (folder / "killed").exists():
                shutil.copytree(folder / "first", folder / "killed")
                raise KeyboardInterrupt

        source = direct(production, monkeypatch)
        with pytest.raises(KeyboardInterrupt):
            Collection(source, folder / "first", DAY, False, production.clock(), snapshot).run()
        production.now = RESUMED
        Collection(source, folder / "killed", DAY, False, production.clock()).run()
    assert len(production.asked) == 1  # one text, so one plan in the cache
    return summarise_profile(folder / "killed")


def _truth() -> float:
    """The day's work in seconds at the mean rate, without the times that could not be seen."""
    return between(0.0, DAY - HOUR) - sum(between(begin, end) for begin, end in NOT_SEEN)


def test_the_totals_of_files_are_those_of_the_truth(day):
    wanted: dict[str, dict[str, float]] = defaultdict(lambda: defaultdict(float))
    for file in FILES:
        of_class = wanted[file.file_class]
        of_class["reads"] += file.reads * _truth()
        of_class["writes"] += file.writes * _truth()
        of_class["read_bytes"] += file.reads * file.read_kib * 1024 * _truth()
        of_class["write_bytes"] += file.writes * file.write_kib * 1024 * _truth()
        of_class["read_stall_ms"] += file.reads * file.read_ms * _truth()
        of_class["write_stall_ms"] += file.writes * file.write_ms * _truth()
    assert {one.file_class for one in day.classes} == set(wanted)
    for one in day.classes:
        for column, total in wanted[one.file_class].items():
            assert getattr(one, column) == pytest.approx(total, rel=0.01), (one.file_class, column)


def test_the_totals_of_the_server_and_of_waits_are_those_of_the_truth(day):
    for counter, rate in COUNTERS.items():
        column, scale = ("cpu_s", 1000) if counter == "cpu_ms" else (counter, 1)
        assert day.intervals.known_values(f"server.{column}").sum() == pytest.approx(rate / scale * _truth(), rel=0.01)
    assert {one.name for one in day.wait_types} == set(WAITS) - {"LAZYWRITER_SLEEP"}  # nobody is held up by that
    for one in day.wait_types:
        assert one.wait_ms == pytest.approx(WAITS[one.name] * _truth(), rel=0.01)


def test_means_are_over_the_time_that_was_seen(day):
    unseen_s = sum(end - begin for begin, end in NOT_SEEN)
    assert day.seen_s == pytest.approx(DAY - HOUR - unseen_s, abs=120)
    rate = sum(file.reads + file.writes for file in FILES) * _truth() / (DAY - HOUR - unseen_s)
    assert day.means[Measure.IOS] == pytest.approx(rate, rel=0.01)
    assert day.means[Measure.CPU] == pytest.approx(5.2 / CORES * rate / 1323.0, rel=0.02)


def test_what_was_not_seen_is_said_and_when(day):
    gaps = [one for one in day.unseen if one.seconds > 60]
    assert [round((one.begin - MIDNIGHT) / 60) for one in gaps] == pytest.approx([132, 330, 660, 1320], abs=1)
    assert [one.restart for one in gaps] == [False, True, False, False]  # the third ends with another server
    assert all((one.reason and "link" in one.reason) or one.begin > MIDNIGHT + 21 * HOUR for one in gaps)
    starts, ends = day.intervals.start, day.intervals.end
    assert (starts[1:] >= ends[:-1]).all()  # no interval reaches into another or across a gap
    for begin, end in NOT_SEEN:
        assert not ((starts < MIDNIGHT + end - 1) & (ends > MIDNIGHT + begin + 16)).any()


def test_restarts_another_server_and_clocks_are_cautions(day):
    found = {one.kind: one.facts for one in day.cautions}
    assert found[ProfileKind.GAPS]["gaps"] == 4
    assert found[ProfileKind.RESTARTS]["restarts"] == 1
    assert found[ProfileKind.OTHER_SERVER]["servers"] == ["SQL-A", "SQL-B"]
    assert found[ProfileKind.CLOCK_SET]["times"] == 1
    assert found[ProfileKind.CLOCK_SET]["jump_s"] == pytest.approx(3600, abs=1)
    assert [one.end for one in read_profile(day.folder).sessions] == ["killed", "complete"]


def test_a_counter_that_began_anew_is_null_for_one_interval_and_takes_nothing_else_with_it(day):
    file_io = intervals_of(day.folder).tables()["file_io"]
    lost = file_io.filter(pc.is_null(file_io.column("writes")))
    at = {row["file_class"]: round((row["start"].timestamp() - MIDNIGHT) / HOUR) for row in lost.to_pylist()}
    assert at == {"log": 14, "data": 16}
    assert lost.num_rows == 2


def test_the_busiest_window_is_where_the_load_was_highest(day):
    peak = day.windows[0]
    assert abs(peak.begin + 450 - (MIDNIGHT + 14 * HOUR)) < 1800
    assert peak.values[Measure.IOS] == pytest.approx(5 / 3 * sum(f.reads + f.writes for f in FILES), rel=0.01)
    assert max(day.hours.values[Measure.IOS]) <= peak.values[Measure.IOS]
