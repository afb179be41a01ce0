"""The search for the highest level of a load that keeps a service level, and the test whether one is kept."""

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from enum import StrEnum
from itertools import pairwise
from typing import Any

import numpy as np
import scipy  # submodules are imported on first use

from stallmark.format import exact
from stallmark.stats.thresholds import CEILING_BATCHES, CEILING_CONFIRMED, CEILING_VISITS, CONFIDENCE, SAMPLES_BEYOND

# The search for the highest level of a load that keeps a service level: a pure function of what was seen.
#
# Terms. A *level* is a number of users, a rate, or a multiple of a load. It *holds* if the service level was kept, and
# *breaks* if not. The *bracket* is the highest level that holds and the lowest that breaks.
#
# Levels double until one breaks. Then the bracket is halved (as a ratio) until it is within the tolerance. The answer
# is confirmed: the level above must break again, and the level itself must hold right after that. So a server that is
# slow to recover from an overload gets the lower ceiling, which it carries even then. A level that held as often as it
# broke is measured again. If it is still undecided, it does not count as carried. If a repeat contradicts an earlier
# result, the search continues from the levels on both sides.
#
# Example: with 10 to 640 users, a tolerance of 10 % and a true ceiling of 100, the search tries 10, 20, 40, 80 (hold),
# 160, 113 (break), 95 (holds), 104 (breaks). Then it repeats 104 and 95, and the answer is 95 to 104.


class Verdict(StrEnum):
    HELD = "held"
    BROKE = "broke"
    UNDECIDED = "undecided"  # too close to the limit, or too little was seen


class Why(StrEnum):
    """The reason for trying a level."""

    FIRST = "first"
    DOUBLE = "double"
    HALVE = "halve"  # the gap
    ABOVE = "above"  # again, one step above the ceiling
    CEILING = "ceiling"  # again, the ceiling itself
    BALANCE = "balance"  # again: it held as often as it broke


class Outcome(StrEnum):
    FOUND = "found"
    AT_LEAST = "at_least"  # the highest requested level holds
    NONE = "none"  # the lowest requested level breaks
    UNCONFIRMED = "unconfirmed"  # the maximum number of levels was tried: they contradict each other


@dataclass(frozen=True)
class SearchSpec:
    """The specification of a search for the highest level within limits. Levels that are neither whole nor multiples
    are rates."""

    low: float  # lowest and highest level
    high: float
    tolerance: float  # precision of the ceiling, as a share
    whole: bool  # levels are numbers of users
    multiple: bool = False  # levels are multiples of a load

    def name_of(self, level: float) -> str:
        """Return the name of a step at this level: whole ones are users, others rates or multiples."""
        number = exact(level).replace(",", "")
        return f"{number} ×" if self.multiple else f"{number} users" if self.whole else f"{number} per second"

    @property
    def most_levels(self) -> int:
        """Return the maximum number of levels: each level may need two looks, and some more."""
        return 2 * self.usual_levels + CEILING_VISITS

    @property
    def usual_levels(self) -> int:
        """Return the number of levels up to a ceiling near `high` without contradictions."""
        doublings = math.ceil(math.log2(self.high / self.low)) if self.high > self.low else 0
        halvings = math.ceil(math.log2(math.log(2) / math.log1p(self.tolerance))) if doublings else 0
        return 1 + doublings + max(0, halvings) + 2 * (CEILING_CONFIRMED - 1)


@dataclass(frozen=True)
class LevelResult:
    level: float
    verdict: Verdict


@dataclass(frozen=True)
class Next:
    level: float
    reason: Why


@dataclass(frozen=True)
class Ceiling:
    """The answer. The highest level that `holds`, None if none does; the lowest above it that `breaks`, None if
    none was seen to."""

    outcome: Outcome
    holds: float | None
    breaks: float | None


def search(asked: SearchSpec, seen: Sequence[LevelResult]) -> Next | Ceiling:
    """Return the level to try next, or the answer."""
    if not seen:
        return Next(asked.low, Why.FIRST)
    holds, breaks = bracket(seen)
    if len(seen) >= asked.most_levels:
        return Ceiling(Outcome.UNCONFIRMED, holds, breaks)
    # Contradictions are settled before the bracket is narrowed: all later levels depend on them.
    if even := [level for level in sorted({result.level for result in seen}) if _in_balance(seen, level)]:
        return Next(even[-1], Why.BALANCE)
    # Nothing has broken yet: double, up to the highest level.
    if breaks is None:
        assert holds is not None
        if holds < asked.high:
            return Next(min(asked.high, 2 * holds), Why.DOUBLE)
        return Ceiling(Outcome.AT_LEAST, holds, None) if _is_confirmed(seen, holds) else Next(holds, Why.CEILING)
    # Nothing holds: the lowest level decides.
    if holds is None:
        if breaks > asked.low:
            return Next(asked.low, Why.HALVE)
        return Ceiling(Outcome.NONE, None, breaks) if _is_confirmed(seen, breaks) else Next(breaks, Why.ABOVE)
    if between := _middle_of_gap(asked, holds, breaks):
        return Next(between, Why.HALVE)
    if _is_confirmed(seen, breaks) and _is_confirmed(seen, holds) and _recovered_from_overload(seen, holds):
        return Ceiling(Outcome.FOUND, holds, breaks)
    # The ceiling must hold right after an overload, as a slow recovery counts against it.
    overloaded = seen[-1].level > holds and seen[-1].verdict != Verdict.HELD
    return Next(holds, Why.CEILING) if overloaded and _is_confirmed(seen, breaks) else Next(breaks, Why.ABOVE)


def bracket(seen: Sequence[LevelResult]) -> tuple[float | None, float | None]:
    """Return the highest level that holds below all levels that break, and the lowest level that breaks."""
    levels = sorted({result.level for result in seen})
    breaks = next((level for level in levels if _balance(seen, level) <= 0), None)
    held = [level for level in levels if breaks is None or level < breaks]
    return (held[-1] if held else None), breaks


def _balance(seen: Sequence[LevelResult], level: float) -> int:
    """Return the number of times a level held, minus the number of times it broke."""
    return sum(_votes(seen, level))


def _votes(seen: Sequence[LevelResult], level: float) -> Iterator[int]:
    for result in seen:
        if result.level == level:
            yield 1 if result.verdict == Verdict.HELD else -1


def _in_balance(seen: Sequence[LevelResult], level: float) -> bool:
    votes = list(_votes(seen, level))
    return sum(votes) == 0 and len(votes) < CEILING_VISITS


def _is_confirmed(seen: Sequence[LevelResult], level: float) -> bool:
    """Return True if one outcome of a level outnumbers the other by the required margin."""
    votes = list(_votes(seen, level))
    return abs(sum(votes)) >= CEILING_CONFIRMED or len(votes) >= CEILING_VISITS


def _recovered_from_overload(seen: Sequence[LevelResult], level: float) -> bool:
    """Return True if a level has held right after a higher one had broken."""
    return any(
        then.level == level < result.level and then.verdict == Verdict.HELD != result.verdict
        for result, then in pairwise(seen)
    )


def _middle_of_gap(asked: SearchSpec, holds: float, breaks: float) -> float | None:
    """Return the middle of a gap that is wider than the tolerance; None if no level is in it."""
    if breaks <= holds * (1 + asked.tolerance):
        return None
    middle = math.sqrt(holds * breaks)
    level = float(round(middle)) if asked.whole else float(f"{middle:.3g}")
    return level if holds < level < breaks else None


# The test whether something stays within a limit: a share of transactions, or the mean time of reads.
#
# Both are ratios of sums over seconds: slow transactions to all, stalls to reads. Neighbouring transactions resemble
# each other, so the variation is estimated from batches of seconds, not from single transactions.


@dataclass(frozen=True)
class WithinLimit:
    """The outcome: a ratio with its interval, None if too little was seen, against the limit."""

    value: float | None
    low: float | None
    high: float | None
    limit: float
    total: float  # number of transactions or reads
    verdict: Verdict

    def figures(self) -> dict[str, Any]:
        """Return it in the words of a record's limit."""
        words = {"limit": self.limit, "value": self.value, "low": self.low, "high": self.high}
        return words | {"seen": self.total, "verdict": self.verdict.value}


def enough(allowed: float) -> int:
    """Return the number of transactions that a percentile needs if a share `allowed` of the transactions may exceed
    it."""
    return round(SAMPLES_BEYOND / allowed)


def judge(parts: Sequence[float], wholes: Sequence[float], limit: float, fewest: float = 1) -> WithinLimit:
    """Judge Σ parts ÷ Σ wholes, second by second, against a limit. Fewer than `fewest` wholes decide nothing."""
    a, b = (_batches(np.asarray(series, dtype=float)) for series in (parts, wholes))
    part, whole = float(a.sum()), float(b.sum())
    if whole < fewest or len(a) < 2:
        return WithinLimit(None, None, None, limit, whole, Verdict.UNDECIDED)
    value = part / whole
    off = a - value * b
    error = float(np.sqrt((off**2).sum() * len(a) / (len(a) - 1))) / whole
    reach = float(scipy.special.stdtrit(len(a) - 1, (1 + CONFIDENCE) / 2)) * error
    low, high = max(0.0, value - reach), value + reach
    verdict = Verdict.BROKE if low > limit else Verdict.HELD if high < limit else Verdict.UNDECIDED
    return WithinLimit(value, low, high, limit, whole, verdict)


def _batches(series: np.ndarray) -> np.ndarray:
    """Return the sums of batches of seconds, of equal length as far as whole seconds allow."""
    return np.array([batch.sum() for batch in np.array_split(series, min(CEILING_BATCHES, max(1, len(series))))])
