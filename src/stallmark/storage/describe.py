"""Describe the block device under a folder: model, rotation, scheduler, write cache."""

from pathlib import Path
from typing import Any

from stallmark.storage.block_device import emulated_array_of
from stallmark.storage.block_devices import NoBlockDevice, device_behind


def describe(folder: Path) -> dict[str, Any]:
    """The block device under `folder` as the system tells of it; `{"name": None, "why": …}` where there is none.

    One of a lab says so under "lab".
    """
    try:
        device = device_behind(folder)
    except NoBlockDevice as reason:
        return {"name": None, "why": str(reason)}
    queue = Path("/sys/dev/block") / device.number / "queue"
    if not queue.exists():  # a partition: its disk has the queue
        queue = (Path("/sys/dev/block") / device.number).resolve().parent / "queue"
    described = {
        "name": device.name,
        "model": _read(queue.parent / "device" / "model"),
        "rotational": _read(queue / "rotational") == "1",
        "scheduler": _read(queue / "scheduler"),
        "write_cache": _read(queue / "write_cache"),
    }
    lab = emulated_array_of(device.name)
    return described | ({"lab": lab} if lab else {})


def _read(path: Path) -> str | None:
    try:
        return path.read_text().strip()
    except OSError:
        return None
