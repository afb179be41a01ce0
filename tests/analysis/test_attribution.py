"""The share of the server's I/O stall that a device accounts for."""

from types import SimpleNamespace

import pytest

from stallmark.analysis.bottleneck import attribution
from stallmark.analysis.read.counters import Delta
from stallmark.analysis.read.interval import Interval


def test_times_are_added_up_the_same_in_any_order(monkeypatch: pytest.MonkeyPatch) -> None:
    """A set of names has another order in each process, and sums of floats would differ in their last digit."""
    columns = [f"t{number}" for number in range(9)]
    values = dict.fromkeys(columns, 1.0) | {"t4": 2.0**53}
    monkeypatch.setattr(attribution, "over", lambda counters, interval: Delta(0.0, 1.0, False, values))
    names = SimpleNamespace(read_ms=columns[:3], write_ms=columns[3:6], sync_ms=columns[6:])
    interval: Interval = SimpleNamespace()  # type: ignore[assignment]
    assert attribution._ms_per_second([(None, names)], interval) == 2.0**53 + 8  # type: ignore[list-item]
