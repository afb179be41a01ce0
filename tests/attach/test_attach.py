"""Foreign rows in a record: by the run's clock, whole or not at all, and refused where their times are in doubt."""

from datetime import UTC, datetime, timedelta
from pathlib import Path
from zoneinfo import ZoneInfo

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from support import external_files
from support import measured as formats
from support.manifests import changed
from support.synthetic import Truth, make_run

from stallmark.attach.attach import Request, Span, Wanted, align, attach
from stallmark.errors import StallmarkError
from stallmark.record.formats.sample import Recorded
from stallmark.record.reader import Record

SAMPLES = Path(__file__).parent / "samples"
START = datetime(2025, 11, 21, 10, 1, tzinfo=UTC)  # of synthetic's first run


@pytest.fixture
def run(tmp_path: Path) -> Path:
    return make_run(tmp_path / "run", Truth(warm_up_s=5, measured_s=55))


def csv(path: Path, stamps: list[str], values: list[float] | None = None) -> Path:
    rows = [f"{stamp},{value}" for stamp, value in zip(stamps, values or range(len(stamps)), strict=True)]
    path.write_text("\n".join(["Time,Read Latency (ms)", *rows]) + "\n")
    return path


def stamps(begin: datetime, count: int, every: float = 1.0, form: str = "%Y-%m-%dT%H:%M:%SZ") -> list[str]:
    return [f"{begin + timedelta(seconds=n * every):{form}}" for n in range(count)]


def test_rows_are_on_the_run_s_clock(run, tmp_path):
    file = csv(tmp_path / "a.csv", stamps(START, 61))
    (attached,) = attach([Record(run)], Wanted(file), Request(name="array A"))
    record = Record(run)
    rows = record.table("external_array_a")
    assert rows.column_names == ["t", "source", "counter", "instance", "unit", "value"]
    assert rows["t"].to_pylist() == rows["value"].to_pylist() == list(range(61))
    assert set(rows["source"].to_pylist()) == {"array A"} and set(rows["unit"].to_pylist()) == {"ms"}
    entry = record.manifest.external["array_a"]
    assert attached.entry == entry and attached.run == "run"
    assert entry.model_dump() == {
        "name": "array A", "file": "a.csv", "format": "csv", "time_zone": "its times carry their offset",
        "offset_s": 0.0, "span": ("2025-11-21T10:01:00.000+00:00", "2025-11-21T10:02:00.000+00:00"), "samples": 61,
        "interval_s": 1.0, "counters": 1, "notes": (), "remarks": (),
    }  # fmt: skip
    assert record.manifest.status == "complete"
    assert not list(run.glob("*.new"))


@given(st.floats(-30, 30).map(lambda s: round(s, 3)))
def test_an_offset_is_added_to_the_file_s_times(offset):
    there = align(
        stamps(START, 61), Recorded(Path("x")), None, offset, [Span(START.timestamp(), START.timestamp() + 60)]
    )
    np.testing.assert_allclose(there.utc - START.timestamp(), np.arange(61) + offset, atol=1e-5)
    assert there.clock.offset_s == offset


@given(
    st.sampled_from(["Europe/Berlin", "America/New_York", "Asia/Kolkata"]),
    st.datetimes(datetime(2020, 1, 1), datetime(2030, 1, 1)).map(lambda m: m.replace(microsecond=0, tzinfo=UTC)),
)
@example("America/New_York", datetime(2020, 1, 2, 4, 56, tzinfo=UTC))  # by day first 1 January, then 1 February
def test_perfmon_round_trip(tmp_path_factory, zone, begin):
    """A run's instants, in local time in Perfmon's file, come back as the same instants."""
    ends = [begin + timedelta(seconds=15 * n) for n in range(20)]
    local = [end.astimezone(ZoneInfo(zone)) for end in ends]
    if len({end.utcoffset() for end in local}) > 1:
        return  # the bias in the header holds for one side of the change only
    path = external_files.perfmon(tmp_path_factory.mktemp("p") / "p.csv", ends, np.full(20, 0.004), zone)
    format, measured = formats.read(Wanted(path))
    run = Span(begin.timestamp(), begin.timestamp() + 300)
    assert format == "perfmon"
    np.testing.assert_allclose(
        align(measured.stamps, measured.file, None, 0.0, [run]).utc, [end.timestamp() for end in ends]
    )


def test_a_file_of_many_runs_gives_each_its_share(tmp_path):
    runs = [make_run(tmp_path / f"{n}", Truth(measured_s=30, sequence=n)) for n in (1, 2, 5)]
    file = csv(tmp_path / "a.csv", stamps(START, 120))
    attached = attach([Record(run) for run in runs], Wanted(file), Request())
    assert [one.run for one in attached] == ["1", "2"]
    assert [one.entry.samples for one in attached] == [36, 36]
    assert not Record(runs[2]).manifest.external
    # A minute around the run stays with it: the clocks may lie apart.
    assert Record(runs[0]).table("external_a")["t"].to_pylist() == list(range(97))


def test_newest_first_is_as_good(run, tmp_path):
    file = csv(tmp_path / "a.csv", stamps(START, 61)[::-1], list(range(61))[::-1])
    attach([Record(run)], Wanted(file), Request())
    rows = Record(run).table("external_a")
    assert rows["t"].to_pylist() == rows["value"].to_pylist() == list(range(61))


def test_the_zone_given_is_stronger_than_perfmon_s_bias(run, tmp_path):
    """A file was seen with the bias of the other season."""
    ends, latency = external_files.disk_of(run)
    file = external_files.perfmon(tmp_path / "p.csv", ends, latency)
    text = file.read_text().replace("(-60)", "(-120)")
    file.write_text(text)
    with pytest.raises(StallmarkError, match="1 h later it would: say with --timezone whose time it is"):
        attach([Record(run)], Wanted(file), Request())
    (attached,) = attach([Record(run)], Wanted(file), Request(zone="Europe/Berlin"))
    assert attached.entry.time_zone == "Europe/Berlin, as given"
    assert attached.entry.name == "SQL01" and attached.entry.samples == 60
    assert set(Record(run).table("external_sql01")["source"].to_pylist()) == {"SQL01"}


def test_no_overlap_names_both_spans(run):
    sentence = (
        r"svc_volumes.csv does not overlap the run: it spans 2014-10-26 06:10:07 to 2014-10-26 06:20:09 UTC, "
        r"the run 2025-11-21 10:01:00 to 2025-11-21 10:02:00 UTC\.$"
    )
    with pytest.raises(StallmarkError, match=sentence):
        attach([Record(run)], Wanted(SAMPLES / "svc_volumes.csv"), Request(zone="UTC"))
    assert not Record(run).manifest.external


@pytest.mark.parametrize("name", ["svc_volumes.csv", "iostat.json", "typeperf_disk.csv", "perfmon_cut_header.csv"])
def test_local_times_without_a_zone(run, name):
    with pytest.raises(StallmarkError, match=r"does not specify the time zone of its times: give it with --timezone"):
        attach([Record(run)], Wanted(SAMPLES / name), Request())


@pytest.mark.parametrize("name", ["sadf.json", "purearray_monitor.csv"])
def test_a_zone_for_times_that_say_their_own(run, name):
    with pytest.raises(StallmarkError, match="say their own offset: leave --timezone out"):
        attach([Record(run)], Wanted(SAMPLES / name), Request(zone="Europe/Berlin"))


def night(run: Path, started: str) -> Record:
    return Record(changed(run, started=started))


def test_summer_time_ends_in_the_run(run):
    """The published file: by its bias its times go back, and by its zone each of them was twice."""
    record = night(run, "2017-10-29T00:59:30+00:00")
    file = Wanted(SAMPLES / "perfmon_summer_time_ends.csv")
    with pytest.raises(StallmarkError, match=r"go back by 3585 s at 2017-10-29 00:00:14 UTC: its clock was set there"):
        attach([record], file, Request())
    with pytest.raises(
        StallmarkError, match=r"was twice in its zone \(Europe/London, as given\), at 2017-10-29 00:59:44"
    ):
        attach([record], file, Request(zone="Europe/London"))


def test_summer_time_ends_before_the_run(run, tmp_path):
    """The hour that was twice is left out, and nothing is in doubt."""
    begin = datetime(2017, 10, 28, 23, 0, tzinfo=UTC)
    london = ZoneInfo("Europe/London")
    instants = [begin + timedelta(seconds=30 * n) for n in range(483)]
    file = csv(tmp_path / "a.csv", [f"{i.astimezone(london):%Y-%m-%d %H:%M:%S}" for i in instants])
    record = night(run, "2017-10-29T03:00:00+00:00")
    (attached,) = attach([record], Wanted(file), Request(zone="Europe/London"))
    assert attached.entry.samples == 3
    assert Record(run).table("external_a")["t"].to_pylist() == [-90, -60, -30, 0, 30, 60]


def test_a_time_that_never_was_betrays_the_wrong_zone(run, tmp_path):
    file = csv(tmp_path / "a.csv", ["2025-03-30 02:30:00", "2025-03-30 02:30:05"])
    with pytest.raises(StallmarkError, match="2025-03-30 02:30:00 never was in Europe/Berlin"):
        attach([Record(run)], Wanted(file), Request(zone="Europe/Berlin"))


def test_day_and_month_are_chosen_by_the_run_and_refused_where_both_fit(run, tmp_path):
    record = night(run, "2025-04-03T10:00:00+00:00")
    begin = datetime(2025, 4, 3, 10, 0, 0)
    for form in ("%m/%d/%Y %H:%M:%S", "%d/%m/%Y %H:%M:%S"):
        file = csv(tmp_path / "a.csv", stamps(begin, 30, form=form))
        (attached,) = attach([record], Wanted(file), Request(zone="UTC", replace=True))
        assert attached.entry.span[0] == "2025-04-03T10:00:00.000+00:00"
    both = [
        Span(d.replace(tzinfo=UTC).timestamp(), d.replace(tzinfo=UTC).timestamp() + 60)
        for d in (begin, datetime(2025, 3, 4, 10))
    ]
    local = stamps(begin, 30, form="%m/%d/%Y %H:%M:%S")
    with pytest.raises(StallmarkError, match=r"can be read as month/day/year and as day.month.year, and both overlap"):
        align(local, Recorded(Path("a.csv")), "UTC", 0.0, both)


def test_attached_twice_under_one_name(run, tmp_path):
    file = csv(tmp_path / "a.csv", stamps(START, 61))
    attach([Record(run)], Wanted(file), Request(name="array A"))
    before = (run / "manifest.json").read_bytes()
    with pytest.raises(StallmarkError, match=r"“array A” is already attached to .*: choose another --name"):
        attach([Record(run)], Wanted(file), Request(name="array A"))
    assert (run / "manifest.json").read_bytes() == before
    attach([Record(run)], Wanted(file), Request(name="Array/A"))  # comes to the same file name
    attach([Record(run)], Wanted(file), Request(name="array A", offset_s=2.5, replace=True))
    entries = Record(run).manifest.external
    assert {slug: (e.name, e.offset_s) for slug, e in entries.items()} == {
        "array_a": ("array A", 2.5),
        "array_a_2": ("Array/A", 0.0),
    }
    assert Record(run).table("external_array_a")["t"].to_pylist()[0] == 2.5


def test_a_record_that_is_not_closed(tmp_path):
    run = make_run(tmp_path / "cut", Truth(measured_s=30, cut_at=20))
    file = csv(tmp_path / "a.csv", stamps(START, 61))
    with pytest.raises(StallmarkError, match="is not closed"):
        attach([Record(run)], Wanted(file), Request())


def test_samples_too_far_apart_to_fall_into_the_run(run, tmp_path):
    file = csv(tmp_path / "a.csv", stamps(START - timedelta(minutes=10), 3, every=1200))
    with pytest.raises(StallmarkError, match="has no sample in the run, though its span"):
        attach([Record(run)], Wanted(file), Request())


@pytest.mark.parametrize("count", [1, 2])
def test_too_few_samples(run, tmp_path, count):
    file = csv(tmp_path / "a.csv", [f"{START:%Y-%m-%dT%H:%M:%SZ}"] * count)
    with pytest.raises(StallmarkError, match=r"fewer than two samples|several rows of one time"):
        attach([Record(run)], Wanted(file), Request())


def test_more_counters_than_there_can_be_are_refused(run, tmp_path, monkeypatch):
    monkeypatch.setattr("stallmark.attach.attach.MOST_COUNTERS", 2)
    rows = [f"{stamp},1,2,3" for stamp in stamps(START, 61)]
    (tmp_path / "a.csv").write_text("\n".join(["Time,a,b,c", *rows]) + "\n")
    with pytest.raises(StallmarkError, match="more than 2 counters"):
        attach([Record(run)], Wanted(tmp_path / "a.csv"), Request())
    (attached,) = attach([Record(run)], Wanted(tmp_path / "a.csv", ("a",)), Request())
    assert attached.entry.counters == 1 and set(Record(run).table("external_a")["counter"].to_pylist()) == {"a"}


def test_a_file_that_grows_while_it_is_read_is_attached_as_it_was(run, tmp_path, monkeypatch):
    file = csv(tmp_path / "a.csv", stamps(START, 61))

    def grown(*arguments):
        csv(file, stamps(START, 90))
        return align(*arguments)

    monkeypatch.setattr("stallmark.attach.attach.align", grown)
    (attached,) = attach([Record(run)], Wanted(file), Request())
    assert attached.entry.samples == 61 and Record(run).table("external_a").num_rows == 61


def test_a_full_disk_leaves_the_record_as_it_was(run, tmp_path, monkeypatch):
    file = csv(tmp_path / "a.csv", stamps(START, 61))
    monkeypatch.setattr(
        "pyarrow.parquet.ParquetWriter.write_table", lambda *a, **k: (_ for _ in ()).throw(OSError(28, "full"))
    )
    before = sorted(run.iterdir())
    with pytest.raises(OSError, match="full"):
        attach([Record(run)], Wanted(file), Request())
    assert sorted(run.iterdir()) == before and not Record(run).manifest.external
