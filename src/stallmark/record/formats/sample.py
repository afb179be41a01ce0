"""The common form of all formats: samples, and the values of counters in each."""

import math
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from datetime import tzinfo
from pathlib import Path
from typing import NamedTuple


@dataclass(frozen=True, slots=True)
class Counter:
    """One counter of one instance. `name`: as a person asks for it, with all parts."""

    name: str  # "\\SQL01\PhysicalDisk(0 C:)\Disk Reads/sec", "nvme0n1 r_await"
    object: str  # "PhysicalDisk", "disk"; empty if the format has none
    counter: str  # "Disk Reads/sec", "r_await"
    instance: str = ""  # "0 C:", "nvme0n1"; empty if the counter has none
    unit: str = ""  # as the file has it: "s", "ms", "KiB/s"; empty if unknown
    host: str = ""


class Sample(NamedTuple):
    """The values of one time, as the file writes it; they can be taken once. `seconds`: the time that they cover, if
    the file states it. `begins`: there is no sample before it, or a time between that is unknown."""

    stamp: str
    values: Iterable[tuple[Counter, float]]
    seconds: float | None = None
    begins: bool = False


Has = Callable[[Counter], bool]


class Recorded:
    """A file of another tool. Its facts are known once a sample is read, its notes once all are."""

    order: str | None = None
    """The order of day and month, if the tool has but one."""
    first_since_start = False
    """A sample that begins may cover all time since the machine was started."""

    def __init__(self, path: Path):
        self.path = path
        self.host = ""
        self.cores: int | None = None
        self.zone: tzinfo | None = None
        self.zone_words = ""
        self.restarts: list[str] = []
        self.notes: list[str] = []
        """The phrases of what was left out."""

    def samples(self, has: Has = lambda _: True) -> Iterator[Sample]:
        """Yield the samples in the order of the file, with the values of the counters that `has` takes.

        Raise StallmarkError for a file that cannot be read, OSError for one that cannot be opened.
        """
        raise NotImplementedError

    def stamps(self) -> Iterator[str]:
        return (sample.stamp for sample in self.samples())


def number(text: str) -> float | None:
    """Return a number of a file, or None for a blank and for what is infinite. A decimal comma counts as a point.

    Raise ValueError for other text.
    """
    text = text.strip()
    if not text or text == "-":
        return None
    try:
        value = float(text)
    except ValueError:
        if text.count(",") != 1 or "." in text:
            raise
        value = float(text.replace(",", "."))
    return value if math.isfinite(value) else None


def finite_or_none(text: str) -> float | None:
    """Return a rate of a file, or None if it is unknown: no rate is negative. Raise ValueError for other text."""
    value = number(text)
    return value if value is not None and value >= 0 else None
