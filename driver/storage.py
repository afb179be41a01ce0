"""Which devices a server of ours lies on, for the manifest: emulated ones by their model, real ones by name."""

from dataclasses import asdict
from pathlib import Path
from typing import Any

from stallmark.driver.block_devices import NoBlockDevice, device_behind
from stallmark.driver.engines.base import Engine
from stallmark.driver.lab import lab_of


def facts(engine: Engine) -> dict[str, Any]:
    """{"emulated": …, "data": {…}, "wal": {…}}; without data and WAL for a server that is not ours.

    A block device that is a lab's says so under "lab".
    """
    models = engine.emulated_devices()
    described = {name: _real(folder) for name, folder in engine.directories().items()}
    for name, model in models.items():
        described[name] = asdict(model)
    emulated = bool(models) or any("lab" in device for device in described.values())
    return {"emulated": emulated, **described}


def _real(folder: Path) -> dict[str, Any]:
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
    lab = lab_of(device.name)
    return described | ({"lab": lab} if lab else {})


def _read(path: Path) -> str | None:
    try:
        return path.read_text().strip()
    except OSError:
        return None
