"""A curve over sizes that only falls or only rises, through values that scatter, and how far it is off.

Values that go the wrong way are levelled by isotonic regression, which is least squares under that one condition
(R. E. Barlow et al., Statistical Inference under Order Restrictions, 1972). Between sizes runs a monotone cubic over
the logarithm of the size (F. N. Fritsch and R. E. Carlson, SIAM J. Numer. Anal. 17, 1980): it has no bump that no value
shows, and follows a cliff as well as a slope. A formula with a few parameters would be smoother, and wrong for every
load that is of another kind. Nothing is said of sizes outside those measured.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Literal

import numpy as np
import scipy  # its parts are imported when first asked for

Way = Literal["falls", "rises"]

FEWEST = 4
"""Sizes below which no error can be told: of three, one alone lies between others, and is left out of two."""


@dataclass(frozen=True)
class LeftOut:
    """One size, left out: the value that was seen there, and what the others say of it."""

    size: int
    seen: float
    predicted: float


@dataclass(frozen=True)
class MonotoneCurve:
    """The curve through a value for each of two or more sizes, in ascending order."""

    sizes: tuple[int, ...]
    values: tuple[float, ...]
    way: Way

    @classmethod
    def through(cls, seen: Mapping[int, float], way: Way) -> "MonotoneCurve":
        """Return the curve; raise ValueError below two sizes."""
        if len(seen) < 2:
            raise ValueError("a curve needs two sizes")
        sizes = sorted(seen)
        return cls(tuple(sizes), tuple(seen[size] for size in sizes), way)

    @cached_property
    def fitted(self) -> tuple[float, ...]:
        """Return the values at its own sizes, with what goes the wrong way levelled."""
        found = scipy.optimize.isotonic_regression(np.array(self.values, dtype=float), increasing=self.way == "rises")
        return tuple(map(float, found.x))

    def at(self, size: float) -> float:
        """Return the value at a size; raise ValueError outside the sizes seen."""
        if not self.sizes[0] <= size <= self.sizes[-1]:
            raise ValueError(f"{size} is outside the sizes seen")
        return float(self._line(np.log(size)))

    def size_of(self, value: float) -> float | None:
        """Return the smallest size at which the curve has reached a value; None where it never does."""
        sign = 1 if self.way == "rises" else -1
        if sign * self.fitted[-1] < sign * value:
            return None
        if sign * self.fitted[0] >= sign * value:
            return float(self.sizes[0])
        upper = next(n for n, one in enumerate(self.fitted) if sign * one >= sign * value)
        low, high = (float(np.log(self.sizes[n])) for n in (upper - 1, upper))
        for _ in range(60):
            middle = (low + high) / 2
            low, high = (low, middle) if sign * float(self._line(middle)) >= sign * value else (middle, high)
        return float(np.exp(high))

    @cached_property
    def left_out(self) -> tuple[LeftOut, ...]:
        """Return every size between the ends, with what the curve through the others says of it."""
        if len(self.sizes) < FEWEST:
            return ()
        return tuple(
            LeftOut(self.sizes[n], self.values[n], self._without(n).at(self.sizes[n]))
            for n in range(1, len(self.sizes) - 1)
        )

    @property
    def error(self) -> float | None:
        """Return how far predictions of sizes left out were off: root mean square, as a share of the largest value.

        A size left out makes its gap twice as wide, so the curve through all of them is off by less. None below FEWEST
        sizes.
        """
        largest = max(map(abs, self.values))
        if not self.left_out or not largest:
            return 0.0 if self.left_out else None
        return float(np.sqrt(np.mean([(one.predicted - one.seen) ** 2 for one in self.left_out]))) / largest

    @cached_property
    def _line(self) -> "scipy.interpolate.PchipInterpolator":
        return scipy.interpolate.PchipInterpolator(np.log(self.sizes), self.fitted)

    def _without(self, n: int) -> "MonotoneCurve":
        return MonotoneCurve(self.sizes[:n] + self.sizes[n + 1 :], self.values[:n] + self.values[n + 1 :], self.way)
