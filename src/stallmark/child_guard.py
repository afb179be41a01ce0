"""Run a program that never outlives the process that started it: it is ended as soon as our input ends, which the
kernel sees to however that process died.

Run as `python -m stallmark.child_guard guard-of-NAME`, for those who list processes. The first line of standard input
is JSON: `argv`, `environment` (added to ours), `log` (a file for its output, or ours), and `ends`, the signals by which
it is ended, each with the seconds that it then has. A parent-death signal would not do: it is lost when a server
changes its user, it follows threads, and Linux alone has it.
"""

import json
import os
import select
import signal
import subprocess
import sys
from contextlib import nullcontext, suppress


def main() -> int:
    # The tool stops us by closing the pipe; Ctrl-C and friends are its business, not ours.
    for ignored in (signal.SIGINT, signal.SIGHUP):
        signal.signal(ignored, signal.SIG_IGN)
    if not (line := sys.stdin.buffer.readline()):
        return 0  # the tool has gone before it could say what to start
    order = json.loads(line)
    # Noted, and no exception: one that came while the program is started would leave it to itself.
    told_to_end: list[int] = []
    woken, wake = os.pipe()
    os.set_blocking(wake, False)
    signal.set_wakeup_fd(wake)
    signal.signal(signal.SIGCHLD, lambda *_: None)
    signal.signal(signal.SIGTERM, lambda number, _: told_to_end.append(number))
    with open(order["log"], "ab") if order["log"] else nullcontext() as log:
        program = subprocess.Popen(
            order["argv"],
            env=os.environ | order["environment"],
            stdin=subprocess.DEVNULL,
            stdout=log,
            stderr=log,
            preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL),
        )
    while program.poll() is None and not told_to_end:
        readable, _, _ = select.select([sys.stdin, woken], [], [])
        if woken in readable:
            os.read(woken, 4096)
        elif not os.read(sys.stdin.fileno(), 4096):
            break
    for number, grace_s in order["ends"]:
        if program.poll() is None:
            program.send_signal(number)
            program.send_signal(signal.SIGCONT)  # a program that was stopped obeys no signal but SIGKILL
            with suppress(subprocess.TimeoutExpired):
                program.wait(grace_s)
    if told_to_end:
        signal.signal(signal.SIGTERM, signal.SIG_DFL)
        signal.raise_signal(signal.SIGTERM)  # so that it shows who was ended, and how
    code = program.wait()
    return code if code >= 0 else 128 - code  # a signal's code, as shells report it


if __name__ == "__main__":
    sys.exit(main())
