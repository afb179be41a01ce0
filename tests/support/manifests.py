"""Manifests of records, and changes of those that are written.

writer = RecordWriter(folder, a_manifest(notes=("one",)))
changed(folder, devices=on(EMULATED), array={"dram_bytes": 8 << 30})
"""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from stallmark.record.manifest import Manifest, read_manifest, write_manifest

STARTED = "2026-01-01T00:00:00+00:00"


def a_manifest(model: type[Manifest] = Manifest, /, **fields: Any) -> Manifest:
    """Make a manifest; what is not named is as in a run of which nothing is known but when it started."""
    return model(**{"started": STARTED} | fields)


def changed(folder: Path, **fields: Any) -> Path:
    """Replace fields in the manifest of a record that is written."""
    write_manifest(folder, read_manifest(folder).changed(**fields))
    return folder


def on(data: Mapping[str, Any], wal: Mapping[str, Any] | None = None) -> dict[str, Any]:
    """The devices of data and log (the same, unless told), each an emulated array ("spindles" …) or a real one."""
    return {"data": _device(data), "wal": _device(data if wal is None else wal)}


def _device(given: Mapping[str, Any]) -> dict[str, Any]:
    return {"emulated_array": dict(given)} if "spindles" in given else dict(given)
