"""A SQL Server of our own: Microsoft's image in a container, with its memory, folders and devices as asked.

Everything that is made carries our label, and nothing without it is ever stopped or removed.
"""

import os
import shutil
import sys
import time
from collections.abc import Sequence
from contextlib import closing, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from stallmark.engines import sql_file
from stallmark.engines.base import ServerIdentity
from stallmark.engines.mssql import odbc
from stallmark.engines.mssql.engine import MssqlEngine
from stallmark.errors import CallFailed, StallmarkError, as_reason
from stallmark.experiment.progress import Show
from stallmark.lab.server_order import (
    DATABASE,
    INSIDE,
    INSIDE_LOG,
    LABEL,
    MADE,
    PLATFORM,
    REMEDY,
    USER_ID,
    VERSION_LABEL,
    CredentialFiles,
    ServerOrder,
    container_engine,
    new_password,
    refusals_as_errors,
    url,
)
from stallmark.stopping import later

LICENCE = "https://go.microsoft.com/fwlink/?linkid=857698"
READY_WITHIN_S = 300
# On shutdown the server writes a checkpoint of every database.
STOPS_WITHIN_S = 60
LAST_LINES = 20


@dataclass(frozen=True)
class ReadyServer:
    """A server that takes logins. Neither path's content may be shown: both hold the password."""

    identity: ServerIdentity
    url: str  # without the password
    url_file: Path
    password_file: Path


def up(order: ServerOrder, show: Show, *, accept_eula: bool, ready_within_s: float = READY_WITHIN_S) -> ReadyServer:
    """Start a server and wait until it accepts logins. If that fails or is stopped, no container is left behind."""
    if not accept_eula:
        raise StallmarkError(
            f"SQL Server is under Microsoft's licence, {LICENCE}: read it, and if you accept it, add --accept-eula."
        )
    credentials = CredentialFiles(order.name)
    failure = f"SQL Server {order.version} could not be started"
    with credentials.lock():
        known, first_known = credentials.password(), credentials.first_password()
        # A server that is started again keeps its passwords: its master database has them.
        password, first_password = known or new_password(), first_known or new_password()
        # Raises for a missing ODBC driver before anything is downloaded.
        server = MssqlEngine(url(order.port, "master", password))
        at_first = MssqlEngine(url(order.port, "master", first_password))
        with closing(container_engine()) as client, refusals_as_errors(failure):
            _refuse_name_in_use(client, order.name)
            for folder in order.folders:
                _prepare_folder(folder, credentials)
            options = order.options(first_password)
            _download(client, order.image, show)
            running, new_volume = None, False
            try:
                credentials.write(order, password, first_password)
                # Docker completes a request even if we stop waiting for it, and would leave an unknown volume.
                with later():
                    new_volume = order.data is None and _make_volume(client, order, is_known=known is not None)
                with later():
                    running = client.containers.create(**options)
                running.start()
                with show.bar(f"Starting SQL Server {order.version}", None):
                    _wait(running, server, at_first, show, ready_within_s)
                server.execute(sql_file.read(__package__, "create_database").format(name=DATABASE))
                identity = server.identity()
            except BaseException:
                with later(), suppress(StallmarkError), refusals_as_errors(failure):
                    if running:
                        running.remove(force=True)
                    # An existing volume has an earlier server's data, and stays.
                    if new_volume:
                        client.volumes.get(order.volume).remove()
                    # In other cases files with these passwords may be left on the volume.
                    if not known and (new_volume or not running):
                        credentials.remove()
                raise
    return ReadyServer(identity, url(order.port, DATABASE), credentials.url_file, credentials.password_file)


def down(name: str, *, remove_data: bool) -> list[str]:
    """Stop a server and remove its container, and only if asked its data. Returns what was done, in sentences."""
    credentials = CredentialFiles(name)
    with closing(container_engine()) as client, credentials.lock(), refusals_as_errors(f"{name} could not be stopped"):
        return _down(client, credentials, remove_data)


def _down(client: Any, credentials: CredentialFiles, remove_data: bool) -> list[str]:
    name = credentials.name
    container = _find(client.containers, name)
    if container is None and not credentials.exist:
        raise StallmarkError(f"Unknown server {name!r}: `stallmark server list` shows all servers.")
    sentences, folders = [], credentials.folders()
    if container is not None:
        _refuse_foreign(container, name)
        folders |= _folders(container)
        container.stop(timeout=STOPS_WITHIN_S)
        container.remove(force=True)
        sentences.append(f"{name} is stopped, its container removed.")
    if not remove_data:
        return [*sentences, "Its data is kept: `stallmark server up` goes on with it, --remove-data removes it."]
    if (volume := _find(client.volumes, f"{name}-data")) and _is_ours(volume, name):
        volume.remove()
    for kind, folder in folders.items():
        _remove_files(Path(folder), MADE[kind])
    credentials.remove()
    return [*sentences, "Its data is removed."]


def servers() -> list[dict[str, Any]]:
    """Return our servers on this machine: name, version, state, port, memory_bytes, data."""
    with closing(container_engine()) as client, refusals_as_errors("The containers could not be listed"):
        return [_container_facts(container) for container in client.containers.list(all=True, filters={"label": LABEL})]


def _container_facts(container: Any) -> dict[str, Any]:
    host = container.attrs["HostConfig"]
    bindings = (host.get("PortBindings") or {}).get("1433/tcp") or [{}]
    name = container.labels[LABEL]
    return {
        "name": name,
        "version": container.labels.get(VERSION_LABEL),
        "state": container.status,
        "port": int(bindings[0].get("HostPort") or 0) or None,
        "memory_bytes": host.get("Memory"),
        "data": _folders(container).get("data") or f"{name}-data",
        "url_file": str(CredentialFiles(name).url_file) if CredentialFiles(name).url_file.exists() else None,
    }


def _folders(container: Any) -> dict[str, str]:
    """Return the folders of this machine that a container has, as "data" and "log"; not a volume of Docker's."""
    binds = [bind.split(":") for bind in container.attrs["HostConfig"].get("Binds") or []]
    inside = {INSIDE: "data", INSIDE_LOG: "log"}
    return {inside[inner]: here for here, inner, *_ in binds if inner in inside and here.startswith("/")}


def _prepare_folder(folder: Path, credentials: CredentialFiles) -> None:
    """Make a folder that SQL Server can write to; one that holds what is not this server's is refused."""
    known = str(folder) in credentials.folders().values()
    try:
        folder.mkdir(parents=True, exist_ok=True)
        foreign = not known and any(path.name != "lost+found" for path in folder.iterdir())
        owner = folder.stat()
    except OSError as error:
        raise StallmarkError(f"{folder} cannot be used ({error.strerror}): choose another.") from None
    if foreign:
        raise StallmarkError(f"{folder} holds files that are not of this server: choose an empty folder or a new one.")
    if sys.platform != "linux" or owner.st_uid == USER_ID or owner.st_mode & 0o003 == 0o003:
        return
    if os.getuid() != 0:
        raise StallmarkError(
            f"{folder} must belong to user {USER_ID}, as whom SQL Server runs in its container: "
            f"sudo chown {USER_ID} {folder}"
        )
    os.chown(folder, USER_ID, -1)


def _find(collection: Any, name: str) -> Any:
    """Return a container or a volume, or None if it does not exist."""
    import docker

    with suppress(docker.errors.NotFound):
        return collection.get(name)


def _is_ours(volume: Any, name: str) -> bool:
    return (volume.attrs.get("Labels") or {}).get(LABEL) == name


def _refuse_name_in_use(client: Any, name: str) -> None:
    if (container := _find(client.containers, name)) is None:
        return
    _refuse_foreign(container, name)
    raise StallmarkError(
        f"There is a server {name!r} already ({container.status}): `stallmark server down {name}` removes it, "
        "or choose another --name."
    )


def _refuse_foreign(container: Any, name: str) -> None:
    if container.labels.get(LABEL) != name:
        raise StallmarkError(f"The container {name!r} is not Stallmark's, and stays as it is: choose another name.")


def _download(client: Any, image: str, show: Show) -> None:
    import docker

    try:
        client.images.get(image)
    except docker.errors.NotFound:
        show.say(f"Downloading {image}: this takes minutes.")
        repository, _, tag = image.rpartition(":")
        for line in client.api.pull(repository, tag, stream=True, decode=True, platform=PLATFORM):
            if "error" in line:
                raise StallmarkError(f"{image} cannot be downloaded: {as_reason(line['error'])}. {REMEDY}") from None


def _make_volume(client: Any, order: ServerOrder, *, is_known: bool) -> bool:
    """Make the volume of a server without a folder, and return True if it is new. Raise StallmarkError if the volume is
    not ours, or contains a server whose password is not `is_known`.
    """
    if (volume := _find(client.volumes, order.volume)) is None:
        client.volumes.create(order.volume, labels={LABEL: order.name})
        return True
    if not _is_ours(volume, order.name):
        raise StallmarkError(
            f"The volume {order.volume!r} is not Stallmark's, and stays as it is: choose another --name."
        )
    if not is_known:
        raise StallmarkError(
            f"The volume {order.volume!r} holds a server whose password is not known here: choose another --name, or "
            f"`docker volume rm {order.volume}` if its data may go."
        )
    return False


def _wait(running: Any, server: MssqlEngine, at_first: MssqlEngine, show: Show, ready_within_s: float) -> None:
    """Wait until a login succeeds. A login with the first password replaces it; earlier data do not take that password.

    Raises StallmarkError when the server ends, or takes too long.
    """
    began = time.monotonic()
    while True:
        running.reload()
        if running.status not in ("created", "running", "restarting"):
            raise StallmarkError(f"SQL Server ended while it started{_last_lines(running)}")
        try:
            server.connect().close()
            return
        except StallmarkError as error:
            refusal = str(error)
        try:
            at_first.execute(f"ALTER LOGIN sa WITH PASSWORD = {odbc.text(server.address.password or '')}")
            continue
        except CallFailed as error:
            refusal = f"Its first password could not be replaced ({error.message})."
        except StallmarkError:
            # The server is not up yet, or has the other password.
            pass
        if time.monotonic() - began > ready_within_s:
            raise StallmarkError(f"SQL Server takes no login after {ready_within_s:.0f} s. {refusal}")
        show.advance(time.monotonic() - began, "waiting for a login")
        time.sleep(1)


def _last_lines(running: Any) -> str:
    """Return the reason that is known and the last lines of its output, as the end of a sentence, with the remedy."""
    killed = " (it needed more memory than its container has)" if running.attrs["State"].get("OOMKilled") else ""
    lines = [line.rstrip() for line in running.logs(tail=200).decode(errors="replace").splitlines() if line.strip()]
    text = "\n".join(lines[-LAST_LINES:]) or "nothing"
    return (
        f"{killed}. Its last lines are below; docs/sql-server.md has the usual reasons, and what to change: --memory, "
        f"--version or the folders.\n{text}"
    )


def _remove_files(folder: Path, patterns: Sequence[str]) -> None:
    """Remove what SQL Server made in a folder; what anyone else put there since stays."""
    try:
        for path in [file for pattern in patterns for file in folder.glob(pattern)]:
            shutil.rmtree(path) if path.is_dir() and not path.is_symlink() else path.unlink()
    except PermissionError:
        raise StallmarkError(
            f"The files in {folder} belong to SQL Server's user, and you may not remove them: "
            f"sudo rm -rf {' '.join(str(folder / pattern) for pattern in patterns)}, then the same command again."
        ) from None
