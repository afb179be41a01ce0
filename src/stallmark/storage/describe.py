"""Describe the block device under a folder: model, rotation, scheduler, write cache."""

from pathlib import Path

from stallmark.record.manifest.storage import Device
from stallmark.storage.block_device import emulated_array_of
from stallmark.storage.block_devices import NoBlockDevice, device_behind


def describe(folder: Path) -> Device:
    """Describe the block device under `folder` as the system reports it; without a device, say why."""
    try:
        device = device_behind(folder)
    except NoBlockDevice as reason:
        return Device(why=str(reason))
    queue = Path("/sys/dev/block") / device.number / "queue"
    if not queue.exists():  # a partition: its disk has the queue
        queue = (Path("/sys/dev/block") / device.number).resolve().parent / "queue"
    return Device(
        name=device.name,
        disk=queue.parent.resolve().name,
        model=_read(queue.parent / "device" / "model"),
        rotational=_read(queue / "rotational") == "1",
        scheduler=_read(queue / "scheduler"),
        write_cache=_read(queue / "write_cache"),
        emulated_array=emulated_array_of(device.name),
    )


def _read(path: Path) -> str | None:
    try:
        return path.read_text().strip()
    except OSError:
        return None
