"""Describe the block device under a folder: model, size, rotation, scheduler, write cache, and how it is mounted."""

from pathlib import Path

from stallmark.record.manifest.storage import Device
from stallmark.storage.array_facts import beneath, emulated_array_of
from stallmark.storage.block_devices import SECTOR_BYTES, SYS_BLOCK, NoBlockDevice, device_behind, mount_of
from stallmark.storage.io_limits import io_limits


def describe(folder: Path, server: int | None = None) -> Device:
    """Describe the block device under `folder` as the system reports it; without a device, say why. `server`: a process
    whose limits are told; None if it is not known."""
    try:
        device = device_behind(folder)
    except NoBlockDevice as reason:
        return Device(why=str(reason))
    found = SYS_BLOCK / device.number
    queue = found / "queue"
    if not queue.exists():  # a partition: its disk has the queue
        queue = found.resolve().parent / "queue"
    mount = mount_of(folder.resolve())
    sectors, tags = _read(found / "size"), _read(queue / "nr_requests")
    disk = queue.parent.resolve().name
    numbers = {_read(Path("/sys/class/block", name, "dev")) or "" for name in (device.name, disk, *beneath(disk))}
    return Device(
        name=device.name,
        disk=disk,
        model=_read(queue.parent / "device" / "model"),
        size_bytes=int(sectors) * SECTOR_BYTES if sectors else None,
        rotational=_read(queue / "rotational") == "1",
        scheduler=_read(queue / "scheduler"),
        write_cache=_read(queue / "write_cache"),
        file_system=mount.file_system,
        mount_options=mount.options,
        emulated_array=emulated_array_of(device.name),
        limits=io_limits(server, numbers) if server else (),
        tags=int(tags) if tags else None,
    )


def _read(path: Path) -> str | None:
    try:
        return path.read_text().strip()
    except OSError:
        return None
