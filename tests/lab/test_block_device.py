"""The array as a block device: data stay whole, models change under it, and nothing is left of it after a crash."""

from __future__ import annotations

import errno
import mmap
import os
import subprocess
import sys
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from stallmark.lab import block_device_parts
from stallmark.lab.block_device import SMALLEST, BlockDeviceArray, _allocate, arrays
from stallmark.lab.block_device_parts import Places
from stallmark.record.manifest.storage import EmulatedArray
from stallmark.storage.block_devices import (
    RUNTIME,
    ArrayFacts,
    BlockDeviceError,
    emulated_array_of,
    emulated_array_under,
)
from stallmark.storage.emulator import ArrayModel, FlashCache
from stallmark.storage.emulator.arrays import SharedState

MODEL = ArrayModel(spindles=4, read_ms=0, write_ms=0, sync_ms=0, mb_per_s=100_000, cache=FlashCache(1 << 20))

WHY_NOT = block_device_parts.missing_needs()
real = pytest.mark.skipif(WHY_NOT is not None, reason=f"{WHY_NOT}")


@pytest.fixture(scope="session")
def everybodys_home(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("array")  # the plugin is compiled once


@pytest.fixture
def home(everybodys_home: Path) -> Iterator[Path]:
    yield everybodys_home
    for array in arrays(everybodys_home):
        array.destroy()


@pytest.fixture
def array(home: Path) -> BlockDeviceArray:
    return BlockDeviceArray(home, "one")


def remains(home: Path) -> list[str]:
    """Whatever of the emulated array is still there."""
    places = Places(home, "one")
    left = [str(path) for path in (places.folder, places.runtime) if path.exists()]
    left += ["mounted"] if block_device_parts.is_mounted(places) else []
    return (
        left
        + block_device_parts.loops(places)
        + [str(one) for one in block_device_parts.processes(places, "nbdkit", "nbdfuse")]
    )


def transfer(device: str, *, write: bool, byte: int) -> bytes:
    """A MiB of that byte, past the page cache."""
    block = mmap.mmap(-1, 1 << 20)
    file = os.open(device, os.O_RDWR | os.O_DIRECT)
    try:
        if write:
            block[:] = bytes([byte]) * len(block)
            assert os.pwritev(file, [block], 7 << 20) == len(block)
            os.fsync(file)
        else:
            assert os.preadv(file, [block], 7 << 20) == len(block)
        return block[:]
    finally:
        os.close(file)


@real
def test_an_array_is_created_changed_and_destroyed(array: BlockDeviceArray, home: Path) -> None:
    facts = array.create(SMALLEST, MODEL)
    assert facts.loop and array.broken() is None and array.work_done().path_ms > 0
    assert emulated_array_of(Path(facts.loop).name) == EmulatedArray(
        block_device=True, name="one", **array_of_model(facts)
    )
    written = transfer(facts.loop, write=True, byte=42)
    before = array.work_done().counters
    assert before.write_bytes == 1 << 20 and before.syncs >= 1 and before.flash
    changed = array.change(ArrayModel(spindles=2, read_ms=1, write_ms=1, sync_ms=0, mb_per_s=100))
    assert array.facts == changed and changed.model.spindles == 2
    assert transfer(facts.loop, write=False, byte=0) == written
    counters, _, waited_ms = array.work_done()  # of the present array alone
    assert counters.read_bytes >= 1 << 20 and counters.write_bytes == counters.syncs == 0
    assert counters.flash is None and waited_ms != 0
    with pytest.raises(BlockDeviceError, match=r"exists \(/dev/loop.*destroy one"):
        array.create(SMALLEST, MODEL)
    array.destroy()
    assert remains(home) == [] and emulated_array_under(Path(facts.loop).name) is None
    with pytest.raises(BlockDeviceError, match="There is no emulated array one"):
        array.destroy()


@real
def test_what_readers_wait_for_is_known_as_the_block_device_counts_it(array: BlockDeviceArray) -> None:
    model = ArrayModel(spindles=64, read_ms=3, write_ms=3, sync_ms=0, mb_per_s=1000)
    loop = str(array.create(SMALLEST, model).loop)
    block = mmap.mmap(-1, 8192)
    file = os.open(loop, os.O_RDONLY | os.O_DIRECT)
    try:
        for number in range(200):  # so many that what udev reads of a new device is nothing beside them
            os.preadv(file, [block], (number % 60) << 20)
    finally:
        os.close(file)
    counters, _, waited_ms = array.work_done()
    assert waited_ms is not None and waited_ms >= 2.5  # it is counted in whole ms
    assert counters.reads >= 200 and counters.read_ns / counters.reads / 1e6 >= 2.5


def array_of_model(facts: ArrayFacts) -> dict:
    return facts.model_dump()["model"]


@real
@pytest.mark.parametrize("part", ["nbdkit", "nbdfuse"])
def test_an_array_that_lost_a_part_says_so_and_goes_without_a_trace(
    array: BlockDeviceArray, home: Path, part: str
) -> None:
    array.create(SMALLEST, MODEL)
    for process in block_device_parts.processes(Places(home, "one"), part):
        process.kill()
        process.wait(5)
    assert array.broken() == f"its {part} is gone"
    with pytest.raises(BlockDeviceError, match=rf"broken \(its {part} is gone\)"):
        array.create(SMALLEST, MODEL)
    with pytest.raises(BlockDeviceError, match="destroy it and create it again"):
        array.change(MODEL)
    array.destroy()
    assert remains(home) == []


@real
@pytest.mark.parametrize("step", ["start_nbdkit", "start_nbdfuse", "attach_loop"])
def test_the_next_one_clears_what_a_killed_creation_left(array: BlockDeviceArray, home: Path, step: str) -> None:
    code = f"""
import os, signal, sys
from pathlib import Path
from stallmark.lab import block_device_parts as parts
from stallmark.lab.block_device import SMALLEST, BlockDeviceArray
from stallmark.storage.emulator import ArrayModel
done = parts.{step}
def and_killed(places):
    done(places)
    os.kill(os.getpid(), signal.SIGKILL)
parts.{step} = and_killed
BlockDeviceArray(Path(sys.argv[1]), "one").create(SMALLEST, ArrayModel(1, 0, 0, 0, 1000))
"""
    assert subprocess.run([sys.executable, "-c", code, str(home)], capture_output=True).returncode == -9
    assert remains(home) != [] and array.broken() == "it was never completed"
    assert array.create(SMALLEST, MODEL).loop
    array.destroy()
    assert remains(home) == []


@real
def test_a_change_that_cannot_be_written_down_changes_nothing(array: BlockDeviceArray, home: Path) -> None:
    array.create(SMALLEST, MODEL)
    places = Places(home, "one")
    in_the_way = places.published.with_suffix(".new")
    in_the_way.mkdir()
    try:
        with pytest.raises(BlockDeviceError, match=r"cannot be written \(.*nothing has changed"):
            array.change(replace(MODEL, spindles=7))
    finally:
        in_the_way.rmdir()
    assert SharedState.open(places.state).device(0).model.spindles == MODEL.spindles
    assert [ArrayFacts.model_validate_json(file.read_bytes()) for file in (places.facts, places.published)] == [
        array.facts, array.facts,
    ]  # fmt: skip
    assert array.facts.model == MODEL


def test_what_an_attempt_failed_of_is_said_also_when_it_cannot_be_cleared(
    array: BlockDeviceArray, home: Path, monkeypatch
) -> None:
    def fails(why: str) -> Callable[..., None]:
        def fail(*_: object) -> None:
            raise BlockDeviceError(why)

        return fail

    monkeypatch.setattr(block_device_parts, "check_needs", lambda: None)
    monkeypatch.setattr(block_device_parts, "loops", lambda places: [])
    monkeypatch.setattr(array, "_start", fails("nbdkit did not start (no)."))
    with pytest.raises(BlockDeviceError, match=r"^nbdkit did not start \(no\)\.$"):
        array.create(SMALLEST, MODEL)
    assert not Places(home, "one").folder.exists()
    monkeypatch.setattr(array, "_forget", fails("The mount cannot be unmounted."))
    with pytest.raises(BlockDeviceError) as error:
        array.create(SMALLEST, MODEL)
    assert str(error.value) == (
        "nbdkit did not start (no); what had been made of the emulated array is still there (The "
        "mount cannot be unmounted): "
        "`stallmark array destroy one` removes it."
    )
    monkeypatch.undo()
    array.destroy()


def test_a_file_system_that_cannot_keep_the_room_free_is_refused(tmp_path: Path, monkeypatch) -> None:
    def cannot(*_: object) -> None:
        raise OSError(errno.EOPNOTSUPP, os.strerror(errno.EOPNOTSUPP))

    monkeypatch.setattr(os, "posix_fallocate", cannot)
    with pytest.raises(BlockDeviceError, match=r"cannot be taken from the disk .*not supported\).*STALLMARK_HOME"):
        _allocate(tmp_path / "disk", SMALLEST)


@real
def test_everybody_may_know_that_it_is_emulated_and_only_root_may_change_it(
    array: BlockDeviceArray, home: Path
) -> None:
    array.create(SMALLEST, MODEL)
    array.change(replace(MODEL, spindles=7))
    places = Places(home, "one")
    assert [path.stat().st_mode & 0o777 for path in (places.runtime, places.published)] == [0o755, 0o644]
    assert ArrayFacts.model_validate_json(places.published.read_bytes()) == array.facts
    assert places.state.stat().st_mode & 0o077 == 0


@real
def test_what_is_in_use_is_not_destroyed(array: BlockDeviceArray, home: Path, tmp_path: Path) -> None:
    loop = array.create(SMALLEST, MODEL).loop
    assert loop
    file = os.open(loop, os.O_RDONLY)
    with pytest.raises(BlockDeviceError, match=rf"{loop} is in use \(process {os.getpid()}\)"):
        array.destroy()
    os.close(file)
    assert array.broken() is None
    place = tmp_path / "mounted here"
    place.mkdir()
    subprocess.run(["mkfs.ext2", "-q", loop], check=True)
    subprocess.run(["mount", loop, place], check=True)
    try:
        with pytest.raises(BlockDeviceError, match=rf"{loop} is in use \({place}\): unmount it"):
            array.destroy()
    finally:
        subprocess.run(["umount", place], check=True)
    assert array.broken() is None
    array.destroy()
    assert remains(home) == []


@real
@pytest.mark.parametrize(("size", "sentence"), [(SMALLEST - 1, "is too small"), (1 << 50, "GiB free, too little for")])
def test_a_size_that_cannot_be_leaves_nothing(array: BlockDeviceArray, home: Path, size: int, sentence: str) -> None:
    with pytest.raises(BlockDeviceError, match=sentence):
        array.create(size, MODEL)
    assert remains(home) == []


def test_what_is_missing_is_said_with_what_remains(array: BlockDeviceArray, home: Path, monkeypatch) -> None:
    monkeypatch.setattr(os, "geteuid", lambda: 1000)
    with pytest.raises(BlockDeviceError, match=r"it needs root .*embedded PostgreSQL still runs on the same array"):
        array.create(SMALLEST, MODEL)
    monkeypatch.setattr(os, "geteuid", lambda: 0)
    monkeypatch.setattr(Path, "exists", lambda _: True)
    for program in ("nbdkit", "nbdfuse", "losetup"):
        monkeypatch.setattr(
            block_device_parts.shutil, "which", lambda name, gone=program: None if name == gone else name
        )
        with pytest.raises(BlockDeviceError, match=f"it needs {program}, which is not installed .*apt install"):
            block_device_parts.check_needs()
    monkeypatch.setattr(
        block_device_parts.shutil, "which", lambda name: None if name in ("cc", "gcc", "clang") else name
    )
    without_compiler = r"; the emulated arrays .* need a C compiler, and none is on the PATH\.$"
    with pytest.raises(BlockDeviceError, match=rf"it needs a C compiler.*gcc libc6-dev\){without_compiler}"):
        block_device_parts.check_needs()
    with monkeypatch.context() as nobody:
        nobody.setattr(os, "geteuid", lambda: 1000)
        with pytest.raises(BlockDeviceError, match=rf"it needs root \(sudo\){without_compiler}"):
            block_device_parts.check_needs()
    monkeypatch.setattr(block_device_parts.sys, "platform", "darwin")
    with pytest.raises(
        BlockDeviceError, match=r"it needs Linux, and this is darwin; the emulated arrays .* need Linux, too"
    ):
        block_device_parts.check_needs()


@pytest.mark.parametrize("name", ["", "Two", "../x", "a b", "x" * 31])
def test_a_name_is_a_simple_word(tmp_path: Path, name: str) -> None:
    with pytest.raises(BlockDeviceError, match="not a name of an array"):
        BlockDeviceArray(tmp_path, name)


def test_of_an_unreadable_array_the_file_is_named(home: Path) -> None:
    places = Places(home, "one")
    places.folder.mkdir(parents=True)
    places.facts.write_text("{}")
    with pytest.raises(BlockDeviceError, match=r"array\.json cannot be read .*destroy one` removes the emulated array"):
        BlockDeviceArray(home, "one").facts  # noqa: B018
    places.facts.unlink()


def test_an_array_lives_in_memory_under_a_short_path(home: Path) -> None:
    assert len(os.fsencode(Places(home / ("x" * 200), "y" * 30).socket)) < 107
    assert Places(home, "one").runtime.parent == RUNTIME
