"""The oracle of `read_counters`: the same rules, on a table that is in memory as a whole."""

from collections.abc import Sequence

import numpy as np
import pyarrow as pa

from stallmark.analysis.read.counters import Counters
from support.differences import Differences


def whole_counters(
    rows: pa.Table,
    columns: Sequence[str],
    group: str | None,
    entity: str,
    longest_s: dict[float, float],
    delay_s: float,
) -> dict[str, Counters]:
    """Return the counters of rows with a column "t"; a sample further than `longest_s` (by its time) from the
    one before it is a gap."""
    t = rows["t"].to_numpy()
    groups, names = _codes(rows, group)
    entities, epochs = _codes(rows, entity)[0], _codes(rows, "epoch")[0]
    found = {}
    for code, name in enumerate(names):
        picked = np.flatnonzero(groups == code)
        differences = Differences(t, entities, epochs, picked)
        totals = {}
        gaps = np.diff(differences.times) > [longest_s[one] for one in differences.times[1:]]
        for column in (one for one in columns if one in rows.column_names):
            values = rows[column].cast(pa.float64()).to_numpy(zero_copy_only=False).copy()
            if (summed := differences.total(values)) is not None:
                totals[column], unknown = summed
                gaps |= unknown
        found[name] = Counters(
            differences.times - delay_s, totals, _lasting(differences.breaks, differences.times, delay_s), gaps
        )
    return found


def _lasting(breaks: np.ndarray, t: np.ndarray, delay_s: float) -> np.ndarray:
    lasting = breaks.copy()
    for gap in np.flatnonzero(breaks):
        lasting[gap : np.searchsorted(t - delay_s, t[gap + 1])] = True
    return lasting


def _codes(rows: pa.Table, column: str | None) -> tuple[np.ndarray, list[str]]:
    if column is None or column not in rows.column_names:
        return np.zeros(rows.num_rows, dtype=int), [""]
    texts = ["none" if text is None else text for text in rows[column].to_pylist()]
    names = list(dict.fromkeys(texts))
    return np.array([names.index(text) for text in texts]), names
