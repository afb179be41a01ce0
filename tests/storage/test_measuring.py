"""Steps are measured on the device that is meant: a program in fio's place, and fio itself where it is installed."""

import shutil
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from types import SimpleNamespace

import psutil
import pytest
from support.waiting import eventually

from stallmark.errors import StallmarkError
from stallmark.record.manifest.storage import Asked
from stallmark.storage.block_devices import InMemory
from stallmark.storage.emulator import ArrayModel
from stallmark.storage.emulator.arrays import EmulatedArrays
from stallmark.storage.fio import PATTERNS, SHORT_STEPS
from stallmark.storage.probe import in_steps, measure
from stallmark.storage.probe_file import LEAST_BYTES, ProbeFile, make_probe_file
from stallmark.storage.programs import can_probe

MODEL = ArrayModel(4, 5, 5, 1, 100)
READ = Asked(PATTERNS["8k-random-read"], 8)


@pytest.fixture
def file(tmp_path):
    return ProbeFile(tmp_path / "file", LEAST_BYTES, ours=True)


@dataclass
class Devices:
    """Emulated ones, which see so many I/Os of each step."""

    sees: int
    engaged: ArrayModel | None = MODEL
    reads: int = 0

    def environment(self):
        return {"LD_PRELOAD": "emulation.so"}

    def model(self, name):
        return self.engaged

    def counters(self):
        found = {"data": SimpleNamespace(reads=self.reads, writes=0)}
        self.reads += self.sees
        return found


def test_a_real_device_is_measured_without_any_emulation_of_ours(fake, file, monkeypatch):
    monkeypatch.setenv("LD_PRELOAD", "")
    monkeypatch.setenv("STALLMARK_EMULATED_ARRAYS", "/somewhere")
    [step] = measure(file, [READ], 1)
    assert (step.iops, step.mean_ms) == (8000, 1)
    assert (fake / "preload").read_text() == "none"


def test_an_emulated_device_must_have_seen_the_probe(fake, file):
    [step] = measure(file, [READ], 1, Devices(8000))
    assert step.iops == 8000 and (fake / "preload").read_text() == "emulation.so"
    with pytest.raises(StallmarkError, match=r"saw 100 of the 8,000 I/Os of its probe, .* must not be mixed up"):
        measure(file, [READ], 1, Devices(100))


def test_one_that_is_not_slow_at_the_moment_is_refused(fake, file):
    with pytest.raises(StallmarkError, match="not slow at the moment"):
        measure(file, [READ], 1, Devices(8000, engaged=None))


def test_nothing_is_written_to_what_is_not_ours(fake, file):
    foreign = ProbeFile(file.path, file.bytes, ours=False)
    with pytest.raises(StallmarkError, match="nothing is ever written to it"):
        measure(foreign, [Asked(PATTERNS["8k-random-write"], 1)], 1)


@pytest.mark.parametrize(
    ("complaint", "sentence"),
    [
        ("fio: looks like your file system does not support direct=1/buffered=0", "could not open the file for direct"),
        ("fio: io_u error: No space left on device", "ran out of space"),
        ("fio: something else", r"fio failed \(fio: something else\)"),
    ],
)
def test_what_goes_wrong_is_a_sentence(fake, file, monkeypatch, complaint, sentence):
    monkeypatch.setenv("FAIL", complaint)
    with pytest.raises(StallmarkError, match=sentence) as refused:
        measure(file, [READ], 1)
    assert "\n" not in str(refused.value)


KILLED_DRIVER = """
import sys
from pathlib import Path
from stallmark.record.manifest.storage import Asked
from stallmark.storage.fio import PATTERNS
from stallmark.storage.probe import measure
from stallmark.storage.probe_file import LEAST_BYTES, ProbeFile
measure(ProbeFile(Path("file"), LEAST_BYTES, ours=True), [Asked(PATTERNS["8k-random-read"], 8)], 600)
"""


@pytest.fixture
def endless(fake, monkeypatch) -> Path:
    """The file in which a fio that does not end writes the number of its process."""
    monkeypatch.setenv("ENDLESS", "1")
    return fake / "pid"


def test_its_io_ends_with_a_driver_that_is_killed(endless):
    with subprocess.Popen([sys.executable, "-c", KILLED_DRIVER]) as driver:
        program = psutil.Process(int(eventually(lambda: endless.exists() and endless.read_text())))
        driver.kill()
    eventually(lambda: not program.is_running(), "the end of fio")


def test_its_io_ends_when_the_guard_is_killed(endless, file):
    def kill_guard():
        program = psutil.Process(int(eventually(lambda: endless.exists() and endless.read_text())))
        program.parent().kill()
        eventually(lambda: not program.is_running(), "the end of fio")

    with ThreadPoolExecutor() as pool, pytest.raises(StallmarkError, match=r"was killed by signal 9 \(SIGKILL\)"):
        ended = pool.submit(kill_guard)
        measure(file, [READ], 600)
    ended.result()


def test_its_io_is_ended_when_it_hangs(endless, file, monkeypatch):
    monkeypatch.setattr("stallmark.storage.programs._STEP_GRACE_S", 1.0)
    with pytest.raises(StallmarkError, match="the device hangs"):
        measure(file, [READ], 0.5)
    assert not psutil.pid_exists(int(endless.read_text()))


def test_without_fio_it_says_how_to_come_by_it(tmp_path, monkeypatch):
    monkeypatch.setenv("PATH", str(tmp_path))
    assert "needs fio, which is not on the PATH: install it (Debian and Ubuntu: apt install fio" in (can_probe() or "")
    with pytest.raises(StallmarkError, match="needs fio"):
        in_steps(tmp_path / "new", SHORT_STEPS, seconds=1, size_bytes=LEAST_BYTES)
    assert not (tmp_path / "new").exists(), "no file is written for nothing"


needs_fio = pytest.mark.skipif(can_probe() is not None, reason=can_probe() or "")


def test_memory_is_no_storage(fake, monkeypatch):
    def in_memory(folder):
        raise InMemory(f"{folder} is in memory (tmpfs): no device is behind it.")

    monkeypatch.setattr("stallmark.storage.probe.device_behind", in_memory)
    with pytest.raises(
        StallmarkError, match=r"is in memory \(tmpfs\): no device is behind it, and a probe would measure"
    ):
        in_steps(fake / "new", SHORT_STEPS, seconds=1, size_bytes=LEAST_BYTES)
    assert not (fake / "new").exists()


@needs_fio
def test_the_short_probe_of_this_machine(tmp_path, monkeypatch):
    monkeypatch.setattr("stallmark.storage.probe.refuse_memory", lambda folder: None)
    found = in_steps(tmp_path / "new", SHORT_STEPS, seconds=0.4, size_bytes=LEAST_BYTES)
    assert [(step.pattern.name, step.outstanding) for step in found.steps] == [
        ("8k-random-read", 1), ("8k-random-read", 8), ("8k-random-read", 32), ("256k-sequential-read", 1),
        ("8k-random-write", 8),
    ]  # fmt: skip
    assert not found.emulated and found.tool.startswith("fio-") and not (tmp_path / "new").exists()
    for step in found.steps:
        assert step.ios * step.pattern.block_bytes == step.bytes > 0
        assert sum(count for _, count in step.histogram) == step.ios


@needs_fio
@pytest.mark.skipif(shutil.which("cc") is None or sys.platform != "linux", reason="needs Linux and a C compiler")
def test_fio_meets_the_emulated_device(tmp_path):
    disk, elsewhere = tmp_path / "disk", tmp_path / "elsewhere"
    disk.mkdir()
    model = ArrayModel(1, 20, 20, 1, 100)
    with EmulatedArrays.create(tmp_path / "state", {"raw": disk}, {"raw": model}, build_dir=tmp_path / "b") as devices:
        with make_probe_file(disk, LEAST_BYTES) as file:
            [step] = measure(file, [Asked(READ.pattern, 2)], 1, devices)
        with (
            make_probe_file(elsewhere, LEAST_BYTES) as file,
            pytest.raises(StallmarkError, match="must not be mixed up"),
        ):
            measure(file, [Asked(READ.pattern, 1)], 0.3, devices)
    assert step.iops < 52, "one disk does 50 a second at most, and finishes the queue after its time"
    assert step.mean_ms > 20
