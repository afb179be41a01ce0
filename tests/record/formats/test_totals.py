"""Every format against counters that are known: rates over the time that was seen give the counters' differences."""

from collections.abc import Callable
from itertools import pairwise
from pathlib import Path
from tempfile import TemporaryDirectory

import pyarrow.compute as pc
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.support import recorders
from tests.support.recorders import IO, Moment

from stallmark.analysis.profile_intervals import intervals_of
from stallmark.record.formats import import_profile
from stallmark.record.formats.amounts import Wanted
from stallmark.record.profile import FileClass, Intervals

pytestmark = pytest.mark.thorough

BEGIN = 1772445600.0  # 2026-03-02 10:00 UTC


@st.composite
def histories(draw: st.DrawFn) -> list[Moment]:
    """Return counters that only rise, of one to three devices, at times 13 to 17 s apart."""
    names = ["sda", "sdb", "nvme0n1"][: draw(st.integers(1, 3))]
    at, devices, cpu_s, batches = BEGIN, {name: [draw(st.integers(0, 10**9))] * 6 for name in names}, 5.0, 0
    moments = []
    for _ in range(draw(st.integers(3, 12))):
        moments.append(Moment(at, {name: tuple(map(float, one)) for name, one in devices.items()}, cpu_s, batches))
        seconds = draw(st.integers(13, 17))
        at += seconds
        cpu_s += draw(st.floats(0, 2)) * seconds
        batches += draw(st.integers(0, 100_000))
        for name in names:
            rise = []
            for _ in ("read", "write"):
                ios = draw(st.integers(0, 50_000))
                rise += [ios, ios * draw(st.integers(1, 64)) * 512, ios * draw(st.integers(0, 50))]
            devices[name] = [before + more for before, more in zip(devices[name], rise, strict=True)]
    return moments


def imported(text: str | bytes, name: str = "file.txt", wanted: Wanted | None = None) -> Intervals:
    with TemporaryDirectory() as place:
        path = Path(place) / name
        path.write_bytes(text.encode() if isinstance(text, str) else text)
        import_profile([path], Path(place) / "profile", wanted or Wanted())
        return intervals_of(Path(place) / "profile")


def total(intervals: Intervals, column: str, held: str = "device") -> float:
    file_io = intervals.tables()["file_io"]
    rows = file_io.filter(pc.equal(file_io.column("file_class"), held))
    assert rows.column(column).null_count == 0
    return float(pc.sum(rows.column(column)).as_py() or 0)


def rise(moments: list[Moment], column: str, names: list[str] | None = None) -> float:
    place = IO.index(column)
    return sum(
        moments[-1].devices[name][place] - moments[0].devices[name][place] for name in names or moments[0].devices
    )


def rounding(moments: list[Moment], column: str) -> float:
    """Return what two decimals of a rate, in kB for bytes, and of a mean in ms may hide."""
    seconds, count = moments[-1].at - moments[0].at, len(moments[0].devices)
    part = 0.005 * seconds * count
    if column.endswith("bytes"):
        return part * 1024 + 1
    if column.endswith("stall_ms"):
        return 0.005 * (rise(moments, column.split("_")[0] + "s") + 1) + 51 * part + 1
    return part + 1e-6


Writer = Callable[[list[Moment]], str]
ROUNDED: list[Writer] = [recorders.iostat_text, recorders.iostat_json, recorders.sadf_json]
EXACT: list[Writer] = [
    recorders.perfmon_csv, recorders.prometheus_json, recorders.open_csv,
]  # fmt: skip


@pytest.mark.parametrize("writer", ROUNDED + EXACT, ids=lambda one: one.__name__)
@settings(max_examples=15, deadline=None)
@given(moments=histories())
def test_counts_are_the_differences_of_the_counters(writer, moments):
    found = imported(writer(moments))
    columns = ["read_bytes", "write_bytes"] if writer is recorders.sadf_json else IO
    for column in columns:
        allowed = rounding(moments, column) if writer in ROUNDED else 1e-6 * rise(moments, column) + 1e-3
        assert total(found, column) == pytest.approx(rise(moments, column), abs=allowed)
    if writer in EXACT:
        server = found.tables()["server"]
        assert pc.sum(server.column("batches")).as_py() == pytest.approx(moments[-1].batches)
        assert pc.sum(server.column("cpu_s")).as_py() == pytest.approx(moments[-1].cpu_s - 5, abs=1e-6)
    seen = found.tables()["file_io"]
    spans = [(a, b) for a, b in zip(seen.column("start").to_pylist(), seen.column("end").to_pylist(), strict=True)]
    assert sum((b - a).total_seconds() for a, b in spans) == pytest.approx(moments[-1].at - moments[0].at)


@settings(max_examples=10, deadline=None)
@given(moments=histories())
@pytest.mark.parametrize("writer", EXACT[:2], ids=lambda one: one.__name__)
def test_what_is_said_of_devices_divides_the_whole(writer, moments):
    classes = dict(zip(moments[0].devices, (FileClass.DATA, FileClass.LOG, FileClass.TEMPDB), strict=False))
    found = imported(writer(moments), wanted=Wanted(classes))
    for name, held in classes.items():
        for column in IO:
            assert total(found, column, str(held)) == pytest.approx(rise(moments, column, [name]), abs=1e-3, rel=1e-6)


@settings(max_examples=15, deadline=None)
@given(moments=histories(), at=st.integers(1, 10))
def test_a_counter_that_began_anew_makes_its_interval_unknown_and_no_other(moments, at):
    at = min(at, len(moments) - 1)

    def anew(moment: Moment) -> Moment:
        counters = zip(moment.devices["sda"], moments[at].devices["sda"], strict=True)
        fallen = {"sda": tuple(value - until - 1 for value, until in counters)}
        return Moment(moment.at, moment.devices | fallen, moment.cpu_s, moment.batches)

    found = imported(recorders.prometheus_json([*moments[:at], *map(anew, moments[at:])]))
    file_io = found.tables()["file_io"]
    starts = [start.timestamp() for start in file_io.column("start").to_pylist()]
    reads = dict(zip(starts, file_io.column("reads").to_pylist(), strict=True))
    for place, (before, after) in enumerate(pairwise(moments)):
        truth = sum(after.devices[name][0] - before.devices[name][0] for name in before.devices)
        value = reads.get(before.at)
        assert value is None if place == at - 1 else value == pytest.approx(truth, abs=1e-3)
