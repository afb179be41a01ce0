"""A curve over sizes that only falls or only rises, and the choice of the next size to measure."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from functools import cached_property
from itertools import pairwise
from typing import Literal

import numpy as np
import scipy  # submodules are imported on first use

from stallmark.stats.thresholds import SAME

# A curve over sizes that only falls or only rises, through noisy values, and the error of the curve.
#
# Values that go the wrong way are levelled by isotonic regression, which is least squares under that one condition (R.
# E. Barlow et al., Statistical Inference under Order Restrictions, 1972). Between sizes the curve is a monotone cubic
# over the logarithm of the size (F. N. Fritsch and R. E. Carlson, SIAM J. Numer. Anal. 17, 1980): it adds no bump
# between the values, and follows a cliff as well as a slope. A formula with a few parameters would be smoother, and
# wrong for every other kind of load. The curve ends at the smallest and the largest measured size.


Way = Literal["falls", "rises"]

FEWEST = 4
"""Minimum number of sizes for an error: of three sizes only one has neighbours on both sides and can be left out."""


@dataclass(frozen=True)
class LeftOut:
    """One size left out of the curve: the value seen there, and the value that the other sizes predict."""

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
    def monotone_values(self) -> tuple[float, ...]:
        """Return the values at its own sizes, with what goes the wrong way levelled."""
        regression = scipy.optimize.isotonic_regression(
            np.array(self.values, dtype=float), increasing=self.way == "rises"
        )
        return tuple(map(float, regression.x))

    def value_at(self, size: float) -> float:
        """Return the value at a size; raise ValueError outside the sizes seen."""
        if not self.sizes[0] <= size <= self.sizes[-1]:
            raise ValueError(f"{size} is outside the sizes seen")
        return float(self._line(np.log(size)))

    def size_of(self, value: float) -> float | None:
        """Return the smallest size at which the curve has reached a value; None if it never does."""
        sign = 1 if self.way == "rises" else -1
        if sign * self.monotone_values[-1] < sign * value:
            return None
        if sign * self.monotone_values[0] >= sign * value:
            return float(self.sizes[0])
        upper = next(n for n, fitted in enumerate(self.monotone_values) if sign * fitted >= sign * value)
        low, high = (float(np.log(self.sizes[n])) for n in (upper - 1, upper))
        # Sixty halvings reach the precision of a double.
        for _ in range(60):
            middle = (low + high) / 2
            low, high = (low, middle) if sign * float(self._line(middle)) >= sign * value else (middle, high)
        return float(np.exp(high))

    @cached_property
    def left_out(self) -> tuple[LeftOut, ...]:
        """Return each size between the ends with the value that the curve through the other sizes predicts."""
        if len(self.sizes) < FEWEST:
            return ()
        return tuple(
            LeftOut(self.sizes[n], self.values[n], self._leave_out(n).value_at(self.sizes[n]))
            for n in range(1, len(self.sizes) - 1)
        )

    @property
    def error(self) -> float | None:
        """Return the error of predictions of sizes left out: the root mean square, as a share of the largest value.

        A size left out makes its gap twice as wide, so the error of the whole curve is smaller. None below FEWEST
        sizes.
        """
        largest = max(map(abs, self.values))
        if not self.left_out or not largest:
            return 0.0 if self.left_out else None
        return (
            float(np.sqrt(np.mean([(prediction.predicted - prediction.seen) ** 2 for prediction in self.left_out])))
            / largest
        )

    @cached_property
    def _line(self) -> "scipy.interpolate.PchipInterpolator":
        return scipy.interpolate.PchipInterpolator(np.log(self.sizes), self.monotone_values)

    def _leave_out(self, n: int) -> "MonotoneCurve":
        return MonotoneCurve(self.sizes[:n] + self.sizes[n + 1 :], self.values[:n] + self.values[n + 1 :], self.way)


# The choice of the next size at which a curve is measured: near its bends, with as few sizes as possible.
#
# The choice is a pure function of the measured values, so that a killed experiment resumes as it would have continued.
# Sizes are a quarter of an octave apart below the largest one, so that half and twice a size are sizes as well.
#
# First come both ends and the middle between them. A *gap* is the range between two neighbouring measured sizes, and
# each step halves the gap with the largest possible error. Within a gap a monotone curve stays between the values at
# both ends, so its error is at most their difference. The error is estimated by the curve's error at these ends when
# they are left out, and is at least a quarter of the difference: a size that is on a straight line by chance must not
# hide a cliff. Once no error exceeds the tolerance, the sizes for the answer follow: the smallest one that is enough,
# to within NARROW, then twice and half of that size.
#
# Example: 64 to 1,024 MiB, at most 9 sizes, a tolerance of 5 %, and a throughput that rises up to 400 MiB and is flat
# beyond. The search measures 64, 1,024 and 256, then 128, 182 and 512 (bends), then 363 and 305 between 256, which is
# too little, and 512, which is enough.

PER_OCTAVE = 4
FOR_ANSWER = 3
"""Sizes reserved for the answer: the smallest one that is enough, half of that size, and twice that size."""
NARROW = 1.5
"""Maximum ratio of the smallest size that is enough to the next smaller one."""
SUSPECT = 0.25
"""Minimum error of the curve within a gap, as a share of the difference of both ends."""
MIB = 1024**2


class Why(StrEnum):
    END = "end"
    MIDDLE = "middle"
    BEND = "bend"
    ENOUGH = "enough"  # between the largest size that is not enough and the smallest that is
    HALF = "half"  # half of the smallest size that is enough
    DOUBLE = "double"


@dataclass(frozen=True)
class CurveSpec:
    """The specification of a curve."""

    low: int  # smallest and largest size in bytes
    high: int
    most: int  # maximum number of sizes
    tolerance: float  # required precision, as a share of the largest value


@dataclass(frozen=True)
class Choice:
    """The next size to measure."""

    size: int
    reason: Why
    between: tuple[int, int] | None = None  # the measured neighbours, None before a curve exists
    error: float | None = None  # possible error of the curve between them, as a share of the largest value


@dataclass(frozen=True)
class Values:
    """The values at one size: something that `falls` with it and something that `rises`; None if it was not
    measured."""

    falls: float | None
    rises: float | None


def lattice(asked: CurveSpec) -> list[int]:
    """Return the sizes that may be chosen, in whole MiB, ascending; the ends are as asked."""
    nearest = asked.low * 2 ** (0.5 / PER_OCTAVE)
    steps = range(1, 1 + int(PER_OCTAVE * math.log2(asked.high / asked.low)))
    between = [math.ceil(asked.high / 2 ** (step / PER_OCTAVE) / MIB) * MIB for step in steps]
    return sorted({asked.low, asked.high, *(size for size in between if nearest <= size < asked.high)})


def next_size(asked: CurveSpec, seen: Mapping[int, Values]) -> Choice | None:
    """Return the next size to measure, or None if the curve is known well enough or the maximum number is reached."""
    if len(seen) >= asked.most:
        return None
    for end in (asked.low, asked.high):
        if end not in seen:
            return Choice(end, Why.END)
    sizes = lattice(asked)
    if len(seen) == 2:
        middle = _middle(sizes, seen, 0, len(sizes) - 1)
        return Choice(middle, Why.MIDDLE, (asked.low, asked.high)) if middle else None
    curves = [curve for curve in (_curve(seen, "falls"), _curve(seen, "rises")) if curve]
    # Bends come first, but not with the sizes that the answer will need.
    if len(seen) < asked.most - FOR_ANSWER and (bend := _bend(asked, sizes, seen, curves)):
        return bend
    rising = _curve(seen, "rises")
    enough = smallest_enough(rising) if rising else None
    answer = _for_answer(sizes, seen, enough) if enough else None
    return answer or _bend(asked, sizes, seen, curves, but=enough)


def smallest_enough(curve: MonotoneCurve) -> int:
    """Return the smallest of the sizes seen from which no larger one gives more than SAME more."""
    sizes = zip(curve.sizes, curve.monotone_values, strict=True)
    return next(size for size, value in sizes if curve.monotone_values[-1] <= value * (1 + SAME))


def _curve(seen: Mapping[int, Values], way: Way) -> MonotoneCurve | None:
    known = {size: value for size, values in seen.items() if (value := getattr(values, way)) is not None}
    return MonotoneCurve.through(known, way) if len(known) > 2 else None


def _bend(
    asked: CurveSpec,
    sizes: Sequence[int],
    seen: Mapping[int, Values],
    curves: Sequence[MonotoneCurve],
    but: int | None = None,
) -> Choice | None:
    """Return the middle of the gap with the largest possible error, or None if no error exceeds the tolerance. The gap
    that ends at `but` is skipped: a size in it might change which one is enough."""
    worst: Choice | None = None
    for curve in curves:
        largest = max(map(abs, curve.monotone_values))
        missed = {prediction.size: abs(prediction.predicted - prediction.seen) for prediction in curve.left_out}
        for (a, of_a), (b, of_b) in pairwise(zip(curve.sizes, curve.monotone_values, strict=True)):
            # A size in this gap might change which one is enough, and the search would begin again.
            if b == but:
                continue
            differ = abs(of_b - of_a)
            # At most the difference of the gap's ends, as the curve is monotone; at least SUSPECT of the difference, as
            # a size on a straight line by chance must not hide a cliff.
            off = min(differ, max(missed.get(a, 0.0), missed.get(b, 0.0), SUSPECT * differ)) / (largest or 1.0)
            if off <= asked.tolerance or (worst and worst.error is not None and off <= worst.error):
                continue
            if middle := _middle(sizes, seen, sizes.index(a), sizes.index(b)):
                worst = Choice(middle, Why.BEND, (a, b), off)
    return worst


def _middle(sizes: Sequence[int], seen: Mapping[int, Values], low: int, high: int) -> int | None:
    """Return the size nearest to the middle between two that was not tried yet; None if none is left."""
    free = [n for n in range(low + 1, high) if sizes[n] not in seen]
    return sizes[min(free, key=lambda n: abs(2 * n - low - high))] if free else None


def _for_answer(sizes: Sequence[int], seen: Mapping[int, Values], enough: int) -> Choice | None:
    """Return the next size for the answer. `enough` is the smallest measured size that is enough."""
    less = max((size for size in seen if size < enough), default=enough)
    if enough > NARROW * less and (middle := _middle(sizes, seen, sizes.index(less), sizes.index(enough))):
        return Choice(middle, Why.ENOUGH, (less, enough))
    for reason, wanted in ((Why.DOUBLE, 2.0 * enough), (Why.HALF, enough / 2)):
        if sizes[0] <= wanted <= sizes[-1]:
            nearest = min(sizes, key=lambda size: abs(math.log(size / wanted)))
            if nearest not in seen:
                return Choice(nearest, reason)
    return None
