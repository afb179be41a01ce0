"""Where a database of ours lies: said before the load, so that a wrong disk is seen before it is measured for days."""

from collections.abc import Iterator
from pathlib import Path

from stallmark.engines.base import Engine
from stallmark.errors import as_reason
from stallmark.scenarios.model import AnyScenario
from stallmark.storage.block_devices import NoBlockDevice, device_behind, mount_of
from stallmark.storage.direct_io import direct_io

_PAGE_CACHE = {
    "past": ", direct I/O",
    "through": ", direct I/O through the system's page cache: reads may come from memory",
    "unknown": ", direct I/O perhaps through the system's page cache",
}


def locations(engine: Engine, scenario: AnyScenario | None = None) -> Iterator[str]:
    """Yield a sentence for each folder of an embedded server, and of variants that lie elsewhere: device and file
    system; none for a server by URL."""
    for name, folder in (folders := engine.directories()).items():
        yield f"{name}: {_described(name, folder)}"
    for variant in scenario.variants if scenario and folders else ():
        if variant.place:
            yield f"{variant.name}: data: {_described('data', Path(variant.place.data))}"
            log = _described("log", Path(variant.place.log)) if variant.place.log else "with the data"
            yield f"{variant.name}: log: {log}"


def _described(name: str, folder: Path) -> str:
    nearest = folder if folder.is_dir() else folder.parent  # it is made when the first run begins
    tried = direct_io(nearest) if name == "data" else None
    return f"{folder}, {_disk(nearest)}{_PAGE_CACHE[tried.goes] if tried else ''}"


def _disk(folder: Path) -> str:
    try:
        return f"on {device_behind(folder).name} ({mount_of(folder).file_system})"
    except NoBlockDevice as reason:
        return as_reason(reason)
