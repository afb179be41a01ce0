"""Watch over the embedded server, so that it never outlives the tool that started it.

Run as `python -m stallmark.engines.postgres.embedded.guard`. The first line of standard input is JSON: `argv`,
`environment` (added to ours) and `log`. The server runs until that input ends, which the kernel sees to however the
tool died.
A parent-death signal would not do: it is lost when the server changes its user, and it follows threads.
"""

import json
import os
import selectors
import signal
import subprocess
import sys
import time

FAST, IMMEDIATE = signal.SIGINT, signal.SIGQUIT
FAST_SHUTDOWN_S = 30  # PostgreSQL 18 can miss a fast shutdown while it recovers


def main() -> int:
    # The tool stops us by closing the pipe; Ctrl-C and friends are its business, not ours.
    for ignored in (signal.SIGINT, signal.SIGHUP):
        signal.signal(ignored, signal.SIG_IGN)
    if not (line := sys.stdin.buffer.readline()):
        return 0  # the tool has gone before it could say what to start
    order = json.loads(line)
    # Noted, and no exception: one that came while the server is started would leave it to itself.
    told_to_end: list[int] = []
    signal.signal(signal.SIGTERM, lambda number, _: told_to_end.append(number))
    with open(order["log"], "ab") as log:
        server = subprocess.Popen(
            order["argv"],
            env=os.environ | order["environment"],
            stdin=subprocess.DEVNULL,
            stdout=log,
            stderr=log,
            preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL),
        )
    _until_input_ends_or_exit(server, told_to_end)
    _stop(server)
    if told_to_end:
        signal.signal(signal.SIGTERM, signal.SIG_DFL)
        signal.raise_signal(signal.SIGTERM)  # so that it shows who was ended, and how
    code = server.returncode
    return code if code >= 0 else 128 - code  # of a signal, as shells hand it on


def _until_input_ends_or_exit(server: subprocess.Popen, told_to_end: list[int]) -> None:
    with selectors.DefaultSelector() as selector:
        selector.register(sys.stdin.buffer, selectors.EVENT_READ)
        while server.poll() is None and not told_to_end:
            if selector.select(timeout=0.2) and not os.read(sys.stdin.fileno(), 4096):
                return


def _stop(server: subprocess.Popen) -> None:
    if server.poll() is not None:
        return
    server.send_signal(FAST)
    deadline = time.monotonic() + FAST_SHUTDOWN_S
    while server.poll() is None and time.monotonic() < deadline:
        time.sleep(0.02)
    if server.poll() is None:
        server.send_signal(IMMEDIATE)
        server.wait()


if __name__ == "__main__":
    sys.exit(main())
