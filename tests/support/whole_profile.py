"""The oracle of `intervals_of`: the same rules, on raw tables that are in memory as a whole."""

from collections.abc import Sequence

import numpy as np
import pyarrow as pa

from stallmark.analysis.profile_intervals import Samples
from support.differences import Differences


class WholeTable:
    """A raw table. `place`: of the rows' samples."""

    def __init__(self, table: pa.Table, samples: Samples):
        whole = np.isin(table["sample"].to_numpy(), samples.number)
        self._table, self._samples = table.filter(pa.array(whole)), samples
        self._place = np.searchsorted(samples.number, self._table["sample"].to_numpy())

    def rises(self, group: str, name: str, entity: str, columns: Sequence[str]) -> dict[str, np.ndarray]:
        """Return what the entities of a group counted in each interval (n − 1), by column."""
        found = {column: np.full(len(self._samples.seen), np.nan) for column in columns}
        if not len(rows := self._rows(group, name)):
            return found
        differences = self._differences(entity, rows)
        for column in columns:
            summed = differences.rises(self._numbers(column))
            if summed is None:
                continue
            at = self._place[differences.rows]
            found[column] = np.bincount(at, summed[0], len(self._samples.number))[1:]
            times = differences.times.astype(int)
            for begin, end in zip(times[:-1][summed[1]], times[1:][summed[1]], strict=True):
                found[column][begin:end] = np.nan
            found[column][: at.min()] = np.nan
        for values in found.values():
            values[_ends(differences)] = np.nan
        return found

    def state(self, group: str, name: str, entity: str, column: str) -> np.ndarray:
        """Return the sum over entities at the end of each interval (n − 1), each as it was stored last."""
        values, total = self._numbers(column), np.full(len(self._samples.number), np.nan)
        entities = self._codes(entity)
        rows = self._rows(group, name)
        for at in range(len(total)):
            last = {entities[row]: values[row] for row in rows if self._place[row] <= at}
            known = [value for value in last.values() if np.isfinite(value)]
            total[at] = sum(known) if known else np.nan
        return total[1:]

    def waits(self) -> dict[str, tuple[float, float]]:
        """Return how many waits of each type were counted, and their ms."""
        if not self._table.num_rows:
            return {}
        types = self._codes("wait_type")
        differences = self._differences("wait_type", np.arange(len(types)))
        counted = [differences.rises(self._numbers(column)) for column in ("waits", "wait_ms", "signal_ms")][:2]
        told = self._samples.seen.copy()
        told[_ends(differences)] = False
        found: dict[str, tuple[float, float]] = {}
        for number, row in enumerate(differences.rows):
            if (end := self._place[row] - 1) >= 0 and told[end]:
                name = self._table["wait_type"][int(row)].as_py()
                more = [0.0 if one is None else one[0][number] for one in counted]
                before = found.get(name, (0.0, 0.0))
                found[name] = (before[0] + more[0], before[1] + more[1])
        return {name: sums for name, sums in found.items() if sum(sums) > 0}

    def _rows(self, group: str, name: str) -> np.ndarray:
        return np.flatnonzero([one == name for one in self._table[group].to_pylist()])

    def _differences(self, entity: str, rows: np.ndarray) -> Differences:
        return Differences(self._place.astype(float), self._codes(entity), self._codes("epoch"), rows)

    def _numbers(self, column: str) -> np.ndarray:
        return self._table[column].cast(pa.float64()).to_numpy().copy()

    def _codes(self, column: str) -> np.ndarray:
        texts = self._table[column].to_pylist()
        names = list(dict.fromkeys(texts))
        return np.array([names.index(text) for text in texts], dtype=int)


def _ends(differences: Differences) -> np.ndarray:
    return differences.times.astype(int)[1:][differences.breaks] - 1
