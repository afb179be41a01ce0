"""Run a program, and end it as soon as our input ends, which the kernel sees to however Stallmark died.

Run as `python -m stallmark.storage.raw_load.guard`. The first line of standard input is JSON: `argv` and
`environment`, which is the program's alone. Its output is ours.
A parent-death signal would not do: it follows threads, and Linux alone has it.
"""

import json
import os
import signal
import subprocess
import sys
import threading
import time

GRACE_S = 5.0
"""Seconds that the program has to end by itself once it is told to, and to report the last I/Os."""


def main() -> int:
    for ignored in (signal.SIGINT, signal.SIGHUP):  # Stallmark's business: it closes our input
        signal.signal(ignored, signal.SIG_IGN)
    order = json.loads(_line())
    program = subprocess.Popen(order["argv"], env=os.environ | order["environment"], stdin=subprocess.DEVNULL)
    threading.Thread(target=_stop_when_input_ends, args=[program], daemon=True).start()
    code = program.wait()
    return code if code >= 0 else 128 - code  # of a signal, as shells hand it on


def _line() -> bytes:
    """Return the first line. Read past Python's buffers, whose locks a thread would hold while this process ends."""
    line = b""
    while not line.endswith(b"\n") and (more := os.read(0, 65536)):
        line += more
    return line


def _stop_when_input_ends(program: subprocess.Popen) -> None:
    while os.read(0, 4096):
        pass
    program.terminate()
    time.sleep(GRACE_S)
    program.kill()


if __name__ == "__main__":
    sys.exit(main())
