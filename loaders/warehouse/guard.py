"""Run a generator into a temporary folder, hold it up while that is full, and remove all of it when our input ends.

The parent closes that input when the files are read, and the kernel does so when the parent is killed: a load that
fails or is stopped leaves nothing behind. This is a separate program that imports none of our modules. The first line
of standard input is JSON: `commands` of the generator, run one after the other, each with the folder as `--output-dir`;
and `most_bytes`. If complete tables (`*/*.parquet`) exceed that size, the generator is paused until some have been
removed (not on Windows). The folder's name contains our process number, so that the leftover of a kill is recognised.

We answer with two lines of JSON: `folder`; and when all have ended, or one has failed, its `code` and `stderr`.
`generator.Begun` and `generator.Ended` are their counterparts.
"""

import ctypes
import json
import os
import signal
import subprocess
import sys
import tempfile
import threading
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

LOOK_EVERY_S = 0.05


def main() -> None:
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C ends the load, and that ends our input
    order, over = json.loads(sys.stdin.readline()), threading.Event()
    threading.Thread(target=_wait_for_the_end, args=[over], daemon=True).start()
    with tempfile.TemporaryDirectory(prefix=f"stallmark-warehouse-{os.getpid()}-", ignore_cleanup_errors=True) as name:
        _send({"folder": name})
        _send(_run_commands(order, Path(name), over))
        over.wait()


def _run_commands(order: dict[str, Any], folder: Path, over: threading.Event) -> dict[str, Any]:
    """Run the commands; return the exit code and errors of the last."""
    stderr, code = folder / "stderr", 0
    try:
        for command in order["commands"]:
            code = _run([*command, f"--output-dir={folder}"], folder, order["most_bytes"], over)
            if code:
                break
        return {"code": code, "stderr": stderr.read_text(errors="replace")}
    except OSError as error:
        return {"code": 1, "stderr": str(error)}


def _run(command: Sequence[str], folder: Path, most_bytes: int, over: threading.Event) -> int:
    with (folder / "stderr").open("wb") as stderr:
        generator = subprocess.Popen(
            command, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=stderr, **_ends_with_us()
        )
    is_held = False
    while generator.poll() is None and not over.is_set():
        if os.name == "posix" and is_held != (is_held := _bytes_in(folder) >= most_bytes):
            generator.send_signal(signal.SIGSTOP if is_held else signal.SIGCONT)
        over.wait(LOOK_EVERY_S)
    if over.is_set():
        generator.kill()
    return generator.wait()


def _bytes_in(folder: Path) -> int:
    total = 0
    for file in folder.glob("*/*.parquet"):
        with suppress(FileNotFoundError):  # it was read meanwhile
            total += file.stat().st_size
    return total


def _ends_with_us() -> dict[str, Any]:
    """Return options for a process that does not outlive a killed guard.

    Linux kills it. macOS ends a paused one, as a stopped group without a parent; a running one ends when it is done.
    """
    if os.name != "posix":
        return {}
    if sys.platform != "linux":
        return {"process_group": 0}
    prctl, of_parents_death = ctypes.CDLL(None).prctl, 1
    return {"process_group": 0, "preexec_fn": lambda: prctl(of_parents_death, signal.SIGKILL)}


def _wait_for_the_end(over: threading.Event) -> None:
    sys.stdin.read()
    over.set()


def _send(answer: dict[str, Any]) -> None:
    with suppress(BrokenPipeError):  # nobody is left to read it
        print(json.dumps(answer), flush=True)


if __name__ == "__main__":
    main()
