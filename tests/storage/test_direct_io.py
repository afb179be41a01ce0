"""Direct I/O that goes through the page cache is found, on file systems that really do so."""

import os
import shutil
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from stallmark.errors import StallmarkError
from stallmark.record.manifest.storage import DirectIo
from stallmark.storage import direct_io as module
from stallmark.storage.block_devices import Mount, mount_of
from stallmark.storage.direct_io import direct_io, refuse_cached
from stallmark.storage.probe import refuse_memory

pytestmark = pytest.mark.skipif(not os.path.exists("/proc/self/mounts"), reason="only on Linux is it tried")
MEMORY = Path("/dev/shm")
in_memory = pytest.mark.skipif(
    not MEMORY.is_dir() or mount_of(MEMORY).file_system != "tmpfs", reason="/dev/shm is no tmpfs here"
)


@contextmanager
def mounted(folder: Path, options: str, dio: str = "on") -> Iterator[Path]:
    """Mount a new ext4 on a loop device, or skip the test if that is not possible here."""
    if os.geteuid() or not all(map(shutil.which, ("mkfs.ext4", "losetup", "mount"))):
        pytest.skip("only root can mount a file system, with mkfs.ext4 and losetup")
    image, point = folder / "image", folder / "point"
    point.mkdir()
    with image.open("wb") as file:
        file.truncate(64 * 2**20)
    subprocess.run(["mkfs.ext4", "-qF", image], check=True)
    found = subprocess.run(
        ["losetup", "-f", f"--direct-io={dio}", "--show", image], capture_output=True, text=True, check=False
    )
    if found.returncode:
        pytest.skip(f"there is no loop device here: {found.stderr.strip()}")
    loop = found.stdout.strip()
    try:
        if subprocess.run(["mount", "-o", options, loop, point], capture_output=True, check=False).returncode:
            pytest.skip("nothing can be mounted here, as in a container")
        try:
            yield point
        finally:
            subprocess.run(["umount", point], check=True)
    finally:
        subprocess.run(["losetup", "-d", loop], check=True)


@in_memory
def test_a_file_system_in_memory_takes_direct_io_into_the_cache(tmp_path: Path) -> None:
    assert direct_io(MEMORY) == DirectIo("through", "tmpfs")
    with pytest.raises(StallmarkError, match=r"Direct I/O in /dev/shm goes through the system's page cache \(tmpfs\)"):
        refuse_cached(MEMORY)


def test_what_would_measure_the_cache_is_refused_in_a_sentence(tmp_path: Path, monkeypatch) -> None:
    monkeypatch.setattr("stallmark.storage.probe.device_behind", lambda folder: None)
    monkeypatch.setattr(module, "direct_io", lambda folder: DirectIo("through", "ext4, data=journal"))
    with pytest.raises(
        StallmarkError, match=r"page cache \(ext4, data=journal\), so memory .*: name a folder"
    ) as refused:
        refuse_memory(tmp_path)
    assert "\n" not in str(refused.value)
    for goes in ("past", "unknown"):
        monkeypatch.setattr(module, "direct_io", lambda folder, goes=goes: DirectIo(goes))
        refuse_memory(tmp_path)


def test_nothing_is_left_behind(tmp_path: Path) -> None:
    direct_io(tmp_path)
    direct_io(tmp_path / "not" / "there")
    (tmp_path / "data").write_bytes(bytes(4096))
    assert direct_io(tmp_path / "data") != DirectIo("past")
    assert [path.name for path in tmp_path.iterdir()] == ["data"]


def test_a_journal_of_data_is_found_and_refused(tmp_path: Path) -> None:
    with mounted(tmp_path, "data=journal") as point:
        assert direct_io(point) == DirectIo("through", "ext4, data=journal")
        with pytest.raises(StallmarkError, match=rf"{point}/new goes through .* \(ext4, data=journal\), so memory"):
            refuse_memory(point / "new")


def test_a_journal_without_data_is_past_the_cache(tmp_path: Path) -> None:
    with mounted(tmp_path, "data=ordered") as point:
        assert direct_io(point) == DirectIo("past", "ext4")
        refuse_memory(point)


def test_the_cache_below_a_loop_device_is_told(tmp_path: Path) -> None:
    with mounted(tmp_path, "data=ordered", dio="off") as point:
        found = direct_io(point)
        assert found and found.goes == "unknown" and found.loop and found.loop.startswith("loop")
        refuse_memory(point)


@pytest.mark.parametrize("file_system", ["fuse", "fuse.bindfs", "virtiofs", "9p", "zfs"])
def test_below_some_file_systems_nothing_is_seen_and_nothing_refused(tmp_path, monkeypatch, file_system) -> None:
    monkeypatch.setattr(module, "mount_of", lambda folder: Mount("x", tmp_path, file_system, "rw"))
    monkeypatch.setattr(module, "_is_cached", lambda folder: pytest.fail("nothing is to be written"))
    assert direct_io(tmp_path) == DirectIo("unknown", file_system)
    refuse_cached(tmp_path)


@pytest.mark.parametrize("name", ["fsync", "pwrite"])
def test_what_cannot_be_tried_is_unknown(tmp_path, monkeypatch, name) -> None:
    def refuse(*_: object, **__: object) -> int:
        raise OSError(22, "Invalid argument")

    monkeypatch.setattr(module, "_file_system", lambda folder: "odd")
    with monkeypatch.context() as patch:
        patch.setattr(os, name, refuse)
        found = direct_io(tmp_path)
    assert found == DirectIo("unknown", "odd") and not list(tmp_path.iterdir())


def test_a_file_of_somebody_else_is_told_by_how_it_is_mounted(tmp_path, monkeypatch) -> None:
    file = tmp_path / "theirs"
    file.write_bytes(bytes(4096))
    for options, goes in (("rw,data=journal", "through"), ("rw,data=ordered", "unknown")):
        monkeypatch.setattr(module, "mount_of", lambda folder, options=options: Mount("x", tmp_path, "ext4", options))
        found = direct_io(file)
        assert found is not None and found.goes == goes
