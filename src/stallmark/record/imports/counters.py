"""The counters of other tools that a profile knows, and their columns: the rows of counters.csv."""

import csv
from collections.abc import Callable
from functools import cache
from importlib import resources
from typing import NamedTuple

import numpy as np

from stallmark.record.formats.sample import Counter
from stallmark.record.imports.recording import Samples
from stallmark.record.profile.interval_table import STATES

SUMS = frozenset({"log_flushes", "log_bytes", "transactions", "checkpoint_pages"})
"""Columns that several counters add up to: those of every database, direct and indirect checkpoints."""
Key = tuple[str, str]


class Known(NamedTuple):
    """The column of a counter; `factor` converts its unit. A mean, as `read_ms`, is per I/O."""

    column: str
    factor: float


class Entity(NamedTuple):
    """A device, a database or a server: its amounts by column and row, NaN if unknown, and the rows that have it."""

    amounts: dict[str, np.ndarray]
    present: np.ndarray


@cache
def known_counters(source: str) -> dict[Key, list[Known]]:
    """Return the counters of a tool by object and name. If two are of one column, the first that a file has counts."""
    counters: dict[Key, list[Known]] = {}
    with (resources.files(__package__) / "counters.csv").open() as file:
        for row in csv.DictReader(file):
            if row["source"] == source:
                entry = Known(row["column"], float(row["factor"]))
                counters.setdefault((row["object"], row["counter"]), []).append(entry)
    return counters


def read_entities(samples: Samples, source: str, key: Callable[[Counter], Key]) -> dict[Key, Entity]:
    """Return the entities by object and instance; `key` gives the object and name of a counter.

    The time of reads is their mean, `read_ms`, times their number.
    """
    entities: dict[Key, Entity] = {}
    own: dict[Key, list[Counter]] = {}
    for counter in samples.counters:
        own.setdefault(key(counter), []).append(counter)
    for (object, name), entries in known_counters(source).items():
        for counter in own.get((object, name), ()):
            values = samples.values(counter)
            rates, present = entities.setdefault((object, counter.instance), Entity({}, np.isfinite(values)))
            present |= np.isfinite(values)
            for column, factor in entries:
                own_rates = values * factor
                if (before := rates.get(column)) is not None:
                    own_rates = before + own_rates if column in SUMS else np.where(np.isnan(before), own_rates, before)
                rates[column] = own_rates
    for amounts, _ in entities.values():
        for side in ("read", "write"):
            mean, count = amounts.pop(f"{side}_ms", None), amounts.get(f"{side}s")
            if mean is not None and count is not None:
                amounts[f"{side}_stall_ms"] = np.where(count == 0, 0.0, mean * count)  # no I/O has no time
        for column in amounts.keys() - set(STATES):
            amounts[column] = amounts[column] * samples.seconds
    return entities
