"""The order for a SQL Server container with the files kept for it, and the container engine of this machine."""

import json
import os
import re
import secrets
import shutil
import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, fields
from pathlib import Path
from typing import Any

from sqlalchemy.engine import URL

from stallmark.errors import StallmarkError, as_reason
from stallmark.experiment.target import home
from stallmark.record.files import exclusive_folder
from stallmark.storage.block_devices import SYS_BLOCK, NoBlockDevice, device_behind

# The container engine of this machine, and limits on the disks under a container's folders.

ANSWER_WITHIN_S = 120
# Microsoft builds SQL Server's images for this platform only.
PLATFORM = "linux/amd64"
REMEDY = (
    "See that `docker info` works for you and this machine is online, change what it names, and run the command again; "
    "`stallmark server down` removes what is left of a server."
)


def container_engine() -> Any:
    """Return a `docker.DockerClient`. Raise StallmarkError if this machine has no container engine."""
    try:
        import docker
    except ImportError:
        raise StallmarkError("A container needs one more package: pip install 'stallmark[container]'.") from None
    with refusals_as_errors("The container engine cannot be used"):
        client = docker.from_env(timeout=ANSWER_WITHIN_S)
    if not client.api.base_url.startswith("http+docker://local"):
        client.close()
        raise StallmarkError(
            "DOCKER_HOST names the container engine of another machine, whose folders, disks and ports are not those "
            "of this one: run `stallmark server` there."
        )
    return client


@contextmanager
def refusals_as_errors(action: str) -> Iterator[None]:
    """Turn any refusal of the engine into `what`, its own words and the remedy."""
    import docker
    import requests

    try:
        yield
    except (docker.errors.DockerException, requests.RequestException) as error:
        words = str(getattr(error, "explanation", None) or error).strip() or type(error).__name__
        raise StallmarkError(f"{action}: {as_reason(words.splitlines()[0])}. {REMEDY}") from None


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

        Raises StallmarkError if a folder is on no block device."""
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


# The order for a SQL Server container, and the files kept for it on this machine.

EDITIONS = {
    "2017": "Developer", "2019": "Developer", "2022": "Developer", "2025": "EnterpriseDeveloper",
}  # fmt: skip
"""The free edition of each version with all features of Enterprise, as a value of MSSQL_PID."""

# The first line has the server's name.
LABEL, VERSION_LABEL = "stallmark.server", "stallmark.version"
DATABASE = "stallmark"
# The user that runs SQL Server in its container.
USER_ID = 10001
INSIDE, INSIDE_LOG = "/var/opt/mssql", "/var/opt/mssql-log"
MADE = {"data": (".system", "data", "log", "secrets"), "log": ("*.ldf",)}
"""Files that SQL Server makes in its folders, and so those that may be removed there."""

# Without a limit of its own SQL Server takes 80 % of the memory it sees, and before 2022 CU 20 it sees the whole
# machine's and not the container's (cgroup v2). Below 2,000 MB it does not start.
SHARE_OF_SQL_SERVER = 0.8
LEAST_BYTES = 2560 * 1024**2


@dataclass(frozen=True)
class ServerOrder:
    """The properties of a server to start."""

    version: str = "2022"
    name: str = "stallmark"
    port: int = 1433
    memory_bytes: int = 4 * 1024**3
    data: Path | None = None
    """The folder for all files of the server, or None for a Docker volume."""
    log: Path | None = None
    """The folder for the logs of new databases, or None for `data`."""
    cpus: float | None = None
    edition: str | None = None
    limits: DeviceLimits = field(default_factory=DeviceLimits)

    def __post_init__(self) -> None:
        if self.memory_bytes < LEAST_BYTES:
            raise StallmarkError(
                f"SQL Server needs 2 GB for itself, so its container {LEAST_BYTES // 1024**2} MiB: raise --memory."
            )
        data, log = (folder and folder.resolve() for folder in (self.data, self.log))
        if data and log and (data.is_relative_to(log) or log.is_relative_to(data)):
            raise StallmarkError(f"--data {data} and --log {log} are nested: name two separate folders.")

    @property
    def image(self) -> str:
        return f"mcr.microsoft.com/mssql/server:{self.version}-latest"

    @property
    def volume(self) -> str:
        return f"{self.name}-data"

    @property
    def folders(self) -> list[Path]:
        return [folder.resolve() for folder in (self.data, self.log) if folder]

    def environment(self, first_password: str) -> dict[str, str]:
        """Return the environment of the container, with the password for the first login.

        Microsoft documents no other way to pass a password to the image, so anyone who can inspect the container can
        read it. Therefore the first login replaces it.
        """
        return {
            "ACCEPT_EULA": "Y",
            "MSSQL_SA_PASSWORD": first_password,
            "MSSQL_PID": self.edition or EDITIONS[self.version],
            "MSSQL_MEMORY_LIMIT_MB": str(int(self.memory_bytes * SHARE_OF_SQL_SERVER) // 1024**2),
            "MSSQL_DATA_DIR": f"{INSIDE}/data",
            "MSSQL_LOG_DIR": INSIDE_LOG if self.log else f"{INSIDE}/data",
        }

    def places(self) -> dict[str, dict[str, str]]:
        """Return the mounts. Z: on a system with SELinux the folders are this container's alone."""
        data = str(self.data.resolve()) if self.data else self.volume
        places = {data: {"bind": INSIDE, "mode": "rw,Z" if self.data else "rw"}}
        if self.log:
            places[str(self.log.resolve())] = {"bind": INSIDE_LOG, "mode": "rw,Z"}
        return places

    def options(self, first_password: str) -> dict[str, Any]:
        """Return options for `containers.create`."""
        return {
            "image": self.image,
            "name": self.name,
            "platform": PLATFORM,
            "environment": self.environment(first_password),
            "labels": {LABEL: self.name, VERSION_LABEL: self.version},
            "ports": {"1433/tcp": ("127.0.0.1", self.port)},
            "volumes": self.places(),
            "mem_limit": self.memory_bytes,
            "memswap_limit": self.memory_bytes,  # no swap: it would be storage that nobody sees
            "nano_cpus": round(self.cpus * 1e9) if self.cpus else None,
            **self.limits.options(self.folders),
        }


class CredentialFiles:
    """The credential files of a server, in a folder of its own below STALLMARK_HOME."""

    def __init__(self, name: str):
        if not re.fullmatch(r"[a-zA-Z0-9][a-zA-Z0-9_.-]+", name):
            raise StallmarkError(f"{name!r} is not a name of a container: take letters, digits, - and _.")
        self.name = name
        self.folder = home() / "servers" / name
        self.password_file = self.folder / "password"
        self.url_file = self.folder / "server.url"
        self._first_password_file = self.folder / "first-password"
        self._folders_file = self.folder / "folders.json"

    @property
    def exist(self) -> bool:
        return self.password_file.exists()

    @contextmanager
    def lock(self) -> Iterator[None]:
        """Hold the server for one command: two that start it would overwrite each other's passwords."""
        self.folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        with exclusive_folder(
            self.folder, taken=f"Another Stallmark starts or stops the server {self.name!r}: wait for its end."
        ):
            yield

    def password(self) -> str | None:
        return _read(self.password_file)

    def first_password(self) -> str | None:
        """Return the password of the server until its first login; a start that was killed left it so."""
        return _read(self._first_password_file)

    def folders(self) -> dict[str, str]:
        """Return the named folders of the server's files: "data" and "log"."""
        return json.loads(self._folders_file.read_text()) if self._folders_file.exists() else {}

    def write(self, order: ServerOrder, password: str, first_password: str) -> None:
        """Write all before anything is made, so that whatever a kill leaves can be gone on with."""
        _write_private(self.password_file, password + "\n")
        _write_private(self._first_password_file, first_password + "\n")
        _write_private(self.url_file, url(order.port, DATABASE, password) + "\n")
        folders = {name: str(folder.resolve()) for name, folder in (("data", order.data), ("log", order.log)) if folder}
        _write_private(self._folders_file, json.dumps(folders))

    def remove(self) -> None:
        shutil.rmtree(self.folder, ignore_errors=True)


def new_password() -> str:
    """Return 128 random bits in what the password policy asks for: three kinds of characters, and not the
    user's name."""
    return secrets.token_hex(16) + "-Xy7"


def url(port: int, database: str, password: str | None = None) -> str:
    """Return the URL. The certificate is one the server made for itself; we trust it because it is ours, on
    this machine."""
    return URL.create(
        "mssql", "sa", password, "127.0.0.1", port, database, {"TrustServerCertificate": "yes"}
    ).render_as_string(hide_password=False)


def _read(path: Path) -> str | None:
    return path.read_text().strip() if path.exists() else None


def _write_private(path: Path, text: str) -> None:
    draft = path.with_suffix(".new")
    draft.unlink(missing_ok=True)
    with open(os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "w") as file:
        file.write(text)
    draft.replace(path)
