"""Starts our own processes: plain ones, by command line, each with a channel to its parent.

Never multiprocessing: its spawn imports the parent's patched main module again, and children come up patched by
gevent.
"""

import os
import socket
import subprocess
import sys

from stallmark.driver.messages import Channel

# For glibc; other systems' allocators read neither. By default it gives threads arenas of their own, which users fill
# ever more, and keeps large blocks in them once there was one: 2 % more memory after half an hour, with no more in it.
_STEADY_MEMORY = {"MALLOC_ARENA_MAX": "1", "MALLOC_MMAP_THRESHOLD_": "65536"}


def start_child(module: str) -> tuple[subprocess.Popen, Channel]:
    """Run `module` with `python -m`; its only argument is the file descriptor of its end of the channel.

    The child has a session of its own: Ctrl-C reaches the parent alone, which then stops its children in order.
    """
    ours, theirs = socket.socketpair()
    with theirs:
        process = subprocess.Popen(
            [sys.executable, "-m", module, str(theirs.fileno())],
            pass_fds=[theirs.fileno()],
            stdin=subprocess.DEVNULL,
            start_new_session=True,
            env=_STEADY_MEMORY | os.environ,
        )
    return process, Channel(ours)
