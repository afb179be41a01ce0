"""Devices under a database: the kernel's counters, what is behind a directory, emulated ones."""

import mmap
import os
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace

import pytest
from hypothesis import given
from hypothesis import strategies as st
from support.clusters import Cluster, ClusterEngine, one
from support.collecting import opened

from stallmark.collectors.host import DeviceIO
from stallmark.storage import block_devices
from stallmark.storage.block_devices import Mount, NoBlockDevice, device_behind, parse_diskstats
from stallmark.storage.emulator.arrays import SharedState
from stallmark.storage.emulator.layout import ActiveExtents, ArrayCounters, FlashCounters


def test_device_counts_what_is_written_past_the_page_cache(cluster: Cluster, engine: ClusterEngine) -> None:
    if reason := DeviceIO(engine).unavailable():
        pytest.skip(reason)
    size = 1 << 20
    with opened(DeviceIO(engine)) as collector:
        [before] = collector.sample(0.0)
        file = os.open(cluster.folder / "direct", os.O_CREAT | os.O_WRONLY | os.O_DIRECT)
        try:
            assert os.write(file, mmap.mmap(-1, size)) == size
        finally:
            os.close(file)
        [after] = collector.sample(1.0)
    assert after["write_bytes"] - before["write_bytes"] >= size
    assert after["writes"] > before["writes"]
    assert after["busy_ms"] >= before["busy_ms"]
    assert after["entity"].startswith("data+wal: ") and after["role"] == "data+wal" and not after["emulated"]


count = st.integers(min_value=0, max_value=2**63)


@st.composite
def diskstats(draw: st.DrawFn) -> dict[tuple[int, int, str], list[int]]:
    """As many fields as kernels have had: 11, 15 with discards, 17 with flushes, and two of the future."""
    width = draw(st.sampled_from([11, 15, 17, 19]))
    device = st.tuples(
        st.integers(0, 4095), st.integers(0, 2**20 - 1), st.from_regex(r"[a-z][a-z0-9-]{0,30}", fullmatch=True)
    )
    return draw(
        st.dictionaries(device, st.lists(count, min_size=width, max_size=width), max_size=5).filter(
            lambda lines: len({key[:2] for key in lines}) == len(lines)
        )
    )


@given(diskstats())
def test_diskstats_of_any_kernel(lines: dict[tuple[int, int, str], list[int]]) -> None:
    text = "".join(
        f"{major:4d} {minor:7d} {name} {' '.join(map(str, fields))}\n" for (major, minor, name), fields in lines.items()
    )
    parsed = parse_diskstats(text)
    assert parsed.keys() == {f"{major}:{minor}" for major, minor, _ in lines}
    for (major, minor, _), fields in lines.items():
        counters = parsed[f"{major}:{minor}"]
        assert (counters.reads, counters.read_bytes, counters.read_ms) == (fields[0], fields[2] * 512, fields[3])
        assert (counters.writes, counters.write_bytes, counters.write_ms) == (fields[4], fields[6] * 512, fields[7])
        assert (counters.busy_ms, counters.queue_ms) == (fields[9], fields[10])
        expected = (fields[15], fields[16]) if len(fields) >= 17 else (None, None)
        assert (counters.syncs, counters.sync_ms) == expected


def test_this_kernels_diskstats_are_its_sysfs() -> None:
    if not block_devices.SYS_BLOCK.is_dir():
        pytest.skip("no Linux")
    assert parse_diskstats(block_devices.DISKSTATS.read_text()).keys() >= {
        path.name for path in block_devices.SYS_BLOCK.iterdir() if (path / "stat").read_text().split()[0] != "0"
    }


def test_memory_is_no_device() -> None:
    memory = Path("/dev/shm")
    if not memory.is_dir():
        pytest.skip("no Linux")
    with pytest.raises(NoBlockDevice, match=r"/dev/shm is in memory \(tmpfs\)"):
        device_behind(memory)


@pytest.mark.parametrize(
    ("mount", "sentence"),
    [
        (Mount("overlay", Path("/"), "overlay", "rw,upperdir=/does/not/exist"), "container's own layers"),
        (Mount("overlay", Path("/"), "overlay", "rw"), "container's own layers"),
        (Mount("server:/export", Path("/mnt"), "nfs4", "rw"), "on nfs4, which is not a block device"),
        (Mount("tank/db", Path("/tank"), "zfs", "rw"), "on zfs, which is not a block device"),
        (Mount("/dev/null", Path("/mnt"), "fuse", "rw"), "on fuse, which is not a block device"),
    ],
)
def test_what_lies_on_no_block_device_is_said(mount: Mount, sentence: str) -> None:
    with pytest.raises(NoBlockDevice, match=sentence):
        block_devices._device_of_mount(Path("/mnt/database"), mount)


def test_an_overlay_is_where_its_upper_layer_is(tmp_path: Path) -> None:
    mount = Mount("overlay", Path("/"), "overlay", f"rw,lowerdir=/a,upperdir={tmp_path},workdir=/b")
    try:
        expected = device_behind(tmp_path)
    except NoBlockDevice as reason:
        pytest.skip(str(reason))
    assert block_devices._device_of_mount(Path("/var/lib/database"), mount) == expected


@pytest.mark.parametrize(("kind", "counts"), [(None, True), ("partition", False), ("dm", False), ("md", False)])
def test_syncs_are_counted_for_whole_disks_only(tmp_path: Path, monkeypatch, kind, counts) -> None:
    number = os.stat(tmp_path).st_dev
    folder = tmp_path / "devices" / "disk" / "part" if kind == "partition" else tmp_path / "devices" / "disk"
    folder.mkdir(parents=True)
    (tmp_path / "devices" / "disk" / "diskseq").write_text("42\n")
    if kind:
        (folder / kind).mkdir()
    (tmp_path / f"{os.major(number)}:{os.minor(number)}").symlink_to(folder)
    monkeypatch.setattr(block_devices, "SYS_BLOCK", tmp_path)
    device = device_behind(tmp_path)
    assert device.counts_syncs is counts and device.name == folder.name and device.epoch.endswith("disk 42")


class Emulation:
    def __init__(self, reads: int):
        self.reads = reads

    def counters(self) -> dict[str, ArrayCounters]:
        counted = ArrayCounters(self.reads, 8192, 3_000_000, 2, 16384, 4_000_000, 1, 5_000_000, 6_000_000, 0)
        flash = FlashCounters(65536, 4, 2_000_000, 3, 1_000_000, 4, 6, 1, 0, 0)
        return {"data": replace(counted, spindle_reads=6, flash=flash), "wal": counted}

    def next_interval(self) -> dict[str, ActiveExtents]:
        return {"data": ActiveExtents(5, None, 7), "wal": ActiveExtents(0, None, 0)}


def test_an_emulated_device_is_labelled_so(engine: ClusterEngine) -> None:
    engine.devices = SimpleNamespace(array=Emulation(reads=10))
    with opened(DeviceIO(engine)) as collector:
        rows = collector.sample(0.0)
        engine.devices = SimpleNamespace(array=Emulation(reads=0))
        again = collector.sample(1.0)
    emulated = [row for row in rows if row["emulated"]]
    assert [(row["entity"], row["role"]) for row in emulated] == [("data", "data"), ("wal", "wal")]
    assert {row["role"] for row in rows if not row["emulated"]} <= {"underlying"}
    row = emulated[0]
    assert (row["reads"], row["read_ms"], row["sync_ms"], row["busy_ms"], row["queue_ms"]) == (10, 3.0, 5.0, 6.0, 12.0)
    assert (row["spindle_reads"], row["flash_reads"], row["flash_read_ms"], row["cache_hits"]) == (6, 4, 2.0, 4)
    assert (row["active_extents"], row["active_extents_60s"], row["active_extents_run"]) == (5, None, 7)
    assert emulated[1]["flash_reads"] is None  # it has no flash
    assert one(again, entity="data")["epoch"] != row["epoch"]


def test_the_active_set_of_an_array_begins_with_the_load_and_not_again_after_a_failure(
    engine: ClusterEngine, tmp_path: Path, monkeypatch
) -> None:
    if reason := DeviceIO(engine).unavailable():
        pytest.skip(reason)
    active = SharedState.create(tmp_path / "state", [], 1).device(0).active
    active.run.count = 1000  # what was restored
    monkeypatch.setattr("stallmark.collectors.host.emulated_array_under", lambda device: (None, tmp_path / "state"))
    collector = DeviceIO(engine)
    for found in (0, 7):  # its first sample, and the one after it was closed and opened again
        with opened(collector):
            [row] = collector.sample(0.0)
        assert row["active_extents_run"] == found
        active.run.count += 7 - found


def test_an_array_of_root_is_emulated_for_everybody(engine: ClusterEngine, tmp_path: Path, monkeypatch) -> None:
    if reason := DeviceIO(engine).unavailable():
        pytest.skip(reason)
    nobodys = tmp_path / "state"
    monkeypatch.setattr("stallmark.collectors.host.emulated_array_under", lambda device: (None, nobodys))
    with opened(DeviceIO(engine)) as collector:
        [row] = collector.sample(0.0)
    assert row["emulated"] and row["reads"] is not None and row["flash_reads"] is None
    assert "its own counters are for root" in (DeviceIO(engine).limitation() or "")
