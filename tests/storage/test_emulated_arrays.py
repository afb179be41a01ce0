"""The emulated array alone: what it counts (exactly), how slow it is at least, and what it refuses.

An I/O can never end sooner than its service time: lower bounds hold on any machine, upper bounds would not.
"""

from __future__ import annotations

import sys
import time
from dataclasses import replace

import pytest
from support.emulated_bench import BLOCK, FAST, MIB, SLOW, Bench

from stallmark.storage.emulator import ArrayModel
from stallmark.storage.emulator.arrays import SharedState
from stallmark.storage.emulator.layout import ArrayCounters

pytestmark = pytest.mark.skipif(not sys.platform.startswith("linux"), reason="the emulated array exists on Linux only")


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
