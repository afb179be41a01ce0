"""Compile the C parts that go into other processes, once for each source and compiler."""

from __future__ import annotations

import hashlib
import os
import shutil
import subprocess
import tempfile
from collections.abc import Sequence
from importlib import resources
from pathlib import Path

from stallmark.leftovers import temporary_name
from stallmark.record.files import replacing
from stallmark.redact import environment as environment_without_secrets
from stallmark.storage.emulator.models import EmulatedArrayError, NoCompiler

_COMPILERS = ("cc", "gcc", "clang")
_FLAGS = ("-std=gnu11", "-O2", "-Wall", "-Wextra", "-shared", "-fPIC", "-fvisibility=hidden")
_LIBRARIES = ("-ldl", "-lm")
MODEL = ("model.c", "spindles.c", "flash.c", "cache.c", "tier.c", "active_set.c")
_HEADERS = ("state.h", "model.h", "files.h", "clock.h", "hold.h")


def interposer(build_dir: Path) -> Path:
    """Return the compiled interposer in `build_dir`, built if missing; raise EmulatedArrayError where it cannot be."""
    return preloadable("emulated_array", {}, ("interposer.c", "files.c", *MODEL), build_dir)


def preloadable(name: str, sources: dict[str, bytes], ours: Sequence[str], build_dir: Path) -> Path:
    """Return a `library` for LD_PRELOAD; raise EmulatedArrayError if that cannot name it or it cannot be built."""
    build_dir = build_dir.resolve()
    if set(" :") & set(str(build_dir)):
        raise EmulatedArrayError(
            f"The build directory {build_dir} has a space or a colon in its path, which LD_PRELOAD cannot "
            "name; choose another one."
        )
    return library(name, sources, ours, build_dir)


def library(name: str, sources: dict[str, bytes], ours: Sequence[str], build_dir: Path) -> Path:
    """Return a shared library of C `sources` and of `ours` in this folder, which may include our headers."""
    here = resources.files(__package__)
    everything = {file: (here / file).read_bytes() for file in (*_HEADERS, *ours)} | sources
    using = compiler()
    parts = [part for file, text in sorted(everything.items()) for part in (file.encode(), text)]
    parts += [_version(using), " ".join(_FLAGS).encode()]
    key = hashlib.sha256(b"\0".join(parts)).hexdigest()[:16]
    built = build_dir / f"{name}-{key}.so"
    if not built.exists():
        _compile(using, everything, built)
    return built


def compiler() -> str:
    """Return the path of the C compiler; raise NoCompiler if it is missing."""
    for name in _COMPILERS:
        if path := shutil.which(name):
            return path
    raise NoCompiler(
        f"Emulated arrays and traces of I/O need a C compiler and none of {', '.join(_COMPILERS)} is on the PATH; "
        "install one (Debian and Ubuntu: apt install gcc libc6-dev)."
    )


def _version(compiler: str) -> bytes:
    return subprocess.run([compiler, "--version"], capture_output=True, check=False).stdout


def _compile(compiler: str, sources: dict[str, bytes], target: Path) -> None:
    target.parent.mkdir(parents=True, exist_ok=True)
    # A compiler that is interrupted leaves its files, and its parts may write a moment longer: the next command
    # removes a folder of this name.
    with tempfile.TemporaryDirectory(prefix=temporary_name("compile"), ignore_cleanup_errors=True) as scratch:
        for name, text in sources.items():
            (Path(scratch) / name).write_bytes(text)
        files = [name for name in sources if name.endswith(".c")]
        command = [compiler, *_FLAGS, "-o", target.name, *files, *_LIBRARIES]
        environment = environment_without_secrets() | {"TMPDIR": scratch}
        done = subprocess.run(command, cwd=scratch, env=environment, capture_output=True, check=False)
        if done.returncode != 0:
            raise NoCompiler(
                f"The library for an emulated array or a trace could not be compiled with {compiler} "
                f"({_first_error(done.stderr)}); install a working C compiler (Debian and Ubuntu: apt install gcc "
                "libc6-dev)."
            )
        # Another process may be building, or already running, the same library.
        with (Path(scratch) / target.name).open("rb") as built, replacing(target) as file:
            shutil.copyfileobj(built, file)
            os.fchmod(file.fileno(), 0o755)


def _first_error(output: bytes) -> str:
    lines = output.decode(errors="replace").splitlines() or ["it said nothing"]
    return next((line for line in lines if "error" in line), lines[0]).strip()
