"""The CPU of those processes of the client that drive no users: the command with its collectors, and the conductor.

Executors report their own (load_users.py). Together they are what driving the load costs this machine.
"""

import time
from collections.abc import Iterator
from contextlib import suppress
from typing import Any

import psutil

from stallmark.driver.tally import SECOND_NS, parts_by_second

COMMAND, CONDUCTOR = "command", "conductor"


class ClientCpu:
    """The CPU of this process and of the conductor since the run's start, second by second."""

    def __init__(self, conductor: int, start_ns: int):
        """Take the conductor's process id."""
        self._conductor = psutil.Process(conductor)
        self._start_ns = self._seen_ns = start_ns
        self._spent = self._now()

    def rows(self, now_ns: int) -> Iterator[dict[str, Any]]:
        """Yield rows of the seconds that have ended by now and were not told yet; no row for what is not known."""
        until_ns = now_ns - (now_ns - self._start_ns) % SECOND_NS
        if until_ns <= self._seen_ns:
            return
        before, self._spent = self._spent, self._now()
        since_ns, self._seen_ns = self._seen_ns, until_ns
        for process in before.keys() & self._spent.keys():
            spent_ns = self._spent[process] - before[process]
            for second, part in parts_by_second(since_ns - self._start_ns, until_ns - self._start_ns):
                cpu_us = spent_ns * part // (until_ns - since_ns) // 1000
                yield {"second": second, "process": process, "cpu_us": cpu_us}

    def _now(self) -> dict[str, int]:
        """Return the ns that each has taken; without the conductor once that has ended."""
        found = {COMMAND: time.process_time_ns()}
        with suppress(psutil.Error):
            times = self._conductor.cpu_times()
            found[CONDUCTOR] = int((times.user + times.system) * SECOND_NS)
        return found
