"""Clocks that can be set wrong, or go faster, for some processes (clock.c)."""

import shutil
import struct
import subprocess
import time
from collections.abc import Mapping
from pathlib import Path

SOURCE = Path(__file__).with_name("clock.c")


class Clock:
    """The clocks of the processes that have `environment`. They are right until they are moved or go faster."""

    def __init__(self, folder: Path):
        compiler = next(filter(None, map(shutil.which, ("cc", "gcc", "clang"))))
        library, self._file = folder / "clock.so", folder / "clock"
        subprocess.run([compiler, "-O1", "-shared", "-fPIC", "-o", library, SOURCE, "-ldl"], check=True)
        self._file.write_bytes(struct.pack("=4q", 0, 1, time.time_ns(), time.monotonic_ns()))
        folder.chmod(0o755)
        self.environment: Mapping[str, str] = {
            "LD_PRELOAD": str(library), "FAULTS_CLOCK": str(self._file)
        }  # fmt: skip

    @staticmethod
    def missing() -> str | None:
        """Return why there can be none."""
        return None if any(map(shutil.which, ("cc", "gcc", "clang"))) else "there is no C compiler"

    def set(self, offset_s: float) -> None:
        """Have the wall clock be wrong by so many seconds."""
        with self._file.open("r+b") as file:
            file.write(struct.pack("=q", int(offset_s * 1e9)))

    def hasten(self, speed: int) -> None:
        """Have all clocks go `speed` times as fast from now on, and waits that begin from now on be as much shorter."""
        from_now, faster = struct.pack("=2q", time.time_ns(), time.monotonic_ns()), struct.pack("=q", speed)
        with self._file.open("r+b", buffering=0) as file:
            for place, value in ((16, from_now), (8, faster)):  # the speed last: it counts from these times
                file.seek(place)
                file.write(value)
