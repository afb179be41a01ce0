"""The parts of a running array: nbdkit, nbdfuse and the loop device; each is found, started and ended here."""

from __future__ import annotations

import errno
import json
import os
import subprocess
import time
from collections.abc import Sequence
from importlib import resources
from pathlib import Path

import psutil

from stallmark.lab.block_device.places import Places
from stallmark.storage.array_facts import BlockDeviceError
from stallmark.storage.emulator import build

_CONNECTIONS = 64
_THREADS = 4
"""Threads of nbdkit per connection: nbdfuse spreads requests over connections at random, and none may wait for another.
"""
_FUSE_REQUESTS = 256
"""Requests that may be outstanding; the kernel's default is 12."""
_TIMEOUT_S = 15.0


def plugin(folder: Path) -> Path:
    """Return our plugin for nbdkit, compiled against the header of the nbdkit installed here."""
    source = (resources.files(__package__) / "plugin.c").read_bytes()
    return build.library("stallmark-array", {"plugin.c": source}, build.MODEL, folder)


def _more_threads(folder: Path) -> Path:
    source = (resources.files(__package__) / "threads.c").read_bytes()
    return build.library("stallmark-threads", {"threads.c": source}, (), folder)


def start_nbdkit(places: Places) -> None:
    command = ["nbdkit", "--unix", str(places.socket), "--threads", str(_THREADS), str(plugin(places.folder.parent))]
    done = subprocess.run(
        [*command, f"file={places.disk}", f"state={places.state}"],
        capture_output=True,
        text=True,
        start_new_session=True,
        env=_environment(),
    )
    if done.returncode != 0:
        raise BlockDeviceError(f"nbdkit did not start ({_last_line(done.stderr)}).")


def start_nbdfuse(places: Places) -> None:
    places.mount.mkdir(exist_ok=True)
    uri = f"nbd+unix:///?socket={places.socket}"
    with places.log.open("wb") as log:
        process = subprocess.Popen(
            ["nbdfuse", "-C", str(_CONNECTIONS), str(places.file), uri],
            stdin=subprocess.DEVNULL,
            stdout=log,
            stderr=log,
            start_new_session=True,
            env=_environment() | {"LD_PRELOAD": str(_more_threads(places.folder.parent))},
        )
    deadline = time.monotonic() + _TIMEOUT_S
    while not places.file.exists():
        if process.poll() is not None or time.monotonic() > deadline:
            said = _last_line(places.log.read_text(errors="replace"))
            raise BlockDeviceError(f"nbdfuse did not start ({said}).")
        time.sleep(0.02)
    _let_requests_through(places.mount)


def _environment() -> dict[str, str]:
    """Return a minimal environment: these processes outlive Stallmark, and must not keep its passwords."""
    return {"PATH": os.environ.get("PATH", os.defpath)}


def _let_requests_through(mount: Path) -> None:
    control = Path("/sys/fs/fuse/connections")
    connection = control / str(os.minor(mount.stat().st_dev))
    if not connection.exists():
        subprocess.run(["mount", "-t", "fusectl", "none", str(control)], capture_output=True)
    for limit in ("max_background", "congestion_threshold"):
        try:
            (connection / limit).write_text(str(_FUSE_REQUESTS))
        except OSError as error:
            raise BlockDeviceError(
                f"{connection / limit} cannot be set ({error.strerror}), and the array would never see more than 12 "
                "I/Os at once; in a container: --privileged."
            ) from None


def attach_loop(places: Places) -> str:
    """Attach a new block device to the mounted file and return its path; raise BlockDeviceError where there is none."""
    command = ["losetup", "--find", "--show", "--direct-io=on", str(places.file)]
    done = subprocess.run(command, capture_output=True, text=True)
    if done.returncode != 0:
        raise BlockDeviceError(f"No loop device could be had ({_last_line(done.stderr)}).")
    return done.stdout.strip()


# ---- What exists, recorded or not --------------------------------------------------------------------------


def processes(places: Places, *names: str) -> list[psutil.Process]:
    """Return the array's processes of these names: they have its folder in memory on their command line."""
    found = []
    for process in psutil.process_iter(["name", "cmdline"]):
        line = process.info["cmdline"] or []
        if process.info["name"] in names and any(f"{places.runtime}/" in part for part in line):
            found.append(process)
    return found


def loops(places: Places) -> list[str]:
    """Return the block devices on this array's file, even when that is gone."""
    done = subprocess.run(["losetup", "--json", "--list", "-O", "NAME,BACK-FILE"], capture_output=True, text=True)
    listed = json.loads(done.stdout)["loopdevices"] if done.stdout.strip() else []
    return [each["name"] for each in listed if (each["back-file"] or "").startswith(f"{places.file}")]


def is_mounted(places: Places) -> bool:
    return any(mount == str(places.mount) for _, mount in _mounts())


def users_of(loop: str) -> list[str]:
    """Return the users of a block device: mounts of it or its partitions, kernel holders, processes with it open."""
    name = Path(loop).name
    mounts = [mount for device, mount in _mounts() if device == loop or device.startswith(f"{loop}p")]
    holders = Path("/sys/block") / name / "holders"
    found = mounts + ([each.name for each in holders.iterdir()] if holders.exists() else [])
    found += [f"process {pid}" for pid in _having_open(loop)]
    return found or (["a mount that is not seen from here, perhaps a container's"] if _is_taken(loop) else [])


def _having_open(device: str) -> list[int]:
    found = set()
    for link in Path("/proc").glob("[0-9]*/fd/*"):
        try:
            if os.readlink(link) == device:
                found.add(int(link.parts[2]))
        except OSError:  # it has just ended, or closed it
            pass
    return sorted(found)


def _is_taken(device: str) -> bool:
    """Tell whether a file system of any namespace, or the like, holds the device exclusively."""
    try:
        os.close(os.open(device, os.O_RDONLY | os.O_EXCL))
    except OSError as error:
        return error.errno == errno.EBUSY
    return False


def _mounts() -> list[tuple[str, str]]:
    lines = Path("/proc/self/mounts").read_text().splitlines()
    return [(parts[0], parts[1].replace("\\040", " ")) for line in lines if (parts := line.split(" "))]


# ---- The end -----------------------------------------------------------------------------------------------


def detach(loop: str, places: Places) -> None:
    """Detach the block device; raise BlockDeviceError while somebody has it open."""
    _run(["losetup", "--detach", loop])
    if not _wait(lambda: loop not in loops(places)):
        raise BlockDeviceError(
            f"{loop} is in use: end what has it open (`fuser -v {loop}` names it), and do the same again."
        )


def unmount(places: Places) -> None:
    """Unmount the array's file, even if the process that served it was killed."""
    if is_mounted(places):
        _run(["umount", str(places.mount)])
        if is_mounted(places):
            _run(["umount", "--lazy", str(places.mount)])


def end(found: Sequence[psutil.Process]) -> None:
    for signal in ("terminate", "kill"):
        for process in found:
            try:
                getattr(process, signal)()
            except psutil.NoSuchProcess:
                pass
        _, found = psutil.wait_procs(found, timeout=_TIMEOUT_S / 3)


def _run(command: list[str]) -> None:
    try:
        subprocess.run(command, capture_output=True, timeout=_TIMEOUT_S)
    except subprocess.TimeoutExpired:
        raise BlockDeviceError(
            f"`{' '.join(command)}` did not come back in {_TIMEOUT_S:.0f} s: end what uses the array, and try again."
        ) from None


def _wait(condition) -> bool:
    deadline = time.monotonic() + _TIMEOUT_S / 3
    while not condition():
        if time.monotonic() > deadline:
            return False
        time.sleep(0.05)
    return True


def _last_line(text: str) -> str:
    return (text.strip().splitlines() or ["it said nothing"])[-1].rstrip(".")
