"""A SQL Server of our own: Microsoft's image in a container, with its memory, folders and devices as asked.

Everything that is made carries our label, and nothing without it is ever stopped or removed.
"""

import os
import re
import secrets
import shutil
import sys
import time
from collections.abc import Mapping, Sequence
from contextlib import closing, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from stallmark import format
from stallmark.cli.server import container
from stallmark.cli.server.container import asked
from stallmark.cli.server.ending import last_line, why_ended
from stallmark.cli.server.order import (
    DATABASE,
    INSIDE,
    INSIDE_LOG,
    LABEL,
    MADE,
    START_LABEL,
    USER_ID,
    VERSION_LABEL,
    CredentialFiles,
    ServerOrder,
    new_password,
    url,
)
from stallmark.engines import sql_file
from stallmark.engines.base import ServerIdentity
from stallmark.engines.mssql import sql
from stallmark.engines.mssql.engine import MssqlEngine
from stallmark.errors import CallFailed, StallmarkError
from stallmark.experiment.progress import Show
from stallmark.stopping import later

LICENCE = "https://go.microsoft.com/fwlink/?linkid=857698"
READY_WITHIN_S = 300
_NAME_IN_USE = "is already in use by container"  # as the engine says it
STOPS_WITHIN_S = 60  # it writes a checkpoint of every database


@dataclass(frozen=True)
class ReadyServer:
    """A server that takes logins. Neither path's content may be shown: both hold the password."""

    identity: ServerIdentity
    url: str  # without the password
    url_file: Path
    password_file: Path


def up(order: ServerOrder, show: Show, *, accept_eula: bool, ready_within_s: float = READY_WITHIN_S) -> ReadyServer:
    """Start a server and wait until it takes a login. Whatever fails or is stopped, no container is left behind."""
    if not accept_eula:
        raise StallmarkError(
            f"SQL Server is under Microsoft's licence, {LICENCE}: read it, and if you accept it, say --accept-eula."
        )
    credentials = CredentialFiles(order.name)
    with credentials.held():
        known, first_known = credentials.password(), credentials.first_password()
        password, first_password = known or new_password(), first_known or new_password()
        server = MssqlEngine(url(order.port, "master", password))  # a missing ODBC driver is said here
        at_first = MssqlEngine(url(order.port, "master", first_password))
        with closing(container.engine()) as client:
            _refuse_name_in_use(client, credentials)
            for folder in order.folders:
                _prepare_folder(folder, credentials)
            start = credentials.unfinished_start() or secrets.token_hex(8)
            options = order.options(first_password, start)
            if not container.is_here(client, order.image):
                _download(client, order.image, show)
            running, new_volume = None, False
            try:
                credentials.write(order, password, first_password, start)
                new_volume = order.data is None and not _has_volume(client, order, is_known=known is not None)
                if new_volume:
                    _make_volume(client, order)
                running = _create(client, options, credentials)
                _start(running, order)
                with show.bar(f"Starting SQL Server {order.version}", None):
                    _wait(running, server, at_first, show, ready_within_s)
                server.execute(sql_file.read(__package__, "create_database").format(name=DATABASE))
                identity = server.identity()
                credentials.finished()
            except BaseException:
                with later(), suppress(StallmarkError):
                    _remove_container(client, order.name, START_LABEL, start)
                    if new_volume:
                        _remove_volume(client, order.volume)
                    if not known and (new_volume or not running):  # otherwise files may be left, with these passwords
                        credentials.remove()
                raise
    return ReadyServer(identity, url(order.port, DATABASE), credentials.url_file, credentials.password_file)


def down(name: str, *, remove_data: bool) -> list[str]:
    """Stop a server and remove its container, and only if asked its data. Returns what was done, in sentences."""
    credentials = CredentialFiles(name)
    with closing(container.engine()) as client, credentials.held():
        return _down(client, credentials, remove_data)


def _down(client: Any, credentials: CredentialFiles, remove_data: bool) -> list[str]:
    name = credentials.name
    found = _find(client, name)
    if found is None and not credentials.exist:
        raise StallmarkError(f"There is no server {name!r}: `stallmark server list` shows which there are.")
    said, folders = [], credentials.folders()
    if found is not None:
        _refuse_foreign(found, name)
        folders |= _folders(found)
        with asked(f"{name} could not be stopped"):
            found.stop(timeout=STOPS_WITHIN_S)
        _remove_container(client, name, LABEL, name)
        said.append(f"{name} is stopped, its container removed.")
    if not remove_data:
        return [*said, "Its data is kept: `stallmark server up` goes on with it, --remove-data removes it."]
    _remove_volume(client, f"{name}-data")
    for kind, folder in folders.items():
        _remove_files(Path(folder), MADE[kind])
    credentials.remove()
    return [*said, "Its data is removed."]


def servers() -> list[dict[str, Any]]:
    """Return our servers on this machine: name, version, state, port, memory_bytes, data."""
    with closing(container.engine()) as client:
        with asked("The containers could not be listed"):
            found = client.containers.list(all=True, filters={"label": LABEL})
        return [_described(each) for each in found]


def _described(found: Any) -> dict[str, Any]:
    host = found.attrs["HostConfig"]
    bindings = (host.get("PortBindings") or {}).get("1433/tcp") or [{}]
    name = found.labels[LABEL]
    return {
        "name": name,
        "version": found.labels.get(VERSION_LABEL),
        "state": found.status,
        "port": int(bindings[0].get("HostPort") or 0) or None,
        "memory_bytes": host.get("Memory"),
        "data": _folders(found).get("data") or f"{name}-data",
        "url_file": str(CredentialFiles(name).url_file) if CredentialFiles(name).url_file.exists() else None,
    }


def _folders(found: Any) -> dict[str, str]:
    """Return the folders of this machine that a container has, as "data" and "log"; not a volume of Docker's."""
    binds = [bind.split(":") for bind in found.attrs["HostConfig"].get("Binds") or []]
    inside = {INSIDE: "data", INSIDE_LOG: "log"}
    return {inside[there]: here for here, there, *_ in binds if there in inside and here.startswith("/")}


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


def _find(client: Any, name: str) -> Any:
    import docker

    with asked(f"{name} could not be looked for"):
        try:
            return client.containers.get(name)
        except docker.errors.NotFound:
            return None


def _refuse_name_in_use(client: Any, credentials: CredentialFiles) -> None:
    """Refuse a name that a container has already; what a killed start has left of it is removed."""
    name, unfinished = credentials.name, credentials.unfinished_start()
    if unfinished:
        _remove_container(client, name, START_LABEL, unfinished)
    if (found := _find(client, name)) is None:
        return
    _refuse_foreign(found, name)
    raise StallmarkError(
        f"There is a server {name!r} already ({found.status}): `stallmark server down {name}` removes it, "
        "or choose another --name."
    )


def _refuse_foreign(found: Any, name: str) -> None:
    if found.labels.get(LABEL) != name:
        raise StallmarkError(f"The container {name!r} is not Stallmark's, and stays as it is: choose another name.")


def _download(client: Any, image: str, show: Show) -> None:
    def progress(here: int, total: int) -> None:
        show.advance(here, f"{format.size(here)} of {format.size(total)}", total or None)

    with show.bar(f"Downloading {image}", None):
        container.pull(client, image, progress)


def _has_volume(client: Any, order: ServerOrder, *, is_known: bool) -> bool:
    """Tell whether there is a volume for a server without a folder. Refuse one that is not ours, or holds a server
    whose password is not known: `is_known` says so."""
    import docker

    with asked(f"The volume {order.volume} could not be looked at"):
        try:
            found = client.volumes.get(order.volume)
        except docker.errors.NotFound:
            return False
    if (found.attrs.get("Labels") or {}).get(LABEL) != order.name:
        raise StallmarkError(
            f"The volume {order.volume!r} is not Stallmark's, and stays as it is: choose another --name."
        )
    if not is_known:
        raise StallmarkError(
            f"The volume {order.volume!r} holds a server whose password is not known here: choose another --name, or "
            f"`docker volume rm {order.volume}` if its data may go."
        )
    return True


def _make_volume(client: Any, order: ServerOrder) -> None:
    with later(), asked(f"The volume {order.volume} could not be made"):  # see `_create`
        client.volumes.create(order.volume, labels={LABEL: order.name})


def _create(client: Any, options: Mapping[str, Any], credentials: CredentialFiles) -> Any:
    """Make the container. While the engine is still at work on the one of a killed start, wait for that, and remove
    it."""
    what, began = f"SQL Server {options['labels'][VERSION_LABEL]} could not be started", time.monotonic()
    while True:
        try:
            with later(), asked(what):  # what nobody waits for the engine makes all the same, and nobody removes it
                return client.containers.create(**options)
        except StallmarkError as error:
            if _NAME_IN_USE not in str(error) or time.monotonic() - began > container.ANSWER_WITHIN_S:
                raise
        _refuse_name_in_use(client, credentials)
        time.sleep(0.5)


def _start(made: Any, order: ServerOrder) -> None:
    try:
        with asked(f"SQL Server {order.version} could not be started"):
            made.start()
    except StallmarkError as error:
        if re.search("port is already allocated|address already in use", str(error)):
            raise StallmarkError(f"Port {order.port} of 127.0.0.1 is in use: choose another with --port.") from None
        raise


def _wait(running: Any, server: MssqlEngine, at_first: MssqlEngine, show: Show, ready_within_s: float) -> None:
    """Wait until a login succeeds. One with the first password replaces it; with data of before there is none such.

    Raises StallmarkError when the server ends, or takes too long.
    """
    began = time.monotonic()
    while True:
        with asked("The new server could not be watched"):
            running.reload()
            if running.status not in ("created", "running", "restarting"):
                raise StallmarkError(
                    f"SQL Server ended while it started: {why_ended(running, running.labels[VERSION_LABEL])}"
                )
        try:
            server.connect().close()
            return
        except StallmarkError as error:
            refusal = str(error)
        try:
            at_first.execute(f"ALTER LOGIN sa WITH PASSWORD = {sql.text(server.address.password or '')}")
            continue
        except CallFailed as error:
            refusal = f"Its first password could not be replaced ({error.message})."
        except StallmarkError:
            pass  # it is not up yet, or has the other password
        if time.monotonic() - began > ready_within_s:
            raise StallmarkError(f"SQL Server takes no login after {ready_within_s:.0f} s. {refusal}")
        show.advance(time.monotonic() - began, last_line(running))
        time.sleep(1)


def _remove_container(client: Any, name: str, label: str, value: str) -> None:
    """Remove the container if it exists and has this label."""
    if (found := _find(client, name)) is not None and found.labels.get(label) == value:
        with asked(f"The container {name} could not be removed"):
            found.remove(force=True)


def _remove_volume(client: Any, name: str) -> None:
    """Remove the volume if it exists and is ours."""
    import docker

    with asked(f"The volume {name} could not be removed"):
        try:
            volume = client.volumes.get(name)
        except docker.errors.NotFound:
            return
        if LABEL in (volume.attrs.get("Labels") or {}):
            volume.remove()


def _remove_files(folder: Path, patterns: Sequence[str]) -> None:
    """Remove what SQL Server made in a folder; what anybody else put there since stays."""
    try:
        for path in [found for pattern in patterns for found in folder.glob(pattern)]:
            shutil.rmtree(path) if path.is_dir() and not path.is_symlink() else path.unlink()
    except PermissionError:
        raise StallmarkError(
            f"The files in {folder} belong to SQL Server's user, and you may not remove them: "
            f"sudo rm -rf {' '.join(str(folder / pattern) for pattern in patterns)}, then the same command again."
        ) from None
