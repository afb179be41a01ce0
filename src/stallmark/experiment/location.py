"""Where a database of ours lies: said before the load, so that a wrong disk is seen before it is measured for days."""

from collections.abc import Iterator
from pathlib import Path

from stallmark.engines.base import Engine
from stallmark.errors import as_reason
from stallmark.storage.block_devices import NoBlockDevice, device_behind, mount_of


def locations(engine: Engine) -> Iterator[str]:
    """Yield a sentence for each folder of an embedded server: device and file system; none for a server by URL."""
    for name, folder in engine.directories().items():
        yield f"{name}: {folder}, {_disk(folder)}{', direct I/O' if name == 'data' else ''}"


def _disk(folder: Path) -> str:
    try:
        return f"on {device_behind(folder).name} ({mount_of(folder).file_system})"
    except NoBlockDevice as reason:
        return as_reason(reason)
