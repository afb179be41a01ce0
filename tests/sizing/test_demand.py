"""The demand of a profile: its windows, what their intervals hold, and what is said where something is not known."""

from math import ceil
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st
from support.production import COUNTERS, DAY, FILES, HOUR, Production, direct, load
from support.profiles import AT, DATA, GIB, LENGTH, LOG, write_made_profile
from support.tds.odbc import needs_odbc

from stallmark.analysis.profile_intervals import intervals_of
from stallmark.analysis.profile_rates import MORE, SEEN_SHARE
from stallmark.errors import StallmarkError
from stallmark.profile.collection import Collection
from stallmark.record.formats import import_profile
from stallmark.record.formats.amounts import Wanted
from stallmark.record.profile import FileClass, ProfiledServer, read_profile, write_imported
from stallmark.sizing.demand import COLUMNS as MEASURES
from stallmark.sizing.demand import MOST_TOGETHER, TOGETHER, WindowSearch, demand_of

SAMPLES = Path(__file__).parents[1] / "record" / "formats" / "samples"
SERVER = {"transactions": 300.0, "cpu_s": 30.0, "database_pages_bytes": 20 * GIB}
COLUMNS = ("reads", "read_bytes", "writes", "write_bytes", "log_writes", "log_bytes")


@pytest.fixture
def demand(tmp_path):
    def made(count=240, *, window_s=900, **options):
        return demand_of(write_made_profile(tmp_path / "p", count, **options), window_s=window_s)

    return made


def times(row, factor, *columns):
    return row | {name: row[name] * factor for name in columns}


def from_start(window):
    return (window.begin - AT.timestamp()) / LENGTH


def test_pieces_are_per_second_and_every_class_but_the_log_is_data(demand):
    files = {"data": DATA, "tempdb": DATA, "other": DATA, "log": LOG}
    found = demand(file_io=lambda n: files, server=lambda n: SERVER, servers=(ProfiledServer(cores=8),))
    [window] = found.windows
    assert (len(window.pieces), window.seconds) == (60, 900)
    assert [window.mean(name) for name in COLUMNS] == pytest.approx([30, 30 * 8192, 10, 10 * 8192, 40, 40 * 4096])
    assert (found.transactions, found.cpu_cores, found.cores, found.log_known) == (20, 2, 8, True)
    assert (found.pool_bytes, found.database_bytes, found.read_ms, found.log_ms) == (20 * GIB, 100 * GIB, 6, 0.5)


def test_windows_are_those_that_ask_for_most_by_each_measure(demand):
    def file_io(n):
        reads, writes, log = (1 + 9 * (begin <= n < begin + 60) for begin in (60, 150, 220))
        data = times(times(DATA, reads, "reads", "read_bytes"), writes, "writes", "write_bytes")
        return {"data": data, "log": times(LOG, 1 + (log - 1) / 18, "writes", "write_bytes")}

    found = demand(320, file_io=file_io).windows
    assert [one.because for one in found] == ["ios_per_s", "writes_per_s", "log_writes_per_s"]
    assert [from_start(one) for one in found] == [60, 150, 220]
    assert found[1].mean("writes") == pytest.approx(10 * 50 / 15)


def test_a_burst_that_overlaps_the_busiest_window_is_played_whole(demand):
    def file_io(n):
        data = times(DATA, 1 + 9 * (100 <= n < 160), "reads", "read_bytes")
        return {"data": times(data, 1 + 4 * (150 <= n < 180), "writes", "write_bytes"), "log": LOG}

    found = demand(file_io=file_io).windows
    assert [one.because for one in found] == ["ios_per_s", "writes_per_s"]
    assert from_start(found[0]) == pytest.approx(100, abs=5) and 120 <= from_start(found[1]) <= 150


NIGHT, REBUILD = range(300, 360), range(500, 560)


def of_day(n, *, backup=0.0, rebuild=0.0):
    """An interval of two and a half hours with a busy quarter; a backup reads `backup` MB/s in large pieces, a rebuild
    of an index writes `rebuild` MB/s of data and of log."""
    busy = 1 + 2 * (100 <= n < 160)
    data = times(DATA, busy, "reads", "read_bytes", "writes", "write_bytes")
    log = times(LOG, busy, "writes", "write_bytes")
    if n in NIGHT:
        data = data | {
            "reads": data["reads"] + backup * LENGTH,
            "read_bytes": data["read_bytes"] + backup * LENGTH * 1e6,
        }
    if n in REBUILD:
        count, size = rebuild * LENGTH * 2, rebuild * LENGTH * 1e6
        data = data | {"writes": data["writes"] + count, "write_bytes": data["write_bytes"] + size}
        log = log | {"writes": log["writes"] + count / 8, "write_bytes": log["write_bytes"] + size}
    return {"data": data, "log": log}


def test_a_backup_at_night_is_a_window_by_bytes_read(demand):
    found = demand(600, file_io=lambda n: of_day(n, backup=15.0))
    assert [(one.because, from_start(one)) for one in found.windows] == [("ios_per_s", 100), ("read_bytes_per_s", 300)]
    peaks = {one.measure: one for one in found.peaks}
    assert peaks["read_bytes_per_s"].per_s == pytest.approx(15e6, rel=0.01) and len(peaks) == 7
    assert all(one.played == pytest.approx(one.per_s) for one in found.peaks)
    assert found.beyond is None, "no other window asks for more of anything"


def test_a_rebuild_of_an_index_is_a_window_by_bytes_written(demand):
    found = demand(600, file_io=lambda n: of_day(n, rebuild=2.0))
    assert [(one.because, from_start(one)) for one in found.windows] == [("ios_per_s", 100), ("write_bytes_per_s", 500)]
    assert all(one.played == pytest.approx(one.per_s) for one in found.peaks), "those of the log are in the same window"


def test_what_is_only_a_little_more_is_no_window_of_its_own(demand):
    slightly = (MORE - 0.02) * 150 * 8192 * 3
    data = lambda n: of_day(n)["data"] | ({"read_bytes": slightly} if n in NIGHT else {})  # noqa: E731
    found = demand(600, file_io=lambda n: {"data": data(n), "log": LOG})
    [peak] = [one for one in found.peaks if one.measure == "read_bytes_per_s"]
    assert len(found.windows) == 1 and peak.per_s == pytest.approx(peak.played * (MORE - 0.02))


def test_a_window_that_asks_for_several_things_at_once_is_played_too(demand):
    """Reads peak in one quarter, bytes written in another; in a third both are high, and none of them highest."""

    def file_io(n):
        reads = 20 * (60 <= n < 120) + 14 * (300 <= n < 360) + 1
        large = 20 * (180 <= n < 240) + 14 * (300 <= n < 360) + 1
        return {"data": times(times(DATA, reads, "reads", "read_bytes"), large, "write_bytes"), "log": LOG}

    found = demand(420, file_io=file_io)
    windows = [(one.because, from_start(one)) for one in found.windows]
    assert windows == [("ios_per_s", 60), ("write_bytes_per_s", 180), ("together", 300)] and found.beyond is None


@given(st.lists(st.tuples(*[st.integers(0, 100)] * 6), min_size=8, max_size=40), st.integers(2, 5))
def test_the_peak_of_every_measure_is_played(rows, length):
    columns = {name: np.array([row[place] for row in rows], dtype=float) for place, name in enumerate(COLUMNS)}
    seconds = np.arange(len(rows), dtype=float)
    asked = WindowSearch(SimpleNamespace(start=seconds, end=seconds + 1, seconds=np.ones(len(rows))), columns, length)
    windows = asked.windows()
    assert windows[0].because == "ios_per_s" and len(windows) <= len(MEASURES) + MOST_TOGETHER
    begins = range(len(rows) - ceil(SEEN_SHARE * length) + 1)
    for peak in asked.peaks(windows):
        of = sum(columns[name] for name in MEASURES[peak.measure])
        assert peak.per_s == pytest.approx(max(of[n : n + length].mean() for n in begins))
        assert peak.per_s <= MORE * peak.played * (1 + 1e-9)
    together = sum(one.because == "together" for one in windows)
    beyond = asked.unplayed_window(windows)
    assert beyond is None or 0 < beyond.share <= (1 if together == MOST_TOGETHER else TOGETHER) + 1e-9


def test_a_measure_that_is_highest_in_the_busiest_window_gets_no_other(demand):
    file_io = lambda n: {  # noqa: E731
        "data": times(DATA, 1 + (60 <= n < 120), "reads", "read_bytes", "writes", "write_bytes"),
        "log": times(LOG, 1 + (60 <= n < 120), "writes", "write_bytes"),
    }
    assert [from_start(one) for one in demand(file_io=file_io).windows] == [60]


def test_of_a_short_profile_all_is_the_window(demand):
    [window] = demand(20).windows
    assert (window.begin, window.seconds) == (AT.timestamp(), 300)


def test_what_was_not_seen_is_no_piece(demand):
    lost = {"reads": None, "read_bytes": None}
    data = lambda n: DATA | lost if n == 30 else times(DATA, 2 - n / 60, "reads", "read_bytes")  # noqa: E731
    [window] = demand(60, left_out=range(40, 45), file_io=lambda n: {"data": data(n), "log": LOG}).windows
    assert len(window.pieces) == 60 - 5 - 1 and window.seconds == 54 * LENGTH
    assert window.pieces[-1].reads == pytest.approx(10 * (2 - 59 / 60))


def test_a_log_on_the_same_device_is_not_known_apart(demand):
    found = demand(file_io=lambda n: {"device": DATA}, server=lambda n: {"log_flushes": 30.0, "log_bytes": 1e6})
    assert not found.log_known
    assert [found.windows[0].mean(name) for name in COLUMNS] == pytest.approx(
        [10, 10 * 8192, 50 / 15, 50 / 15 * 8192, 0, 0]
    )
    assert found.read_ms is found.cpu_cores is found.pool_bytes is None


def test_flushes_stand_for_writes_of_a_log_whose_files_are_not_seen(demand):
    found = demand(file_io=lambda n: {"data": DATA}, server=lambda n: {"log_flushes": 30.0, "log_bytes": 3e6})
    assert found.log_known
    assert [found.windows[0].mean(name) for name in ("writes", "log_writes", "log_bytes")] == pytest.approx(
        [50 / 15, 2, 2e5]
    )


def test_a_log_without_its_bytes_is_among_the_writes_of_data(demand):
    found = demand(file_io=lambda n: {"data": DATA, "log": {"writes": 600.0}})
    assert not found.log_known
    assert found.windows[0].mean("writes") == pytest.approx(650 / 15)


@pytest.mark.parametrize(
    ("file_io", "words"),
    [
        ({"data": {"reads": 150.0, "writes": 50.0}}, "does not record"),
        ({"data": {"size_bytes": 1e9}}, "does not record its reads and writes"),
    ],
)
def test_unknown_io_is_a_sentence(demand, file_io, words):
    with pytest.raises(StallmarkError, match=words):
        demand(file_io=lambda n: file_io)


def test_a_recording_of_sar_can_be_sized_where_its_reads_are_known(tmp_path):
    classes = {"vda": FileClass.DATA}
    import_profile([SAMPLES / "sadf.json"], tmp_path / "one", Wanted(classes=classes))
    assert demand_of(tmp_path / "one").windows[0].mean("reads") > 0
    more = tmp_path / "more.json"
    second = '"disk": [{"disk-device": "vdb", "tps": 9.0, "rkB": 4.0, "wkB": 4.0},'
    more.write_text((SAMPLES / "sadf.json").read_text().replace('"disk": [', second))
    import_profile([more], tmp_path / "two", Wanted(classes=classes | {"vdb": FileClass.LOG}))
    with pytest.raises(StallmarkError, match=r"reads from writes \(.*sar counts a device.*without --class"):
        demand_of(tmp_path / "two")


def test_samples_too_far_apart_for_a_window_are_refused_with_one_that_is_long_enough(tmp_path):
    folder = write_made_profile(tmp_path / "p", 240, interval_s=600.0)
    spread = {
        name: table.set_column(0, "start", spaced(table["start"])).set_column(1, "end", spaced(table["end"]))
        for name, table in intervals_of(folder).tables().items()
    }
    manifest = read_profile(folder)
    write_imported(tmp_path / "q", manifest, spread)
    with pytest.raises(StallmarkError, match=r"every 10 minutes, too few .* replay\.window=20min"):
        demand_of(tmp_path / "q")
    assert len(demand_of(tmp_path / "q", window_s=1200).windows[0].pieces) == 2


def spaced(times):
    """Ten minutes in place of 15 s."""
    begin = int(AT.timestamp() * 1e6)
    return pa.array((times.cast(pa.int64()).to_numpy() - begin) * 40 + begin).cast(times.type)


def test_a_profile_has_a_mark_that_changes_when_it_goes_on(tmp_path):
    first, same, longer = (
        write_made_profile(tmp_path / name, count) for name, count in (("a", 80), ("b", 80), ("c", 81))
    )
    assert demand_of(first).profile == demand_of(same).profile != demand_of(longer).profile


@needs_odbc
@pytest.mark.thorough
def test_the_demand_of_a_day_is_that_of_its_busiest_hour(tmp_path, monkeypatch):
    production = Production(now=12 * HOUR, outages=[(14 * HOUR, 14 * HOUR + 120)])
    source = direct(production, monkeypatch)
    Collection(source, tmp_path / "day", 4 * HOUR, False, production.clock()).run()
    found = demand_of(tmp_path / "day")
    window, factor = found.windows[0], load(14 * HOUR)
    assert abs(window.begin - 1_772_409_600.0 - 14 * HOUR) < 1800 and factor == pytest.approx(
        max(load(t) for t in range(0, int(DAY), 600))
    )
    data = [one for one in FILES if one.file_class != "log"]
    log = [one for one in FILES if one.file_class == "log"]
    assert window.mean("reads") == pytest.approx(factor * sum(one.reads for one in FILES), rel=0.01)
    assert window.mean("write_bytes") == pytest.approx(
        factor * sum(one.writes * one.write_kib * 1024 for one in data), rel=0.01
    )
    assert window.mean("log_writes") == pytest.approx(factor * sum(one.writes for one in log), rel=0.01)
    assert found.cpu_cores == pytest.approx(factor * COUNTERS["cpu_ms"] / 1000, rel=0.01)
