"""The emulated array is found beneath partitions and volumes; another's loop device is not taken for it."""

from pathlib import Path

import pytest

from stallmark.lab.block_device_parts import Places
from stallmark.record.manifest.storage import IoLimit
from stallmark.storage import block_devices as limits
from stallmark.storage.block_devices import ArrayFacts, base_devices, emulated_array_of, emulated_array_under, io_limits
from stallmark.storage.direct_io import describe
from stallmark.storage.emulator import ArrayModel

MODEL = ArrayModel(spindles=4, read_ms=5, write_ms=5, sync_ms=2, mb_per_s=150)


@pytest.fixture
def devices(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """On loop0 two volumes, one upon the other (dm-0, dm-1) on a partition; in md0 a whole disk as well."""
    classes = tmp_path / "class"
    classes.mkdir()
    for place in ("loop0/loop", "loop0/loop0p1", "sda/sda1", "dm-0/slaves", "dm-1/slaves", "md0/slaves"):
        (tmp_path / "devices" / place).mkdir(parents=True)
    for place in ("loop0", "loop0/loop0p1", "sda", "sda/sda1", "dm-0", "dm-1", "md0"):
        device = tmp_path / "devices" / place
        (classes / device.name).symlink_to(device)
        if "/" in place:
            (device / "partition").write_text("1\n")
    for volume, slave in (("dm-0", "loop0p1"), ("dm-1", "dm-0"), ("md0", "dm-1"), ("md0", "sda")):
        (classes / volume / "slaves" / slave).symlink_to(classes / slave)
    monkeypatch.setattr("stallmark.storage.block_devices.SYS", classes)
    monkeypatch.setattr("stallmark.storage.block_devices.RUNTIME", tmp_path / "memory")
    return classes


def an_array(devices: Path, attached: str | None = None) -> Places:
    """One that says it is loop0, which has that file."""
    places = Places(devices.parent / "home", "one")
    for folder in (places.folder, places.runtime):
        folder.mkdir(parents=True)
    places.write(ArrayFacts(name="one", size=1 << 30, model=MODEL, loop="/dev/loop0"))
    (devices / "loop0/loop/backing_file").write_text(f"{attached or places.file}\n")
    return places


@pytest.mark.parametrize(
    ("device", "bottom"),
    [
        ("loop0", ["loop0"]),
        ("loop0p1", ["loop0"]),
        ("dm-1", ["loop0"]),
        ("md0", ["loop0", "sda"]),
        ("unknown", ["unknown"]),
    ],
)
def test_what_a_device_lies_on(devices: Path, device: str, bottom: list[str]) -> None:
    assert base_devices(device) == bottom


def test_what_lies_on_an_array_is_emulated_and_the_array_counts_for_its_whole_device(devices: Path) -> None:
    places = an_array(devices)
    for device in ("loop0", "loop0p1", "dm-1", "md0"):
        found = emulated_array_of(device)
        assert found and found.spindles == 4
        facts, state = emulated_array_under(device) or (None, None)
        assert facts and facts.name == "one" and state == (places.state if device == "loop0" else None)
    assert emulated_array_of("sda1") is None


def test_an_array_whose_server_was_killed_is_one_still(devices: Path) -> None:
    places = an_array(devices)
    (devices / "loop0/loop/backing_file").write_text(f"{places.file} (deleted)\n")
    assert emulated_array_of("loop0")


def test_a_loop_device_that_is_another_s_by_now_is_real(devices: Path) -> None:
    an_array(devices, attached="/home/me/mount/array")
    assert emulated_array_of("loop0") is None and emulated_array_of("loop0p1") is None
    (devices / "loop0/loop/backing_file").unlink()  # detached
    assert emulated_array_of("loop0") is None


def test_a_device_of_this_machine_is_named_with_its_disk(tmp_path: Path):
    found = describe(tmp_path)
    if found.name is None:
        pytest.skip(str(found.why))
    assert found.disk and (Path("/sys/block") / found.disk).exists()


@pytest.fixture
def groups(tmp_path, monkeypatch) -> Path:
    """A machine with both versions, as Debian mounts them, and a process in a group of each."""
    process = tmp_path / "proc" / "42"
    process.mkdir(parents=True)
    (tmp_path / "proc" / "self").mkdir()
    (process / "cgroup").write_text("7:blkio:/docker/abc\n5:devices:/docker/abc\n0::/system.slice/db.service\n")
    (tmp_path / "proc" / "self" / "mounts").write_text(
        f"cgroup {tmp_path}/blkio cgroup rw,nosuid,blkio 0 0\ncgroup {tmp_path}/cpu cgroup rw,cpu 0 0\n"
        f"cgroup2 {tmp_path}/unified cgroup2 rw,nosuid 0 0\n"
    )
    for folder in ("blkio/docker/abc", "unified/system.slice/db.service"):
        (tmp_path / folder).mkdir(parents=True)
    monkeypatch.setattr(limits, "PROC", tmp_path / "proc")
    return tmp_path


def test_limits_of_a_group_and_of_those_around_it_are_told_and_of_no_other_device(groups):
    inner = groups / "blkio/docker/abc/blkio.throttle.read_iops_device"
    inner.write_text("7:1 1500\n8:0 9\n")
    outer = groups / "unified/system.slice/io.max"
    outer.write_text("7:1 rbps=max wbps=1048576 riops=max wiops=300\n259:0 rbps=1 wbps=1 riops=1 wiops=1\n")
    assert io_limits(42, {"7:1"}) == (
        IoLimit(limited="reads", per_s=1500, file=str(inner)),
        IoLimit(limited="bytes written", per_s=1048576, file=str(outer)),
        IoLimit(limited="writes", per_s=300, file=str(outer)),
    )
    assert io_limits(42, {"254:0"}) == ()


def test_what_cannot_be_read_has_no_limits(groups):
    assert io_limits(42, {"7:1"}) == () and io_limits(43, {"7:1"}) == ()
    (groups / "proc" / "self" / "mounts").unlink()
    assert io_limits(42, {"7:1"}) == ()
