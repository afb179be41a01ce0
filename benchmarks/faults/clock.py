"""Clocks that can be set wrong, or go faster, for some processes (clock.c)."""

import shutil
import struct
import subprocess
import time
from collections.abc import Mapping
from pathlib import Path

SOURCE = Path(__file__).with_name("clock.c")


class Clock:
    """The clocks of the processes that have `environment`. They go `speed` times as fast, and waits are as much
    shorter; `set` moves the wall clock while they run."""

    def __init__(self, folder: Path, speed: int = 1):
        compiler = next(filter(None, map(shutil.which, ("cc", "gcc", "clang"))))
        library, self._file = folder / "clock.so", folder / "clock"
        subprocess.run([compiler, "-O1", "-shared", "-fPIC", "-o", library, SOURCE, "-ldl"], check=True)
        self._file.write_bytes(struct.pack("=4q", 0, speed, time.time_ns(), time.monotonic_ns()))
        folder.chmod(0o755)
        self.environment: Mapping[str, str] = {
            "LD_PRELOAD": str(library), "FAULTS_CLOCK": str(self._file)
        }  # fmt: skip

    @staticmethod
    def missing() -> str | None:
        """Return why there can be none."""
        return None if any(map(shutil.which, ("cc", "gcc", "clang"))) else "there is no C compiler"

    def set(self, offset_s: float) -> None:
        with self._file.open("r+b") as file:
            file.write(struct.pack("=q", int(offset_s * 1e9)))
