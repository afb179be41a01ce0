"""Limits on a process's I/O to a device, as the kernel's block controllers have them.

Version 1 of control groups has a file for each (`blkio.throttle.read_iops_device`), version 2 has `io.max`. A limit
of a group holds for all groups within it. (Linux, Documentation/admin-guide/cgroup-v1/blkio-controller.rst and
cgroup-v2.rst.)
"""

from collections.abc import Iterator
from pathlib import Path

from stallmark.record.manifest.storage import IoLimit, Limited

PROC = Path("/proc")
_V1: dict[str, Limited] = {
    "blkio.throttle.read_iops_device": "reads",
    "blkio.throttle.write_iops_device": "writes",
    "blkio.throttle.read_bps_device": "bytes read",
    "blkio.throttle.write_bps_device": "bytes written",
}
_V2: dict[str, Limited] = {"riops": "reads", "wiops": "writes", "rbps": "bytes read", "wbps": "bytes written"}


def io_limits(pid: int, devices: set[str]) -> tuple[IoLimit, ...]:
    """Return the limits on a process's I/O to devices, by their numbers ("7:1"). What cannot be read is left out."""
    return tuple(limit for folder in _groups(pid) for limit in _limits(folder, devices))


def _groups(pid: int) -> Iterator[Path]:
    """Yield the folders of the process's control groups for block devices, outermost last."""
    mounts = _mounts()
    for line in _read(PROC / str(pid) / "cgroup").splitlines():
        _, controllers, path = line.split(":", 2)
        kind = "blkio" if "blkio" in controllers.split(",") else "" if not controllers else None
        if kind is None or (root := mounts.get(kind)) is None:
            continue
        folder = root / path.lstrip("/")
        yield from (each for each in (folder, *folder.parents) if each.is_relative_to(root))


def _mounts() -> dict[str, Path]:
    """Return where the groups of version 1 ("blkio") and of version 2 ("") are mounted."""
    mounts = {}
    for line in _read(PROC / "self" / "mounts").splitlines():
        _, point, kind, options, *_ = line.split(" ")
        if kind == "cgroup2":
            mounts[""] = Path(point)
        elif kind == "cgroup" and "blkio" in options.split(","):
            mounts["blkio"] = Path(point)
    return mounts


def _limits(folder: Path, devices: set[str]) -> Iterator[IoLimit]:
    for name, limited in _V1.items():
        for line in _read(folder / name).splitlines():
            number, value = line.split()
            if number in devices:
                yield IoLimit(limited=limited, per_s=int(value), file=str(folder / name))
    for line in _read(folder / "io.max").splitlines():
        number, *pairs = line.split()
        for key, _, value in (pair.partition("=") for pair in pairs):
            if number in devices and key in _V2 and value != "max":
                yield IoLimit(limited=_V2[key], per_s=int(value), file=str(folder / "io.max"))


def _read(file: Path) -> str:
    try:
        return file.read_text()
    except OSError:
        return ""
