"""The container engine of this machine, and limits on the disks under a container's folders."""

import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Any

from stallmark.errors import StallmarkError, as_reason
from stallmark.storage.block_devices import SYS_BLOCK, NoBlockDevice, device_behind

ANSWER_WITHIN_S = 120
PLATFORM = "linux/amd64"  # the only one that Microsoft builds SQL Server's images for
REMEDY = (
    "See that `docker info` works for you and this machine is online, change what it names, and run the command again; "
    "`stallmark server down` removes what is left of a server."
)


def engine() -> Any:
    """Return a `docker.DockerClient`. Raise StallmarkError if there is none for this machine."""
    try:
        import docker
    except ImportError:
        raise StallmarkError("A container needs one more package: pip install 'stallmark[container]'.") from None
    with asked("The container engine cannot be used"):
        client = docker.from_env(timeout=ANSWER_WITHIN_S)
    if not client.api.base_url.startswith("http+docker://local"):
        client.close()
        raise StallmarkError(
            "DOCKER_HOST names the container engine of another machine, whose folders, disks and ports are not those "
            "of this one: run `stallmark server` there."
        )
    return client


@contextmanager
def asked(what: str) -> Iterator[None]:
    """Turn any refusal of the engine into `what`, its own words and the remedy."""
    import docker
    import requests

    try:
        yield
    except (docker.errors.DockerException, requests.RequestException) as error:
        words = str(getattr(error, "explanation", None) or error).strip() or type(error).__name__
        raise StallmarkError(f"{what}: {as_reason(words.splitlines()[0])}. {REMEDY}") from None


@dataclass(frozen=True)
class DeviceLimits:
    """Limits per second on each disk under the folders of a container: I/Os and bytes; None: no limit.

    The kernel delays what is beyond (cgroup `io.max`). It holds for direct I/O, which is how SQL Server reads and
    writes its files.
    """

    read_iops: int | None = None
    write_iops: int | None = None
    read_bps: int | None = None
    write_bps: int | None = None

    def __bool__(self) -> bool:
        return any(getattr(self, field.name) is not None for field in fields(self))

    def options(self, folders: Sequence[Path]) -> Mapping[str, list[dict[str, Any]]]:
        """Return options for `containers.create`: the limits on every disk under these folders.

        Raises StallmarkError where a folder is on no block device."""
        if not self:
            return {}
        if not folders:
            raise StallmarkError("A limit on a device needs a folder on that device: name it with --data.")
        if sys.platform != "linux":
            raise StallmarkError("Limits on devices are Linux's (cgroups): leave them out on this system.")
        disks = sorted({disk_beneath(folder) for folder in folders})
        rates = {field.name: rate for field in fields(self) if (rate := getattr(self, field.name)) is not None}
        return {f"device_{name}": [{"Path": disk, "Rate": rate} for disk in disks] for name, rate in rates.items()}


def disk_beneath(folder: Path) -> str:
    """Return "/dev/sda" for a folder on /dev/sda1: the kernel limits whole disks (and LVM's, md's), no partitions."""
    try:
        device = device_behind(folder)
    except NoBlockDevice as reason:
        raise StallmarkError(
            f"No limit can be put on the device under {folder}: {str(reason).rstrip('.')}; leave the limit out, or "
            "name a folder on a disk."
        ) from None
    place = (SYS_BLOCK / device.number).resolve()
    disk = place.parent if (place / "partition").exists() else place
    return "/dev/" + disk.name.replace("!", "/")
