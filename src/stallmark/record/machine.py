"""Facts about the machine that the driver runs on, for the manifest."""

import os
import platform
import sys
from pathlib import Path

import psutil


def facts() -> dict[str, str | int]:
    """Return the facts that decide what a run can reach; none names a person."""
    return {
        "system": f"{platform.system()} {platform.release()}",
        "distribution": _distribution(),
        "cpu": _cpu(),
        "cores": os.cpu_count() or 0,
        "memory_bytes": psutil.virtual_memory().total,
        "python": sys.version.split()[0],
    }


def _distribution() -> str:
    try:
        return platform.freedesktop_os_release()["PRETTY_NAME"]
    except (OSError, KeyError):
        return platform.platform()


def _cpu() -> str:
    info = Path("/proc/cpuinfo")
    names = [line for line in info.read_text().splitlines() if line.startswith("model name")] if info.exists() else []
    return names[0].split(":", 1)[1].strip() if names else platform.processor() or platform.machine()
