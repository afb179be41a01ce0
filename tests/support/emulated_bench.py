"""Two emulated arrays with a file on each, and a way to run code on them."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

from stallmark.storage.emulator import ArrayModel
from stallmark.storage.emulator.arrays import EmulatedArrays
from stallmark.storage.emulator.layout import ArrayCounters

BLOCK = 8192
MIB = 1 << 20
FAST = ArrayModel(spindles=1, read_ms=0, write_ms=0, sync_ms=0, mb_per_s=100_000)
SLOW = ArrayModel(spindles=1, read_ms=20, write_ms=30, sync_ms=40, mb_per_s=100_000)

# Run in a process on the emulated arrays: `block` is aligned as O_DIRECT demands.
PRELUDE = f"""
import mmap, os, sys
block = mmap.mmap(-1, {BLOCK})
DIRECT, BUFFERED, DSYNC = os.O_RDWR | os.O_DIRECT, os.O_RDWR, os.O_RDWR | os.O_DSYNC
"""


@dataclass(frozen=True)
class Bench:
    """Two devices, a file of 4 MiB on each, and a way to run Python code on them."""

    devices: EmulatedArrays
    data: Path
    wal: Path
    state_file: Path

    def start(self, code: str) -> subprocess.Popen[str]:
        return subprocess.Popen(
            [sys.executable, "-c", PRELUDE + code, str(self.data), str(self.wal)],
            env=os.environ | self.devices.environment(),
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )

    def run(self, code: str) -> str:
        process = self.start(code)
        output, errors = process.communicate(timeout=60)
        assert process.returncode == 0, errors
        return output

    def used(self, code: str, device: str = "data") -> ArrayCounters:
        """Return what `code` alone did to a device."""
        before = self.devices.counters()[device]
        self.run(code)
        after = self.devices.counters()[device]
        assert before.flash is None and after.flash is None
        return ArrayCounters(
            **{name: value - getattr(before, name) for name, value in vars(after).items() if name != "flash"}
        )


@pytest.fixture(scope="session")
def build_dir(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("build")


@pytest.fixture
def bench(tmp_path: Path, build_dir: Path) -> Iterator[Bench]:
    cluster, elsewhere = tmp_path / "cluster", tmp_path / "wal elsewhere"
    (cluster / "base").mkdir(parents=True)
    elsewhere.mkdir()
    (cluster / "pg_wal").symlink_to(elsewhere)
    files = cluster / "base" / "1", cluster / "pg_wal" / "1"
    for file in files:
        file.write_bytes(bytes(4 * MIB))
    try:
        os.close(os.open(files[0], os.O_RDONLY | os.O_DIRECT))
    except OSError:
        pytest.skip("the file system of the temporary directory has no direct I/O")
    directories = {"data": cluster, "wal": cluster / "pg_wal"}
    state_file = tmp_path / "state"
    with EmulatedArrays.create(
        state_file, directories, dict.fromkeys(directories, FAST), build_dir=build_dir
    ) as devices:
        yield Bench(devices, *files, state_file)
