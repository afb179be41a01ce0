"""The requirements of an emulated array as a block device, and what remains possible without them."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

from stallmark.storage.array_facts import BlockDeviceError
from stallmark.storage.emulator import NoCompiler, build

_PROGRAMS = {
    "nbdkit": "nbdkit",
    "nbdfuse": "libnbd-bin, on Fedora nbdfuse",
    "losetup": "mount, on Fedora util-linux-core",
    "umount": "mount, on Fedora util-linux-core",
}
_HEADER = "#include <nbdkit-plugin.h>"


def missing() -> str | None:
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


def check() -> None:
    """Raise BlockDeviceError if a requirement is missing, in one sentence that says what remains possible."""
    if why := missing():
        raise BlockDeviceError(f"An emulated array as a block device: {why}; {_remains()}")


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
        return build.compiler()
    except NoCompiler:
        return None
