"""Describe the block device under a folder: model, size, rotation, scheduler, write cache, and how it is mounted."""

from pathlib import Path

from stallmark.record.manifest.storage import Device
from stallmark.storage.block_device import emulated_array_of
from stallmark.storage.block_devices import SECTOR_BYTES, SYS_BLOCK, NoBlockDevice, device_behind, mount_of


def describe(folder: Path) -> Device:
    """Describe the block device under `folder` as the system reports it; without a device, say why."""
    try:
        device = device_behind(folder)
    except NoBlockDevice as reason:
        return Device(why=str(reason))
    found = SYS_BLOCK / device.number
    queue = found / "queue"
    if not queue.exists():  # a partition: its disk has the queue
        queue = found.resolve().parent / "queue"
    mount = mount_of(folder.resolve())
    sectors = _read(found / "size")
    return Device(
        name=device.name,
        disk=queue.parent.resolve().name,
        model=_read(queue.parent / "device" / "model"),
        size_bytes=int(sectors) * SECTOR_BYTES if sectors else None,
        rotational=_read(queue / "rotational") == "1",
        scheduler=_read(queue / "scheduler"),
        write_cache=_read(queue / "write_cache"),
        file_system=mount.file_system,
        mount_options=mount.options,
        emulated_array=emulated_array_of(device.name),
    )


def _read(path: Path) -> str | None:
    try:
        return path.read_text().strip()
    except OSError:
        return None
