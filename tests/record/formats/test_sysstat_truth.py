"""iostat and sadf against a simulated machine: disks with what stands on them, gone or wrapped, idle or busy."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from tests.support import recorders
from tests.support.recorders import Moment

from stallmark.analysis.profile_intervals import intervals_of
from stallmark.errors import StallmarkError
from stallmark.record.formats import import_profile
from stallmark.record.formats.amounts import Wanted
from stallmark.record.formats.dates import Schedule

pytestmark = pytest.mark.thorough

BEGIN, STEP_S = 1772445600.0, 15
ABOVE: Mapping[str, Sequence[str]] = {
    "sda": ("sda1", "sda2", "dm-0"), "sdb": ("md127",), "nvme0n1": ("nvme0n1p1", "vg-data"), "xvdf": ("xvdf1",),
    "cciss/c0d0": ("cciss/c0d0p1", "dm-3"), "vdb": ("bcache0", "loop4"), "xvdq1": (), "dasda": ("dasda1",),
}  # fmt: skip
"""The devices that may be on a disk and count its I/O again. A partition without its disk, xvdq1, is a disk itself."""


@dataclass(frozen=True)
class Machine:
    """Counters by device, the reads of each interval on the disks, and the paths to them of an old kernel."""

    moments: list[Moment]
    reads: list[int]


@st.composite
def machines(draw: st.DrawFn) -> Machine:
    disks = draw(st.lists(st.sampled_from(sorted(ABOVE)), min_size=1, max_size=4, unique=True))
    above = {disk: draw(st.lists(st.sampled_from(ABOVE[disk]), unique=True)) if ABOVE[disk] else [] for disk in disks}
    by_path = "nvme0n1" in disks and draw(st.booleans())  # the kernel counts at the paths, not at the disk
    counters: dict[str, list[int]] = {name: [0, 0] for disk in disks for name in (disk, *above[disk])}
    paths = ("nvme0c0n1", "nvme0c1n1") if "nvme0n1" in disks and (by_path or draw(st.booleans())) else ()
    counters |= {name: [0, 0] for name in paths}
    moments, reads, cpu_s = [], [], 0.0
    for place in range(draw(st.integers(3, 8))):
        cells = {name: (float(ios), size * 1024.0, float(ios), 0.0, 0.0, 0.0) for name, (ios, size) in counters.items()}
        moments.append(Moment(BEGIN + STEP_S * place, cells, cpu_s))
        cpu_s += draw(st.integers(0, 2 * STEP_S))
        reads.append(0)
        for disk in disks:
            ios = draw(st.sampled_from((0, 0, 15, 3000, 150_000)))
            reads[-1] += ios
            for name in (disk, *above[disk]):
                counts_nothing = name == "nvme0n1" and by_path
                counters[name] = [now + more for now, more in zip(counters[name], (ios, ios * 8), strict=True)]
                if counts_nothing:
                    counters[name] = [0, 0]
            if disk == "nvme0n1" and paths:
                for path, part in zip(paths, (ios - ios // 3, ios // 3), strict=True):
                    counters[path] = [counters[path][0] + part, counters[path][1] + part * 8]
    return Machine(moments, reads[:-1])


def imported(text: str, **wanted: object) -> dict[str, list[float | None]]:
    with TemporaryDirectory() as place:
        path = Path(place) / "file"
        path.write_text(text)
        import_profile([path], Path(place) / "profile", Wanted(**wanted))  # type: ignore[arg-type]
        file_io = intervals_of(Path(place) / "profile").tables()["file_io"]
        return {name: file_io.column(name).to_pylist() for name in ("reads", "read_bytes", "read_stall_ms")}


@settings(max_examples=20, deadline=None)
@given(machine=machines(), zeros=st.booleans(), cut=st.booleans())
def test_each_io_of_iostat_counts_once(machine: Machine, zeros: bool, cut: bool):
    assume(zeros or any(machine.reads))  # a device that never worked is in no report
    text = recorders.iostat_text(machine.moments, zeros=zeros)
    found = imported(text.rstrip("\n") if cut else text)
    # Of a file without idle devices the last report may lack some, and nothing shows that it is whole.
    truth = machine.reads[: len(found["reads"])]
    assert len(truth) >= len(machine.reads) - (cut and not zeros)
    assert found["reads"] == pytest.approx(truth, abs=0.01 * STEP_S * 8)
    assert found["read_bytes"] == pytest.approx([ios * 8192 for ios in truth], abs=0.01 * STEP_S * 8 * 1024)
    as_json = imported(recorders.iostat_json(machine.moments))
    assert as_json["reads"] == pytest.approx(machine.reads, abs=0.01 * STEP_S * 8)
    without = recorders.iostat_text(machine.moments, zeros=zeros, times=False)
    assert imported(without, schedule=Schedule(BEGIN, STEP_S))["reads"][: len(truth)] == found["reads"]


@settings(max_examples=20, deadline=None)
@given(machine=machines(), gone=st.integers(2, 8))
def test_a_disk_that_is_pulled_leaves_the_others_known(machine: Machine, gone: int):
    """A disk of its own: nothing stands on it."""
    pulled = {"sdz": (15.0, 8192.0, 15.0, 0.0, 0.0, 0.0), "sdy": (0.0,) * 6}  # the second is idle: rows of zeros
    moments = []
    for place, moment in enumerate(machine.moments):
        more = {name: tuple(value * place for value in values) for name, values in pulled.items()}
        devices = moment.devices | {name: more[name] for name in more if name == "sdy" or place < gone}
        moments.append(Moment(moment.at, devices, moment.cpu_s))
    text = "".join(
        recorders.iostat_text(
            [Moment(before.at, {name: before.devices[name] for name in after.devices}, before.cpu_s), after]
        ).partition("\n\n\n")[2]
        for before, after in pairwise(moments)
    )
    first = recorders.iostat_text(moments[:1])
    found = imported(first + text)
    truth = [ios + 15 * (place + 1 < gone) for place, ios in enumerate(machine.reads)]
    assert found["reads"] == pytest.approx(truth, abs=0.01 * STEP_S * 8)


@settings(max_examples=20, deadline=None)
@given(machine=machines(), wrapped=st.integers(0, 6), fell=st.integers(1, 10_000))
def test_an_interval_in_which_a_counter_wrapped_is_not_known_and_no_other(machine: Machine, wrapped: int, fell: int):
    moments = [
        Moment(moment.at, {**moment.devices, "sdw": (0.0,) * 6}, moment.cpu_s) for moment in machine.moments
    ]  # fmt: skip
    text = recorders.sadf_json(moments)
    place = min(wrapped, len(moments) - 2)
    rows = text.split('"disk-device": "sdw"')
    rows[place + 1] = rows[place + 1].replace('"rkB": 0.0', f'"rkB": {(2**32 - fell) / 2 / STEP_S:.2f}', 1)
    found = imported('"disk-device": "sdw"'.join(rows))
    truth = [ios * 8192 if row != place else None for row, ios in enumerate(machine.reads)]
    known = [value for value in truth if value is not None]
    got = [value for value in found["read_bytes"] if value is not None]
    assert got == pytest.approx(known, abs=0.01 * STEP_S * 9 * 1024)


@settings(max_examples=10, deadline=None)
@given(machine=machines(), place=st.integers(0, 8))
def test_shares_of_zeros_are_not_busy(machine: Machine, place: int):
    lines = recorders.iostat_text(machine.moments).splitlines()
    shares = [number + 1 for number, line in enumerate(lines) if line.startswith("avg-cpu")]
    place = min(place, len(shares) - 1)
    lines[shares[place]] = "          0.00    0.00    0.00    0.00    0.00    0.00"
    with TemporaryDirectory() as folder:
        path = Path(folder) / "file"
        path.write_text("\n".join(lines) + "\n\n")
        try:
            import_profile([path], Path(folder) / "profile", Wanted())
        except StallmarkError as error:
            raise AssertionError(error) from None
        server = intervals_of(Path(folder) / "profile").tables()["server"]
        ends = [end.timestamp() for end in server.column("end").to_pylist()]
    assert ends == [moment.at for number, moment in enumerate(machine.moments) if number not in (0, place)]
