"""Compiles the interposer, once for each source and compiler."""

from __future__ import annotations

import hashlib
import os
import shutil
import subprocess
import tempfile
from importlib import resources
from pathlib import Path

from stallmark.driver.engines.slow_device.errors import NoCompiler, SlowDeviceError

_COMPILERS = ("cc", "gcc", "clang")
_FLAGS = ("-std=gnu11", "-O2", "-Wall", "-Wextra", "-shared", "-fPIC", "-fvisibility=hidden")


def interposer(build_dir: Path) -> Path:
    """The compiled interposer in `build_dir`, built if it is not there yet."""
    build_dir = build_dir.resolve()
    if set(" :") & set(str(build_dir)):
        raise SlowDeviceError(
            f"The build directory {build_dir} has a space or a colon in its path, which LD_PRELOAD cannot "
            "name; choose another one."
        )
    source = (resources.files(__package__) / "slow_device.c").read_bytes()
    compiler = _compiler()
    key = hashlib.sha256(b"\0".join([source, _version(compiler), " ".join(_FLAGS).encode()])).hexdigest()[:16]
    library = build_dir / f"slow_device-{key}.so"
    if not library.exists():
        _compile(compiler, source, library)
    return library


def _compiler() -> str:
    for name in _COMPILERS:
        if path := shutil.which(name):
            return path
    raise NoCompiler(
        f"A slow device needs a C compiler and none of {', '.join(_COMPILERS)} is on the PATH; "
        "install one (Debian and Ubuntu: apt install gcc libc6-dev)."
    )


def _version(compiler: str) -> bytes:
    return subprocess.run([compiler, "--version"], capture_output=True, check=False).stdout


def _compile(compiler: str, source: bytes, library: Path) -> None:
    library.parent.mkdir(parents=True, exist_ok=True)
    # Built aside and renamed: another process may be building, or already running, the same library.
    with tempfile.TemporaryDirectory(dir=library.parent) as scratch:
        built = Path(scratch) / library.name
        command = [compiler, *_FLAGS, "-x", "c", "-", "-o", str(built), "-ldl"]
        done = subprocess.run(command, input=source, capture_output=True, check=False)
        if done.returncode != 0:
            raise NoCompiler(
                f"The slow device could not be compiled with {compiler} ({_first_error(done.stderr)}); "
                "install a working C compiler (Debian and Ubuntu: apt install gcc libc6-dev)."
            )
        built.chmod(0o755)
        os.replace(built, library)


def _first_error(output: bytes) -> str:
    lines = output.decode(errors="replace").splitlines() or ["it said nothing"]
    return next((line for line in lines if "error" in line), lines[0]).strip()
