"""A strike: one signal to one process of a command at one moment."""

import os
import random
import signal
import time
from contextlib import suppress
from dataclasses import dataclass
from typing import Any

import psutil
from support.tool import Command, Tool

PARTS = {
    "conductor": "stallmark.driver.locust_bridge",
    "executor": "stallmark.driver.executor",
    "loader": "stallmark.loaders.worker",
    "guard": "stallmark.engines.postgres.embedded.guard",
    "server": "/bin/postgres",
    "initdb": "/bin/initdb",
}
"""Processes that a command starts, by the end of a word of their command line."""
APPEARS_WITHIN_S = 30


@dataclass
class Strike:
    """`share` of the time that the command usually takes goes by before it; a part is struck in the time that it has
    been there. A stopped process goes on after `pause_s`. `at` is the time of day when it was done."""

    victim: str
    how: str
    share: float
    pause_s: float = 0.0
    at: float = 0.0

    def __str__(self) -> str:
        paused = f" for {self.pause_s:.1f} s" if self.pause_s else ""
        return f"SIG{self.how}{paused} to {self.victim} at {self.share:.0%}"

    def carry_out(self, rng: random.Random, tool: Tool, command: Command, usual_s: float) -> bool:
        """Do it. Return whether there was something to strike: the command may have ended before."""
        ends = time.monotonic() + usual_s
        if not _wait_until(lambda: self._found(tool, command), command, APPEARS_WITHIN_S):
            return False
        _wait_until(lambda: False, command, self.share * max(0.5, ends - time.monotonic()))
        found = self._found(tool, command)
        if not found or command.process.poll() is not None:
            return False
        victim = rng.choice(sorted(found, key=lambda process: process.pid))
        return self._signal(victim)

    def _found(self, tool: Tool, command: Command) -> list[psutil.Process]:
        if self.victim in ("command", "group"):
            return [] if command.process.poll() is not None else [psutil.Process(command.process.pid)]
        if self.victim == "backend":
            return [one for one in _ours(tool) if one.cmdline()[:1] and one.cmdline()[0].startswith("postgres: ")]
        return tool.running(PARTS[self.victim])

    def _signal(self, victim: psutil.Process) -> bool:
        number = getattr(signal, f"SIG{self.how}")

        def send(number: int) -> None:
            os.killpg(victim.pid, number) if self.victim == "group" else victim.send_signal(number)

        self.at = time.time()
        try:
            send(number)
            if self.how == "STOP":
                time.sleep(self.pause_s)
                send(signal.SIGCONT)
        except (psutil.NoSuchProcess, ProcessLookupError):
            return False
        return True


def draw(rng: random.Random, victims: dict[str, str]) -> Strike:
    """Draw a strike; `victims` says with which signals each may be struck."""
    victim = rng.choice(list(victims))
    how = rng.choice(victims[victim].split())
    pause_s = round(rng.uniform(0.5, 2.5), 1) if how == "STOP" else 0.0
    return Strike(victim, how, round(rng.random(), 3), pause_s)


def _ours(tool: Tool) -> list[psutil.Process]:
    found = []
    for process in tool.processes():
        with suppress(psutil.Error):
            process.cmdline()
            found.append(process)
    return found


def _wait_until(holds: Any, command: Command, limit_s: float) -> bool:
    """Wait until it holds; return False when that takes too long, or the command ends."""
    deadline = time.monotonic() + limit_s
    while not (found := holds()):
        left = deadline - time.monotonic()
        if left <= 0 or command.process.poll() is not None:
            return False
        time.sleep(min(0.02, left))
    return bool(found)
