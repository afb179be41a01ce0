"""Known curves of memory for tests: reads of a transaction, and the throughput that follows from them."""

from collections.abc import Callable

import numpy as np

from stallmark.stats.curve_search import MIB, CurveSpec, MonotoneCurve, Values, next_size

Curve = Callable[[float], float]
DATA = 500 * MIB
ASKED = CurveSpec(low=10 * MIB, high=DATA, most=9, tolerance=0.05)


def zipf(theta: float) -> Curve:
    """Pages are read with the skew of Zipf's law; the pool holds those that are read most."""
    return lambda size: 8 * (1 - min(1.0, size / DATA) ** (1 - theta))


def cliff(working_set: float, sharp: float = 12) -> Curve:
    """All of the load touches one set of pages, again and again."""
    return lambda size: 10 / (1 + (size / working_set) ** sharp) + 0.2


def flat(size: float) -> float:
    return 5.0


def rate(reads: Curve) -> Curve:
    """Transactions wait for each read, and for a CPU."""
    return lambda size: 1000 / (2 + 1.5 * reads(size))


def searched(reads: Curve, asked: CurveSpec = ASKED, scatter: Callable[[], float] = lambda: 1.0) -> dict[int, Values]:
    """Return what a search saw of a curve; `scatter` multiplies every value."""
    seen: dict[int, Values] = {}
    while choice := next_size(asked, seen):
        assert choice.size not in seen
        seen[choice.size] = Values(reads(choice.size) * scatter(), rate(reads)(choice.size) * scatter())
    return seen


LOADS = {"zipf 0.5": zipf(0.5), "zipf 0.9": zipf(0.9), "cliff": cliff(100 * MIB), "small": cliff(30 * MIB, 20)}


def off(curve: MonotoneCurve, truth: Curve) -> float:
    """Return how far a curve is off the truth over its whole range: RMS, as a share of the largest value."""
    sizes = np.geomspace(curve.sizes[0], curve.sizes[-1], 200).clip(curve.sizes[0], curve.sizes[-1])
    true = np.array([truth(size) for size in sizes])
    return float(np.sqrt(np.mean((np.array([curve.value_at(size) for size in sizes]) - true) ** 2)) / true.max())
