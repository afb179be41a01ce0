"""The container engine of this machine: found, asked, and its refusals put into sentences."""

import re
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Any

from stallmark.errors import StallmarkError
from stallmark.storage.block_devices import SYS_BLOCK, NoBlockDevice, device_behind

ANSWER_WITHIN_S = 120
PLATFORM = "linux/amd64"  # the only one that Microsoft builds SQL Server's images for

# As the engine says it, in its answer to the request or in a line of the download.
_NO_WAY_THERE = re.compile("dial tcp|no such host|[Tt]imeout|unreachable")


def engine() -> Any:
    """Return a `docker.DockerClient`. Raise StallmarkError with what is to be installed, started or granted."""
    try:
        import docker
    except ImportError:
        raise StallmarkError("A container needs one more package: pip install 'stallmark[container]'.") from None
    try:
        client = docker.from_env(timeout=ANSWER_WITHIN_S)
    except docker.errors.DockerException as error:
        raise StallmarkError(_unreachable(error)) from None
    if not client.api.base_url.startswith("http+docker://local"):
        client.close()
        raise StallmarkError(
            "DOCKER_HOST names the container engine of another machine, whose folders, disks and ports are not those "
            "of this one: run `stallmark server` there."
        )
    return client


def _unreachable(error: Exception) -> str:
    causes = list(_causes(error))
    if any(isinstance(cause, PermissionError) for cause in causes):
        return (
            "The container engine does not let you in (no permission on its socket): add yourself to the group "
            "`docker` and log in again, or run as root."
        )
    if any(isinstance(cause, FileNotFoundError | ConnectionRefusedError) for cause in causes):
        return "No container engine answers here: install and start Docker, or name its socket in DOCKER_HOST."
    return f"The container engine cannot be used: {_first_line(error)}."


def _causes(error: BaseException | None) -> Iterator[BaseException]:
    """Yield an error and what it came from: by `raise … from`, or as an argument, as urllib3 and requests have it."""
    while error is not None:
        yield error
        inside = [each for each in error.args if isinstance(each, BaseException)]
        inside += [reason] if isinstance(reason := getattr(error, "reason", None), BaseException) else []
        for each in inside:
            yield from _causes(each)
        error = error.__cause__ or error.__context__


@contextmanager
def asked(what: str) -> Iterator[None]:
    """Turn a refusal of the engine into a sentence that begins with `what`."""
    import docker
    import requests

    try:
        yield
    except docker.errors.APIError as error:
        raise StallmarkError(f"{what}: {_first_line(error.explanation or error)}.") from None
    except (docker.errors.DockerException, requests.RequestException) as error:
        gone = any(isinstance(cause, FileNotFoundError | ConnectionError) for cause in _causes(error))
        why = "has ended" if gone else f"went silent ({_first_line(error)})"
        raise StallmarkError(f"{what}: the container engine {why}.") from None


def is_here(client: Any, image: str) -> bool:
    import docker

    with asked(f"{image} could not be looked for"):
        try:
            client.images.get(image)
        except docker.errors.NotFound:
            return False
    return True


def pull(client: Any, image: str, progress: Callable[[int, int], None]) -> None:
    """Download an image; `progress` is told the bytes that are here and those in all, as far as they are known."""
    sizes: dict[str, tuple[int, int]] = {}
    try:
        with asked(f"{image} cannot be downloaded"):
            for line in client.api.pull(*image.rsplit(":", 1), stream=True, decode=True, platform=PLATFORM):
                if "error" in line:
                    raise StallmarkError(f"{image} cannot be downloaded: {_first_line(line['error'])}.")
                detail = line.get("progressDetail") or {}
                if line.get("status") == "Downloading" and detail.get("total"):
                    sizes[line["id"]] = detail.get("current", 0), detail["total"]
                elif line.get("status") in ("Download complete", "Pull complete") and line["id"] in sizes:
                    sizes[line["id"]] = (sizes[line["id"]][1],) * 2
                progress(sum(here for here, _ in sizes.values()), sum(total for _, total in sizes.values()))
    except StallmarkError as error:
        hint = " Is this machine online?" if _NO_WAY_THERE.search(str(error)) else ""
        raise StallmarkError(f"{error}{hint}") from None


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


def _first_line(text: object) -> str:
    lines = str(text).strip().splitlines()
    return lines[0].strip().rstrip(".") if lines else "no reason given"
