"""Facts about the machine that the driver runs on, for the manifest."""

import os
import platform
import socket
import sys
from pathlib import Path

import psutil

from stallmark.record.manifest.course import Machine


def facts() -> Machine:
    """Return the facts that decide what a run can reach; none names a person."""
    return Machine(
        system=f"{platform.system()} {platform.release()}",
        distribution=_distribution(),
        cpu=_cpu(),
        cores=os.cpu_count() or 0,
        memory_bytes=psutil.virtual_memory().total,
        python=sys.version.split()[0],
    )


def has_address(host: str) -> bool | None:
    """Return whether a host's name or address is one of this machine; None where the name cannot be resolved."""
    if not host or host.startswith("/"):  # a socket in the file system
        return True
    try:
        found = {str(address[0]) for *_, address in socket.getaddrinfo(host, None)}
    except OSError:
        return None
    own = {one.address.partition("%")[0] for some in psutil.net_if_addrs().values() for one in some}
    return any(address.startswith("127.") or address.partition("%")[0] in own for address in found)


def _distribution() -> str:
    try:
        return platform.freedesktop_os_release()["PRETTY_NAME"]
    except (OSError, KeyError):
        return platform.platform()


def _cpu() -> str:
    info = Path("/proc/cpuinfo")
    names = [line for line in info.read_text().splitlines() if line.startswith("model name")] if info.exists() else []
    return names[0].split(":", 1)[1].strip() if names else platform.processor() or platform.machine()
