"""Raw loads of a run, with the real fio and our own program."""

import os
import signal
import subprocess
import sys
import textwrap
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from types import SimpleNamespace

import psutil
import pytest
from support.emulated_bench import Bench, bench, build_dir
from support.manifests import a_manifest
from support.waiting import eventually

from stallmark.errors import StallmarkError
from stallmark.experiment.loads_beside import RawLoads, refuse_impossible
from stallmark.record.manifest.storage import DirectIo
from stallmark.record.manifest.workload import Load, Step
from stallmark.record.reader import Record
from stallmark.record.writer import RecordWriter
from stallmark.scenarios.load import RawLoad
from stallmark.storage import arrivals
from stallmark.storage.probe_file import remove_leftovers
from stallmark.storage.programs import can_probe

__all__ = ["bench", "build_dir"]
pytestmark = [
    pytest.mark.server,
    pytest.mark.skipif(sys.platform == "win32", reason="There are no raw loads on Windows."),
]
needs_fio = pytest.mark.skipif(can_probe() is not None, reason=can_probe() or "")
NO_ARRAY = SimpleNamespace(array=None, models={})
SIZE = "32MiB"


def load(name: str, *counts: int, **keys) -> Load:
    return Load(name=name, kind="raw", counts=counts, cells=max(counts), raw=RawLoad(size=SIZE, **keys).plan())


class Running:
    """Raw loads on a folder, with a clock that begins when they do."""

    def __init__(self, folder: Path, data: Path, *loads: Load, devices=NO_ARRAY):
        steps = tuple(
            Step(name=str(at), users=1, begin_s=at, measure_s=at, end_s=at + 1) for at in range(len(loads[0].counts))
        )
        self.folder, self.data = folder, data
        self.writer = RecordWriter(folder, a_manifest().changed(loads=loads, steps=steps))
        self._began = time.monotonic()
        engine = SimpleNamespace(directories=lambda: {"data": data}, devices=devices)
        self.raw = RawLoads(loads, engine, self.writer, self.clock)  # type: ignore[arg-type]
        self.raw.prepare()

    def clock(self) -> float:
        return time.monotonic() - self._began

    def until(self, holds: Callable[[], object]) -> None:
        def holds_after_a_look() -> object:
            self.raw.poll()
            return holds()

        eventually(holds_after_a_look)

    def rows(self) -> list[dict]:
        return Record(self.folder).table("raw_io").to_pylist()

    def ios(self, name: str) -> int:
        return sum(row["reads"] + row["writes"] for row in self.rows() if row["load"] == name)

    def programs(self) -> list[psutil.Process]:
        """Return the programs at work on files of ours."""
        return programs_on(self.data)


def programs_on(folder: Path) -> list[psutil.Process]:
    found = []
    for process in psutil.process_iter(["name", "cmdline"]):
        order = process.info["cmdline"] or []
        if (process.info["name"] == "fio" or arrivals.__name__ in order) and any(str(folder) in part for part in order):
            found.append(process)
    return found


@pytest.fixture
def data(tmp_path, monkeypatch) -> Path:
    """A folder that may be in memory, as those of tests are."""
    monkeypatch.setattr("stallmark.experiment.loads_beside.refuse_memory", lambda folder: None)
    (tmp_path / "data").mkdir()
    (tmp_path / "data" / "tried").touch()
    try:
        os.close(os.open(tmp_path / "data" / "tried", os.O_RDONLY | getattr(os, "O_DIRECT", 0)))
    except OSError:
        pytest.skip("the file system of the temporary directory has no direct I/O")
    (tmp_path / "data" / "tried").unlink()
    return tmp_path / "data"


@pytest.fixture
def run(tmp_path, data) -> Iterator[Callable[..., Running]]:
    made: list[Running] = []

    def of(*loads: Load, **more) -> Running:
        made.append(Running(tmp_path / f"run{len(made)}", data, *loads, **more))
        return made[-1]

    yield of
    for one in made:
        one.raw.finish()
        assert not programs_on(data)


@needs_fio
def test_loads_run_as_the_steps_say_and_leave_nothing(run, data):
    one = run(load("scan", 1, 0, raw="scan", rate="20 MB/s"), load("web", 2, 1, raw="web", rate="100/s"))
    assert len(list(data.rglob("*.data"))) == 3 and not one.programs()
    one.raw.set({"scan": 1, "web": 2})
    one.until(lambda: {(row["load"], row["cell"]) for row in one.rows()} == {("scan", 1), ("web", 1), ("web", 2)})
    assert len(one.programs()) == 3
    one.raw.set({"web": 1})
    one.until(lambda: len(one.programs()) == 1)
    one.raw.finish()
    assert one.raw.ended == {} and list(data.rglob("*")) == []
    rows = one.rows()
    assert len({(row["second"], row["load"], row["cell"]) for row in rows}) == len(rows)
    for row in rows:
        assert row["load"] == "web" or row["waiting_counts"] is None, "nothing of a scan is ever due"
        assert sum(row["latency_counts"]) == row["reads"] and row["writes"] == row["write_bytes"] == 0
        assert not row["reads"] or row["read_bytes"] / row["reads"] >= 512
    assert any(row["waiting_counts"] is not None for row in rows)
    scans = [row for row in rows if row["load"] == "scan"]
    assert sum(row["read_bytes"] for row in scans) == sum(row["reads"] for row in scans) * 262_144


@needs_fio
def test_the_outcome_of_direct_io_is_recorded(run, monkeypatch):
    monkeypatch.setattr("stallmark.experiment.loads_beside.direct_io", lambda folder: DirectIo("unknown", "fuse"))
    [recorded] = run(load("scan", 1, raw="scan")).writer.manifest.loads
    assert recorded.raw.direct_io == DirectIo("unknown", "fuse")


@pytest.mark.parametrize("rate", [pytest.param({}, marks=needs_fio), {"rate": "100/s"}])
def test_writes_are_written_down_as_such(run, rate):
    one = run(load("log", 1, raw="8k-random-write", outstanding=2, **rate))
    one.raw.set({"log": 1})
    one.until(lambda: one.ios("log"))
    one.raw.finish()
    assert all(row["reads"] == 0 for row in one.rows()) and sum(row["write_bytes"] for row in one.rows()) >= 8192


@needs_fio
def test_a_load_that_dies_is_told_and_the_others_go_on(run):
    one = run(load("scan", 2, raw="scan", rate="5 MB/s"), load("web", 1, raw="web", rate="50/s"))
    one.raw.set({"scan": 2, "web": 1})
    one.until(lambda: one.ios("web") and one.ios("scan"))
    victim = next(each for each in one.programs() if "--rw=read" in each.cmdline())
    victim.kill()
    one.until(lambda: one.raw.ended)
    assert list(one.raw.ended) == ["scan"] and "was killed" in one.raw.ended["scan"][1]
    before = one.ios("web")
    one.until(lambda: one.ios("web") > before)
    one.raw.set({"scan": 0, "web": 1})
    one.raw.set({"scan": 2, "web": 1})
    one.until(lambda: len(one.programs()) == 1)


@needs_fio
def test_a_guard_that_is_killed_takes_its_load_along_which_was_told_no_password(run, monkeypatch):
    monkeypatch.setenv("SQLCMDPASSWORD", "hunter2-and-more")
    one = run(load("scan", 1, raw="scan", rate="5 MB/s"))
    one.raw.set({"scan": 1})
    one.until(lambda: one.ios("scan"))
    [program] = one.programs()
    assert "hunter2" not in str(program.environ())
    program.parent().kill()
    one.until(lambda: one.raw.ended)
    assert "its guard was killed by signal 9 (SIGKILL)" in one.raw.ended["scan"][1]
    one.until(lambda: not one.programs())


@pytest.mark.parametrize("asked", [pytest.param({"raw": "scan"}, marks=needs_fio), {"raw": "web", "rate": "9/s"}])
def test_a_load_that_cannot_begin_says_why(run, data, asked):
    one = run(load("it", 1, **asked))
    for file in data.rglob("*.data"):
        file.unlink()
    one.raw.set({"it": 1})
    one.until(lambda: one.raw.ended)
    assert "file" in one.raw.ended["it"][1]
    assert "\n" not in one.raw.ended["it"][1]


@needs_fio
def test_a_load_whose_reports_cannot_be_read_has_ended_early(run, monkeypatch):
    says = [sys.executable, "-c", "import time; print('{', '}', sep=chr(10), flush=True); time.sleep(600)"]
    monkeypatch.setattr("stallmark.experiment.loads_beside.command", lambda *_: says)
    one = run(load("scan", 1, raw="scan"))
    one.raw.set({"scan": 1})
    one.until(lambda: one.raw.ended)
    assert "fio reports what cannot be read" in one.raw.ended["scan"][1]


@needs_fio
def test_sizes_that_the_device_rounds_up_are_in_the_manifest(run, monkeypatch):
    monkeypatch.setattr("stallmark.experiment.loads_beside.least_direct_bytes", lambda file: 4096)
    one = run(load("web", 1, raw="web"))
    [recorded] = one.writer.manifest.loads
    assert recorded.raw and min(recorded.raw.blocks) == 4096 and recorded.raw.blocks[4096] == pytest.approx(0.68)


@needs_fio
def test_on_the_emulated_array_they_are_counted_apart_from_the_server(run, bench: Bench):
    array = bench.devices
    cluster = bench.data.parents[1]
    one = Running(
        cluster.parent / "run",
        cluster,
        load("web", 1, raw="8k-random-read", rate="50/s"),
        devices=SimpleNamespace(array=array, models={"data": array.model("data")}),
    )
    try:
        assert one.writer.manifest.loads[0].raw.emulated
        assert array.counters()["data"].writes == 0, "the file is written without the array"
        one.raw.set({"web": 1})
        one.until(lambda: one.ios("web"))
        bench.run("fd = os.open(sys.argv[1], DIRECT)\nfor _ in range(7): os.preadv(fd, [block], 0)")
    finally:
        one.raw.finish()
    counted = array.counters()["data"]
    assert counted.raw_reads == one.ios("web") and counted.reads - counted.raw_reads == 7
    assert counted.raw_read_bytes == 8192 * counted.raw_reads and counted.read_bytes == 8192 * counted.reads
    assert 0 < counted.raw_read_ns < counted.read_ns
    assert array.next_interval()["data"].run == 1, "the active set is the server's"


@needs_fio
def test_nothing_is_left_when_stallmark_is_killed(tmp_path, data):
    code = f"""
        import importlib.util, sys, time
        from pathlib import Path
        spec = importlib.util.spec_from_file_location("raw", {str(Path(__file__))!r})
        raw = importlib.util.module_from_spec(spec)
        spec.loader.exec_module(raw)
        one = raw.Running(Path({str(tmp_path / "run")!r}), Path({str(data)!r}),
                          raw.load("web", 2, raw="web", rate="50/s"))
        one.raw.set({{"web": 2}})
        one.until(lambda: one.ios("web"))
        print("running", flush=True)
        time.sleep(600)
    """
    tests = str(Path(__file__).parents[1])
    process = subprocess.Popen(
        [sys.executable, "-c", textwrap.dedent(code)],
        stdout=subprocess.PIPE,
        text=True,
        # A command of another test would remove what is left, if it found the links to it.
        env=os.environ | {"PYTHONPATH": tests, "TMPDIR": str(tmp_path)},
    )
    assert process.stdout and process.stdout.readline() == "running\n"
    assert len(programs_on(data)) == 2
    process.send_signal(signal.SIGKILL)
    process.wait()
    eventually(lambda: not programs_on(data), "fio gone")
    [folder] = data.iterdir()
    assert len(remove_leftovers(folder)) == 2 and not list(folder.iterdir())
    assert Record(tmp_path / "run").table("raw_io").num_rows, "what was written down is kept"


def engine(data: Path | None) -> SimpleNamespace:
    return SimpleNamespace(directories=lambda: {"data": data} if data else {}, devices=NO_ARRAY)


@needs_fio
def test_all_files_of_all_cells_must_have_room(data, monkeypatch):
    plan = RawLoad(raw="web", size="1GiB").plan()
    space = SimpleNamespace(total=100 * 2**30, used=0, free=10 * 2**30)
    monkeypatch.setattr("shutil.disk_usage", lambda folder: space)
    refuse_impossible({"a": (plan, 2), "b": (plan, 3)}, engine(data), False)
    with pytest.raises(StallmarkError, match=r"raw loads cannot run: .* 6.0 GiB to read"):
        refuse_impossible({"a": (plan, 2), "b": (plan, 4)}, engine(data), False)


@needs_fio
def test_a_server_elsewhere_needs_a_folder(tmp_path, data):
    plan = RawLoad(raw="web").plan()
    with pytest.raises(StallmarkError, match=r"raw load web cannot run: folder: .*name a folder"):
        refuse_impossible({"web": (plan, 1)}, engine(None), False)
    with pytest.raises(StallmarkError, match=r"raw load web cannot run: folder: there is no folder .*none"):
        refuse_impossible({"web": (plan.changed(folder=str(tmp_path / "none")), 1)}, engine(None), False)
    (tmp_path / "file").touch()
    with pytest.raises(StallmarkError, match=r"raw load web cannot run: folder: there is no folder .*file"):
        refuse_impossible({"web": (plan.changed(folder=str(tmp_path / "file")), 1)}, engine(None), False)
    refuse_impossible({"web": (plan.changed(folder=str(data)), 1)}, engine(None), False)


def test_on_windows_it_says_that_there_are_none(monkeypatch):
    monkeypatch.setattr(sys, "platform", "win32")
    with pytest.raises(StallmarkError, match="raw load web cannot run on Windows"):
        refuse_impossible({"web": (RawLoad(raw="web").plan(), 1)}, NO_ARRAY, False)
    refuse_impossible({}, NO_ARRAY, False)


def test_without_fio_it_says_how_to_come_by_it(tmp_path, monkeypatch):
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(StallmarkError, match=r"raw load web cannot run: .*needs fio, .*: install it"):
        refuse_impossible({"web": (RawLoad(raw="web").plan(), 1)}, engine(tmp_path), False)


def test_ios_at_a_rate_need_no_fio(data, monkeypatch, tmp_path):
    monkeypatch.setenv("PATH", str(tmp_path))
    refuse_impossible({"web": (RawLoad.model_validate({"raw": "web", "rate": "9/s"}).plan(), 1)}, engine(data), False)
