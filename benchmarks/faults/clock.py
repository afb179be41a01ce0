"""A wall clock that can be set wrong for some processes (clock.c)."""

import shutil
import struct
import subprocess
from collections.abc import Mapping
from pathlib import Path

SOURCE = Path(__file__).with_name("clock.c")


class Clock:
    """The clock of the processes that have `environment`; `set` moves it, while they run."""

    def __init__(self, folder: Path):
        compiler = next(filter(None, map(shutil.which, ("cc", "gcc", "clang"))))
        library, self._file = folder / "clock.so", folder / "clock-offset"
        subprocess.run([compiler, "-O1", "-shared", "-fPIC", "-o", library, SOURCE, "-ldl"], check=True)
        self._file.write_bytes(bytes(8))
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
