"""A database on an emulated array as a block device: it lives there, and the array counts what it does."""

import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from support.collecting import read
from support.embedded_servers import Make, filled

from stallmark.collectors.host import DeviceIO
from stallmark.experiment.manifest import devices_of
from stallmark.lab import block_device_parts
from stallmark.lab.block_device import BlockDeviceArray
from stallmark.storage.block_devices import BlockDeviceError
from stallmark.storage.emulator import ArrayModel, FlashCache

WHY_NOT = block_device_parts.missing_needs()
MODEL = ArrayModel(spindles=8, read_ms=0.1, write_ms=0.1, sync_ms=0, mb_per_s=1000, cache=FlashCache(64 << 20))


@contextmanager
def mounted(device: str, place: Path) -> Iterator[None]:
    place.mkdir()
    subprocess.run(["mkfs.ext4", "-q", device], check=True)
    subprocess.run(["mount", device, place], check=True)
    try:
        yield
    finally:
        subprocess.run(["umount", place], check=True)


@pytest.mark.skipif(WHY_NOT is not None, reason=f"{WHY_NOT}")
def test_a_database_lives_on_it(make_server: Make, tmp_path: Path) -> None:
    array, place = BlockDeviceArray(tmp_path / "arrays", "array"), tmp_path / "array"
    device = array.create(700 << 20, MODEL).loop
    assert device
    try:
        with mounted(device, place):
            server = make_server("array/server")
            engine = filled(server)
            engine.execute("CHECKPOINT")
            described = devices_of(engine)
            assert described.data.emulated_array.block_device and described.data.emulated_array.name == "array"
            [row] = read(DeviceIO(engine))
            assert (row["emulated"], row["role"]) == (True, "data+wal")
            assert row["writes"] > 0 and row["syncs"] > 0 and row["spindle_writes"] == row["writes"]
            with pytest.raises(BlockDeviceError, match=rf"is in use \({place}\)"):
                array.destroy()
            server.close()
    finally:
        array.destroy()
