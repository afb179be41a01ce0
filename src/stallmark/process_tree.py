"""CPU time of a process and all its descendants, ended ones included, from Linux' /proc."""

import os
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

PROC = Path("/proc")
_TICKS_PER_S = os.sysconf("SC_CLK_TCK") if hasattr(os, "sysconf") else 100
_NS_PER_S = 1e9


@dataclass(frozen=True)
class Stat:
    """The contents of /proc/PID/stat for a process. Its times include those of its ended children."""

    name: str
    parent: int
    user_s: float
    system_s: float
    threads: int


@dataclass(frozen=True)
class TreeTimes:
    user_s: float
    system_s: float
    run_delay_s: float | None  # runnable, waiting for a CPU; None if the kernel does not count it
    processes: int


class ProcessTree:
    """The processes that descend from `root`. Their times only grow: children that ended are counted by their parent,
    and the run delay of ended threads is kept as it was last seen."""

    def __init__(self, root: int, proc: Path = PROC):
        self._root = root
        self._proc = proc
        self._ours = {root}
        self._others: set[int] = set()
        self._delays: dict[tuple[int, str], int] = {}  # by process and thread, ns
        self._ended_ns = 0
        self._most = 0.0, 0.0

    def read(self) -> TreeTimes | None:
        """Return the times so far, or None if the root has ended."""
        # The root first: a child that ends meanwhile is missed until the next reading, and never counted twice.
        first = read_stat(self._root, self._proc)
        if first is None:
            return None
        stats = {self._root: first}
        self._find_new()
        for pid in sorted(self._ours - {self._root}):
            if (stat := read_stat(pid, self._proc)) is None:
                self._ours.discard(pid)
            else:
                stats[pid] = stat
        user = max(self._most[0], sum(stat.user_s for stat in stats.values()))
        system = max(self._most[1], sum(stat.system_s for stat in stats.values()))
        self._most = user, system
        return TreeTimes(user, system, self._run_delay_s(stats), len(stats))

    def _find_new(self) -> None:
        """Sort processes that were not there before into ours and others, parents before their children."""
        listed = {int(name) for name in os.listdir(self._proc) if name.isdigit()}
        self._others &= listed
        for pid in sorted(listed - self._ours - self._others):
            stat = read_stat(pid, self._proc)
            if stat is not None:
                (self._ours if stat.parent in self._ours else self._others).add(pid)

    def _run_delay_s(self, stats: dict[int, Stat]) -> float | None:
        now: dict[tuple[int, str], int] = {}
        for pid, stat in stats.items():
            for thread in self._threads(pid) if stat.threads > 1 else [str(pid)]:
                # A process that ends meanwhile keeps what was seen before.
                with suppress(ProcessLookupError):
                    try:
                        text = (self._proc / str(pid) / "task" / thread / "schedstat").read_text()
                    except FileNotFoundError:
                        continue
                    _, waited_ns, slices = text.split()
                    if slices != "0":  # all is 0 where the kernel counts no delays (delayacct)
                        now[pid, thread] = int(waited_ns)
        self._ended_ns += sum(ns for thread, ns in self._delays.items() if thread not in now)
        self._delays = now
        return (self._ended_ns + sum(now.values())) / _NS_PER_S if now or self._ended_ns else None

    def _threads(self, pid: int) -> list[str]:
        try:
            return os.listdir(self._proc / str(pid) / "task")
        except OSError:
            return []


def read_stat(pid: int, proc: Path = PROC) -> Stat | None:
    """Return what the kernel tells of a process, or None if it has ended or is hidden from us."""
    try:
        text = (proc / str(pid) / "stat").read_text(errors="replace")
    except OSError:
        return None
    before, _, after = text.rpartition(")")  # a name may hold spaces and brackets
    values = after.split()
    user, system, user_ended, system_ended = (int(value) / _TICKS_PER_S for value in values[11:15])
    return Stat(
        name=before.partition("(")[2],
        parent=int(values[1]),
        user_s=user + user_ended,
        system_s=system + system_ended,
        threads=int(values[17]),
    )
