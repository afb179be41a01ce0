"""The request to a file of measurements, and the samples that it gives."""

import fnmatch
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from stallmark.errors import StallmarkError
from stallmark.record.formats.open import READERS
from stallmark.record.formats.sample import Has, Recorded, Sample
from stallmark.record.formats.table import Table

_NAMED = 6  # counters named in a refusal


@dataclass(frozen=True)
class Wanted:
    """The request to a file: counters by pattern (all if there is none), and the column that holds the times."""

    file: Path
    counters: tuple[str, ...] = ()
    time_column: str | None = None

    def has(self, name: str) -> bool:
        """Tell whether `name` contains one of the patterns; `*` and `?` stand for any text and any character."""
        return not self.counters or any(_contains(name, pattern) for pattern in self.counters)

    def refuse_nothing(self, found: bool, names: Iterable[str]) -> None:
        """Raise StallmarkError where nothing was `found` among the counters called `names`."""
        if found:
            return
        if not (there := list(dict.fromkeys(names))):
            raise StallmarkError(f"{self.file} holds no measurements.")
        if not any(self.has(name) for name in there):
            some = ", ".join(there[:_NAMED]) + (", …" if len(there) > _NAMED else "")
            asked = " or ".join(self.counters)
            raise StallmarkError(f"No counter of {self.file} matches {asked}: it has {some}.")
        raise StallmarkError(f"{self.file} has no value in the counters asked for.")


@cache
def _contains(name: str, pattern: str) -> bool:
    # A bracket is part of a counter's name more often than a set of characters.
    plain = pattern.lower().replace("[", "[[]")
    return fnmatch.fnmatchcase(name.lower(), f"*{plain}*")


def open_file(wanted: Wanted, format: str) -> Recorded:
    """Return the reader of a file. Raise StallmarkError for totals, which a chart of a run cannot show."""
    if format == "prometheus":
        raise StallmarkError(
            f"{wanted.file} holds totals of Prometheus: ask for rate() of them, and attach a CSV of it, as Grafana "
            "exports it."
        )
    return READERS[format](wanted.file) if format in READERS else Table(wanted.file, wanted.time_column)


def samples(file: Recorded, has: Has = lambda _: True) -> Iterator[Sample]:
    """Yield the samples whose values are of their own interval."""
    return (sample for sample in file.samples(has) if not (sample.begins and file.first_since_start))


def notes_on(file: Recorded) -> list[str]:
    """Return what was left out of a file that was read, a phrase each."""
    first = "the first report, which may cover the time since the machine was started"
    return [first] * file.first_since_start + file.notes
