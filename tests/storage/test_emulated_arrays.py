"""The emulated array alone: what it counts (exactly), how slow it is at least, and what it refuses.

An I/O can never end sooner than its service time: lower bounds hold on any machine, upper bounds would not.
"""

from __future__ import annotations

import math
import os
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from pathlib import Path

import pytest

from stallmark.storage.emulator import ArrayCounters, ArrayModel, EmulatedArrayError, EmulatedArrays, NoCompiler, build
from stallmark.storage.emulator.shared import SharedState

pytestmark = pytest.mark.skipif(not sys.platform.startswith("linux"), reason="the emulated array exists on Linux only")

BLOCK = 8192
MIB = 1 << 20
FAST = ArrayModel(spindles=1, read_ms=0, write_ms=0, sync_ms=0, mb_per_s=100_000)
SLOW = ArrayModel(spindles=1, read_ms=20, write_ms=30, sync_ms=40, mb_per_s=100_000)

# Run in a process on the emulated arrays: `block` is aligned as O_DIRECT demands.
PRELUDE = f"""
import mmap, os, sys
block = mmap.mmap(-1, {BLOCK})
DIRECT, BUFFERED, DSYNC = os.O_RDWR | os.O_DIRECT, os.O_RDWR, os.O_RDWR | os.O_DSYNC
"""


@dataclass(frozen=True)
class Bench:
    """Two devices, a file of 4 MiB on each, and a way to run Python code on them."""

    devices: EmulatedArrays
    data: Path
    wal: Path
    state_file: Path

    def start(self, code: str) -> subprocess.Popen[str]:
        return subprocess.Popen(
            [sys.executable, "-c", PRELUDE + code, str(self.data), str(self.wal)],
            env=os.environ | self.devices.environment(),
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )

    def run(self, code: str) -> str:
        process = self.start(code)
        output, errors = process.communicate(timeout=60)
        assert process.returncode == 0, errors
        return output

    def used(self, code: str, device: str = "data") -> ArrayCounters:
        """Return what `code` alone did to a device."""
        before = self.devices.counters()[device]
        self.run(code)
        after = self.devices.counters()[device]
        assert before.flash is None and after.flash is None
        return ArrayCounters(
            **{name: value - getattr(before, name) for name, value in vars(after).items() if name != "flash"}
        )


@pytest.fixture(scope="session")
def build_dir(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("build")


@pytest.fixture
def bench(tmp_path: Path, build_dir: Path) -> Iterator[Bench]:
    cluster, elsewhere = tmp_path / "cluster", tmp_path / "wal elsewhere"
    (cluster / "base").mkdir(parents=True)
    elsewhere.mkdir()
    (cluster / "pg_wal").symlink_to(elsewhere)
    files = cluster / "base" / "1", cluster / "pg_wal" / "1"
    for file in files:
        file.write_bytes(bytes(4 * MIB))
    try:
        os.close(os.open(files[0], os.O_RDONLY | os.O_DIRECT))
    except OSError:
        pytest.skip("the file system of the temporary directory has no direct I/O")
    directories = {"data": cluster, "wal": cluster / "pg_wal"}
    state_file = tmp_path / "state"
    with EmulatedArrays.create(
        state_file, directories, dict.fromkeys(directories, FAST), build_dir=build_dir
    ) as devices:
        yield Bench(devices, *files, state_file)


def ms(nanoseconds: int) -> float:
    return nanoseconds / 1e6


# ---- What is counted ---------------------------------------------------------------------------------------


@pytest.mark.parametrize("model", [FAST, None], ids=["model", "bare"])
def test_direct_io_is_counted_exactly(bench: Bench, model: ArrayModel | None) -> None:
    bench.devices.set_model("data", model)
    used = bench.used(f"""
fd = os.open(sys.argv[1], DIRECT)
for i in range(7): os.preadv(fd, [block], i * {BLOCK})
for i in range(5): os.pwritev(fd, [block, block], i * {BLOCK})
os.readv(fd, [block]); os.lseek(fd, 0, os.SEEK_SET); os.write(fd, block)
os.preadv(fd, [block], {4 * MIB})   # at the end of the file: nothing to read
try: os.pwritev(fd, [block], 1)     # not aligned: fails
except OSError: pass
os.fsync(fd); os.fdatasync(fd)
""")
    assert (used.reads, used.read_bytes) == (8, 8 * BLOCK)
    assert (used.writes, used.write_bytes) == (6, 11 * BLOCK)
    assert used.syncs == 2
    assert used.read_ns > 0
    assert bench.devices.counters()["wal"] == ArrayCounters(*[0] * 10)


def test_the_wal_behind_a_symlink_is_its_own_device(bench: Bench) -> None:
    used = bench.used("os.fsync(os.open(sys.argv[2], BUFFERED))", "wal")
    assert used.syncs == 1
    assert bench.devices.counters()["data"].syncs == 0


@pytest.mark.parametrize("name", ["postgresql.conf", "pg_xact/0000", "base/pgsql_tmp/t1.0", "base2/1"])
def test_other_files_of_the_cluster_are_not_on_the_device(bench: Bench, name: str) -> None:
    file = bench.data.parent.parent / name
    file.parent.mkdir(exist_ok=True)
    used = bench.used(f"fd = os.open({str(file)!r}, BUFFERED | os.O_CREAT)\nos.write(fd, block); os.fsync(fd)")
    assert (used.writes, used.syncs) == (0, 0)


def test_a_reused_descriptor_is_identified_anew(bench: Bench) -> None:
    used = bench.used("""
fd = os.open(sys.argv[1], DIRECT); os.preadv(fd, [block], 0); os.close(fd)
other = os.open(sys.argv[2], DIRECT); assert other == fd; os.preadv(other, [block], 0)
os.dup2(os.open(sys.argv[1], DIRECT), other); os.preadv(other, [block], 0)
""")
    assert used.reads == 2
    assert bench.devices.counters()["wal"].reads == 1


def test_a_descriptor_is_inherited_by_fork(bench: Bench) -> None:
    used = bench.used("""
fd = os.open(sys.argv[1], DIRECT); os.preadv(fd, [block], 0)
if os.fork() == 0: os.preadv(fd, [block], 0); os._exit(0)
os.wait()
""")
    assert used.reads == 2


# ---- How slow it is ----------------------------------------------------------------------------------------


def test_each_operation_takes_its_service_time(bench: Bench) -> None:
    bench.devices.set_model("data", SLOW)
    used = bench.used(f"""
fd = os.open(sys.argv[1], DIRECT)
os.preadv(fd, [block], {2 * BLOCK}); os.preadv(fd, [block], 0)
os.pwritev(fd, [block], {2 * BLOCK})
os.fsync(fd)
""")
    assert ms(used.read_ns) >= 2 * 20
    assert ms(used.write_ns) >= 30
    assert ms(used.sync_ns) >= 40
    assert ms(used.busy_ns) == pytest.approx(2 * 20 + 30 + 40, abs=0.01)


def test_threads_of_all_processes_queue_for_one_spindle(bench: Bench) -> None:
    bench.devices.set_model("data", SLOW)
    readers = [
        bench.start(f"""
import threading
fd = os.open(sys.argv[1], DIRECT)
blocks = [mmap.mmap(-1, {BLOCK}) for _ in range(2)]
threads = [threading.Thread(target=os.preadv, args=(fd, [block], (4 * {process} + 2 * i) * {BLOCK}))
           for i, block in enumerate(blocks)]
print(flush=True); sys.stdin.read()
for thread in threads: thread.start()
for thread in threads: thread.join()
""")
        for process in range(4)
    ]
    for reader in readers:
        assert reader.stdout and reader.stdout.readline() == "\n"
    start = time.monotonic()
    for reader in readers:
        assert reader.stdin
        reader.stdin.close()
    for reader in readers:
        with reader:
            assert reader.wait(timeout=60) == 0
    ended = time.monotonic()
    used = bench.devices.counters()["data"]
    assert used.reads == 8 and ms(used.busy_ns) == pytest.approx(8 * 20, abs=0.01)
    assert (ended - start) * 1e9 >= used.busy_ns, "one spindle works at one read at a time"


def test_bytes_take_bandwidth(bench: Bench) -> None:
    bench.devices.set_model("data", ArrayModel(spindles=1, read_ms=0, write_ms=0, sync_ms=0, mb_per_s=1))
    used = bench.used("os.preadv(os.open(sys.argv[1], DIRECT), [block], 0)")
    assert ms(used.read_ns) >= BLOCK / 1e6 * 1e3


def test_continuing_where_the_spindle_stopped_pays_the_transfer_only(bench: Bench) -> None:
    bench.devices.set_model("data", SLOW)
    code = f"fd = os.open(sys.argv[1], DIRECT)\nfor i in %s: os.preadv(fd, [block], i * {BLOCK})"
    assert ms(bench.used(code % "range(5)").busy_ns) == pytest.approx(20, abs=0.01)
    assert ms(bench.used(code % "reversed(range(5))").busy_ns) == pytest.approx(5 * 20, abs=0.01)


def test_spindles_are_striped_by_one_mib(bench: Bench) -> None:
    # The second read continues the first on a single spindle; on two spindles it is the other's first.
    code = f"""
fd = os.open(sys.argv[1], DIRECT)
for offset in {MIB - BLOCK}, {MIB}: os.preadv(fd, [block], offset)
"""
    for spindles, positionings in (1, 1), (2, 2):
        bench.devices.set_model("data", replace(SLOW, spindles=spindles))
        assert ms(bench.used(code).busy_ns) == pytest.approx(positionings * 20, abs=0.01)


def test_a_buffered_file_pays_at_the_sync_whoever_wrote(bench: Bench) -> None:
    bench.devices.set_model("wal", ArrayModel(spindles=1, read_ms=20, write_ms=30, sync_ms=40, mb_per_s=10))
    wrote = bench.used(
        f"""
fd = os.open(sys.argv[2], BUFFERED)
os.pread(fd, {BLOCK}, 0)
for i in range(10): os.pwrite(fd, block, i * {BLOCK})
""",
        "wal",
    )
    assert wrote == ArrayCounters(*[0] * 10)

    synced = bench.used("os.fdatasync(os.open(sys.argv[2], BUFFERED))", "wal")
    assert (synced.writes, synced.write_bytes, synced.syncs) == (1, 10 * BLOCK, 1)
    assert ms(synced.sync_ns) >= 30 + 10 * BLOCK / 10e6 * 1e3 + 40

    clean = bench.used("os.fdatasync(os.open(sys.argv[2], BUFFERED))", "wal")
    assert (clean.writes, clean.syncs) == (0, 1)
    assert ms(clean.busy_ns) == pytest.approx(40, abs=0.01)


def test_a_page_written_again_is_flushed_once(bench: Bench) -> None:
    used = bench.used(
        """
fd = os.open(sys.argv[2], BUFFERED); os.ftruncate(fd, 16384)
for i in range(10): os.pwrite(fd, block, 0)
os.fdatasync(fd)
""",
        "wal",
    )
    assert used.write_bytes == 16384  # at most the file's size


def test_a_write_through_file_pays_for_each_write(bench: Bench) -> None:
    bench.devices.set_model("wal", SLOW)
    used = bench.used("fd = os.open(sys.argv[2], DSYNC); os.pwrite(fd, block, 0); os.pread(fd, 9, 0)", "wal")
    assert (used.writes, used.write_bytes, used.reads, used.syncs) == (1, BLOCK, 0, 0)
    assert ms(used.write_ns) >= 30 + 40


def test_the_way_to_the_device_is_part_of_what_its_callers_wait(bench: Bench) -> None:
    bench.devices.set_model("data", SLOW)
    SharedState.open(bench.state_file).device(0).path_ns = 50_000_000  # longer than a read takes in all
    used = bench.used("os.preadv(os.open(sys.argv[1], DIRECT), [block], 0)")
    assert ms(used.read_ns) >= 50 and used.late == 1


def test_signals_do_not_make_it_faster(bench: Bench) -> None:
    bench.devices.set_model("data", replace(SLOW, read_ms=200))
    used = bench.used("""
import signal
signal.signal(signal.SIGALRM, lambda *_: None); signal.setitimer(signal.ITIMER_REAL, 0.01, 0.01)
assert os.preadv(os.open(sys.argv[1], DIRECT), [block], 0) == len(block)
signal.setitimer(signal.ITIMER_REAL, 0)  # the interpreter's end takes the handler away
""")
    assert ms(used.read_ns) >= 200


def test_the_model_changes_while_the_process_runs(bench: Bench) -> None:
    process = bench.start("""
fd = os.open(sys.argv[1], DIRECT)
for i, line in enumerate(sys.stdin):
    os.preadv(fd, [block], i % 2 * 65536); print("done", flush=True)
""")

    def one_read() -> int:
        assert process.stdin and process.stdout
        before = bench.devices.counters()["data"].busy_ns
        process.stdin.write("\n")
        process.stdin.flush()
        assert process.stdout.readline() == "done\n"
        return bench.devices.counters()["data"].busy_ns - before

    models = {SLOW: 20, None: 0, replace(SLOW, spindles=8, read_ms=5): 5}
    for model, expected in models.items():
        bench.devices.set_model("data", model)
        assert ms(one_read()) == pytest.approx(expected, abs=0.01)
    process.communicate(timeout=60)


# ---- What it refuses ---------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "wrong",
    [
        {"spindles": 0},
        {"spindles": 65},
        {"spindles": 1.5},
        {"spindles": True},
        {"read_ms": -1},
        {"write_ms": math.nan},
        {"sync_ms": math.inf},
        {"read_ms": "8"},
        {"mb_per_s": 0},
    ],
    ids=str,
)
def test_impossible_models_are_refused(wrong: dict[str, float]) -> None:
    (name,) = wrong
    with pytest.raises(ValueError, match=rf"^{name} must be "):
        ArrayModel(**{**vars(SLOW), **wrong})


def test_wrong_devices_are_refused(tmp_path: Path, build_dir: Path, bench: Bench) -> None:
    def create(directories: dict[str, Path], models: dict[str, ArrayModel | None]) -> None:
        EmulatedArrays.create(tmp_path / "other", directories, models, build_dir=build_dir)

    with pytest.raises(ValueError, match="needs a directory and a model"):
        create({"data": tmp_path}, {"wal": FAST})
    with pytest.raises(ValueError, match="does not exist"):
        create({"data": tmp_path / "nowhere"}, {"data": FAST})
    with pytest.raises(ValueError, match="From 1 to 8 devices"):
        create({}, {})
    with pytest.raises(ValueError, match="no emulated array 'tape'"):
        bench.devices.set_model("tape", FAST)


def test_a_missing_compiler_is_one_sentence(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", "")
    with pytest.raises(NoCompiler, match="needs a C compiler"):
        build.interposer(tmp_path / "build")


def test_a_failing_compiler_shows_its_first_error(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    compiler = tmp_path / "cc"
    compiler.write_text("#!/bin/sh\necho 'In file x:' >&2\necho 'x.c:1: error: no headers' >&2\nexit 1\n")
    compiler.chmod(0o755)
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(NoCompiler, match=r"x\.c:1: error: no headers"):
        build.interposer(tmp_path / "build")
    assert list((tmp_path / "build").iterdir()) == []


def test_it_is_compiled_once(build_dir: Path) -> None:
    library = build.interposer(build_dir)
    built = library.stat()
    assert build.interposer(build_dir).stat() == built


def test_a_build_directory_that_cannot_be_preloaded_is_refused(tmp_path: Path) -> None:
    with pytest.raises(EmulatedArrayError, match="space or a colon"):
        build.interposer(tmp_path / "my cache")


def _truncate(file: Path) -> None:
    os.truncate(file, 100)


def _scribble(file: Path) -> None:
    with file.open("r+b") as stream:
        stream.write(b"NOT OURS")


@pytest.mark.parametrize(
    ("damage", "message"), [(_truncate, "wrong size"), (_scribble, "not a state file"), (Path.unlink, "No such file")]
)
def test_a_process_with_a_wrong_state_file_does_not_start(
    bench: Bench, damage: Callable[[Path], None], message: str
) -> None:
    # A copy takes the blow: the devices have the original mapped.
    copy = bench.state_file.with_name("copy")
    subprocess.run(["cp", "--sparse=always", bench.state_file, copy], check=True)
    damage(copy)
    environment = bench.devices.environment() | {"STALLMARK_EMULATED_ARRAYS": str(copy)}
    done = subprocess.run(["true"], env=os.environ | environment, capture_output=True, text=True, check=False)
    assert done.returncode == 78
    assert message in done.stderr


def test_without_a_state_file_in_the_environment_nothing_happens(bench: Bench) -> None:
    library = {"LD_PRELOAD": bench.devices.environment()["LD_PRELOAD"]}
    subprocess.run(["true"], env=os.environ | library, check=True)


def test_closing_removes_the_state_file(bench: Bench) -> None:
    assert bench.state_file.exists()
    bench.devices.close()
    bench.devices.close()
    assert not bench.state_file.exists()
    with pytest.raises(EmulatedArrayError, match="closed"):
        bench.devices.counters()


def test_creating_again_leaves_a_running_server_its_own_state(bench: Bench, build_dir: Path) -> None:
    running = bench.start("sys.stdin.readline(); os.preadv(os.open(sys.argv[1], DIRECT), [block], 0)")
    assert running.poll() is None
    again = EmulatedArrays.create(
        bench.state_file, {"data": bench.data.parent.parent}, {"data": None}, build_dir=build_dir
    )
    with again:
        assert list(bench.state_file.parent.glob("state.*")) == []
        running.communicate("\n", timeout=60)
        assert running.returncode == 0
