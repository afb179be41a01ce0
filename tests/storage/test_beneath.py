"""The emulated array is found beneath partitions and volumes; another's loop device is not taken for it."""

from pathlib import Path

import pytest

from stallmark.lab.block_device_parts import Places
from stallmark.storage.block_devices import ArrayFacts, base_devices, emulated_array_of, emulated_array_under
from stallmark.storage.direct_io import describe
from stallmark.storage.emulator.models import ArrayModel

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
