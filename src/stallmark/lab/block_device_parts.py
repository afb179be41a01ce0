"""The parts of an emulated array as a block device: what they need, and how each is started and ended."""

from __future__ import annotations

import errno
import json
import mmap
import os
import random
import re
import shutil
import subprocess
import sys
import time
from collections.abc import Sequence
from importlib import resources
from pathlib import Path
from statistics import median

import psutil

from stallmark.storage.block_devices import (
    ArrayFacts,
    BlockDeviceError,
    ReadTimes,
    device_of_number,
    read_counters,
    read_facts,
    runtime_folder,
)
from stallmark.storage.emulator import ArrayModel, NoCompiler, arrays, layout
from stallmark.storage.emulator.arrays import empty_flash, engage

# The time of an I/O on its way to the array and back: the array waits that much less.
#
# On the way, block layer, loop device, FUSE, nbdfuse, socket and nbdkit wake one another up. That takes a good part of
# the time of a flash read, and depends on the machine, so it is measured there.

_BLOCK = 8192
_READS = 200
_SERVICE_MS = 1.0
"""Service time while measuring. Above zero, so that sleeping parts of the way must be woken up, as with a real model.
"""
_STILL = ArrayModel(layout.MAX_SPINDLES, read_ms=_SERVICE_MS, write_ms=_SERVICE_MS, sync_ms=0, mb_per_s=100_000)


def read_times(block_device: str) -> ReadTimes:
    """Return the kernel's counts of a block device."""
    counted = read_counters(device_of_number(os.stat(block_device).st_rdev))
    return ReadTimes(counted.reads, counted.read_ms)


def measure_path(device: layout.EmulatedDevice, block_device: str, size: int) -> None:
    """Read at random, one by one, store the median time beyond the service time in `device`, and reset the device's
    counters.
    """
    device.path_ns = 0
    engage(device, _STILL)
    took = _times(block_device, size)
    device.path_ns = max(0, round(median(took) - _SERVICE_MS * 1e6))
    for operation in ("reads", "writes", "syncs"):
        setattr(device, operation, layout.Tally())
    device.busy_ns = device.late = device.spindle_reads = device.spindle_writes = 0
    empty_flash(device)


def _times(block_device: str, size: int) -> list[int]:
    """Return the nanoseconds of each read."""
    block, chance, took = mmap.mmap(-1, _BLOCK), random.Random(1), []
    file = os.open(block_device, os.O_RDONLY | os.O_DIRECT)
    try:
        for _ in range(_READS):
            offset = chance.randrange(size // _BLOCK) * _BLOCK
            begin = time.monotonic_ns()
            os.preadv(file, [block], offset)
            took.append(time.monotonic_ns() - begin)
    finally:
        os.close(file)
    return took


# The files of an emulated array that is a block device: enough to remove it after any crash.

_NAME = re.compile(r"[a-z0-9][a-z0-9-]{0,29}")


class Places:
    """The files of an emulated array: those kept in its folder, and those of a running one, in memory.

    The path in memory is short, because a socket's must be, and unique: processes with it on their command line belong
    to this array.
    """

    def __init__(self, home: Path, name: str):
        if not _NAME.fullmatch(name):
            raise BlockDeviceError(
                f"{name!r} is not a name of an array: take small letters, digits and hyphens, 30 characters at most."
            )
        self.folder = (home / name).resolve()
        self.runtime = runtime_folder(self.folder)
        self.facts = self.folder / "array.json"
        self.disk = self.folder / "disk"
        self.lock = self.folder / "lock"
        self.mount = self.folder / "mount"
        self.file = self.mount / "array"
        self.state = self.runtime / "state"
        self.socket = self.runtime / "socket"
        self.log = self.runtime / "log"
        self.published = self.runtime / "facts"

    def read(self) -> ArrayFacts | None:
        """Return the facts, or None without such an array. Raise BlockDeviceError for facts that cannot be read."""
        return read_facts(self.facts)

    def write(self, facts: ArrayFacts) -> None:
        """Write the facts into the array's folder; of a running one also where everybody may read them, root or not.

        Raise BlockDeviceError if that fails; the facts written before are then still there.
        """
        targets = [target for target in (self.facts, self.published) if target.parent.is_dir()]
        drafts = [target.with_suffix(".new") for target in targets]
        for draft in drafts:
            try:
                draft.write_text(facts.model_dump_json(indent=2) + "\n")
                draft.chmod(0o644)
            except OSError as error:
                raise BlockDeviceError(
                    f"{draft} cannot be written ({error.strerror}), and nothing has changed: make room, and do the "
                    "same again."
                ) from None
        for draft, target in zip(drafts, targets, strict=True):
            os.replace(draft, target)


# The requirements of an emulated array as a block device, and what remains possible without them.

_PROGRAMS = {
    "nbdkit": "nbdkit",
    "nbdfuse": "libnbd-bin, on Fedora nbdfuse",
    "losetup": "mount, on Fedora util-linux-core",
    "umount": "mount, on Fedora util-linux-core",
}
_HEADER = "#include <nbdkit-plugin.h>"


def missing_needs() -> str | None:
    """Return the first requirement of an array as a block device that this machine lacks, or None."""
    if not sys.platform.startswith("linux"):
        return f"it needs Linux, and this is {sys.platform}"
    if os.geteuid() != 0:
        return "it needs root (sudo)"
    if not Path("/dev/fuse").exists():
        return "it needs FUSE, and there is no /dev/fuse (modprobe fuse; in a container: --device /dev/fuse)"
    if not Path("/dev/loop-control").exists() and not Path("/dev/loop0").exists():
        return "it needs a loop device, and there is none in /dev (modprobe loop; in a container: --privileged)"
    for program, package in _PROGRAMS.items():
        if shutil.which(program) is None:
            return f"it needs {program}, which is not installed (Debian and Ubuntu: apt install {package})"
    if (compiler := _compiler()) is None:
        return "it needs a C compiler, and none is on the PATH (Debian and Ubuntu: apt install gcc libc6-dev)"
    seen = subprocess.run([compiler, "-E", "-x", "c", "-"], input=_HEADER.encode(), capture_output=True)
    if seen.returncode != 0:
        return (
            "it needs nbdkit's plugin header, which is not installed (Debian and Ubuntu: apt install nbdkit-plugin-dev)"
        )
    return None


def check_needs() -> None:
    """Raise BlockDeviceError if a requirement is missing, with a sentence on what is still possible."""
    if reason := missing_needs():
        raise BlockDeviceError(f"An emulated array as a block device: {reason}; {_remains()}")


def _remains() -> str:
    where = "the emulated arrays of the embedded PostgreSQL (`emulated_array:` in a scenario)"
    if not sys.platform.startswith("linux"):
        return f"{where} need Linux, too."
    if _compiler() is None:
        return f"{where} need a C compiler, and none is on the PATH."
    return (
        "without it, the embedded PostgreSQL still runs on the same array by way of its interposer "
        "(`emulated_array:` in a scenario), which needs a C compiler only."
    )


def _compiler() -> str | None:
    try:
        return arrays.compiler()
    except NoCompiler:
        return None


# The parts of a running array: nbdkit, nbdfuse and the loop device; each is found, started and ended here.

_CONNECTIONS = 64
_THREADS = 4
"""Threads of nbdkit per connection: nbdfuse spreads requests over connections at random, and none may wait for another.
"""
_FUSE_REQUESTS = 256
"""Requests that may be outstanding; the kernel's default is 12."""
_TIMEOUT_S = 15.0


def plugin(folder: Path) -> Path:
    """Return our plugin for nbdkit, compiled against the header of the nbdkit installed here."""
    source = (resources.files(__package__) / "block_device_plugin.c").read_bytes()
    return arrays.library("stallmark-array", {"plugin.c": source}, arrays.MODEL, folder)


def _build_thread_preload(folder: Path) -> Path:
    source = (resources.files(__package__) / "block_device_threads.c").read_bytes()
    return arrays.library("stallmark-threads", {"threads.c": source}, (), folder)


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
            env=_environment() | {"LD_PRELOAD": str(_build_thread_preload(places.folder.parent))},
        )
    deadline = time.monotonic() + _TIMEOUT_S
    while not places.file.exists():
        if process.poll() is not None or time.monotonic() > deadline:
            text = _last_line(places.log.read_text(errors="replace"))
            raise BlockDeviceError(f"nbdfuse did not start ({text}).")
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
    """Attach a new block device to the mounted file and return its path; raise BlockDeviceError if none is free."""
    command = ["losetup", "--find", "--show", "--direct-io=on", str(places.file)]
    done = subprocess.run(command, capture_output=True, text=True)
    if done.returncode != 0:
        raise BlockDeviceError(f"No loop device could be had ({_last_line(done.stderr)}).")
    return done.stdout.strip()


# ---- What exists, recorded or not --------------------------------------------------------------------------


def processes(places: Places, *names: str) -> list[psutil.Process]:
    """Return the array's processes with these names. Their command lines name the array's memory folder."""
    mounts = []
    for process in psutil.process_iter(["name", "cmdline"]):
        line = process.info["cmdline"] or []
        if process.info["name"] in names and any(f"{places.runtime}/" in part for part in line):
            mounts.append(process)
    return mounts


def loops(places: Places) -> list[str]:
    """Return the block devices on this array's file, even when that is gone."""
    done = subprocess.run(["losetup", "--json", "--list", "-O", "NAME,BACK-FILE"], capture_output=True, text=True)
    listed = json.loads(done.stdout)["loopdevices"] if done.stdout.strip() else []
    return [device["name"] for device in listed if (device["back-file"] or "").startswith(f"{places.file}")]


def is_mounted(places: Places) -> bool:
    return any(mount == str(places.mount) for _, mount in _mounts())


def users_of(loop: str) -> list[str]:
    """Return the users of a block device: mounts of the device or its partitions, kernel holders, processes that have
    it open.
    """
    name = Path(loop).name
    mounts = [mount for device, mount in _mounts() if device == loop or device.startswith(f"{loop}p")]
    holders = Path("/sys/block") / name / "holders"
    users = mounts + ([holder.name for holder in holders.iterdir()] if holders.exists() else [])
    users += [f"process {pid}" for pid in _having_open(loop)]
    return users or (["a mount that is not seen from here, perhaps a container's"] if _is_taken(loop) else [])


def _having_open(device: str) -> list[int]:
    pids = set()
    for link in Path("/proc").glob("[0-9]*/fd/*"):
        try:
            if os.readlink(link) == device:
                pids.add(int(link.parts[2]))
        except OSError:  # it has just ended, or closed it
            pass
    return sorted(pids)


def _is_taken(device: str) -> bool:
    """Return True if the device is held exclusively, for example by a file system of any mount namespace."""
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
    """Detach the block device; raise BlockDeviceError while someone has it open."""
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


def end(processes: Sequence[psutil.Process]) -> None:
    for signal in ("terminate", "kill"):
        for process in processes:
            try:
                getattr(process, signal)()
            except psutil.NoSuchProcess:
                pass
        _, processes = psutil.wait_procs(processes, timeout=_TIMEOUT_S / 3)


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
