"""The whole content of a file of measurements, as series of one counter each."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import tzinfo

import numpy as np

from stallmark.attach.attach import Wanted, notes_on, open_file, samples
from stallmark.record.formats import Format, detect_format
from stallmark.record.formats.sample import Counter, Recorded


@dataclass(frozen=True)
class Series:
    counter: str
    instance: str
    unit: str
    host: str
    at: np.ndarray
    values: np.ndarray


@dataclass(frozen=True)
class Measured:
    file: Recorded
    stamps: Sequence[str]
    series: Sequence[Series]

    @property
    def zone(self) -> tzinfo | None:
        return self.file.zone

    @property
    def zone_said(self) -> str:
        return self.file.zone_words

    @property
    def host(self) -> str:
        return self.file.host

    @property
    def notes(self) -> list[str]:
        return notes_on(self.file)


def read(wanted: Wanted, format: Format | None = None) -> tuple[str, Measured]:
    """Return the format of a file, and all that it holds of the counters asked for."""
    format = format or detect_format(wanted.file)
    file = open_file(wanted, format)
    names: list[str] = []
    stamps: list[str] = []
    values: dict[Counter, list[tuple[int, float]]] = {}

    def takes(counter: Counter) -> bool:
        names.append(counter.name)
        return wanted.has(counter.name)

    for place, sample in enumerate(samples(file, takes)):
        stamps.append(sample.stamp)
        for counter, value in sample.values:
            values.setdefault(counter, []).append((place, value))
    wanted.refuse_nothing(bool(values), names)
    series = [
        Series(
            f"{counter.object} {counter.counter}".strip(), counter.instance, counter.unit, counter.host,
            np.array([place for place, _ in pairs]), np.array([value for _, value in pairs]),
        )
        for counter, pairs in values.items()
    ]  # fmt: skip
    return format, Measured(file, stamps, series)
