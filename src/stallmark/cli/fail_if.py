"""The rule by which `stallmark compare` fails in CI: `--fail-if "worse by 5 %"`.

    worse                 B is worse than the baseline
    worse by 5 %          … and by 5 % or more
    not better            B is not better
    not better by 10 %    … or by less than 10 %
    not within 5 %        B differs from the baseline by more than 5 %, either way

It is judged by the verdict and its estimate, of every pair compared; `within` by the whole interval of the difference.
A comparison that cannot be made fails always. Runs that cannot tell whether the rule applies are inconclusive, which
has an exit code of its own: a gate that sees nothing must not pass.
"""

import re
from collections.abc import Iterator
from dataclasses import dataclass

from stallmark.analysis.compare.summary import ComparisonSummary, PairComparison, Verdict
from stallmark.errors import StallmarkError
from stallmark.format import short
from stallmark.report.text.terms import term

_AMOUNT = r"(\d+(?:\.\d+)?)\s*%\s*"
_RULE = re.compile(rf"\s*(not\s+)?(better|worse)(?:\s+by\s+{_AMOUNT})?\s*", re.IGNORECASE)
_WITHIN = re.compile(rf"\s*not\s+within\s+{_AMOUNT}", re.IGNORECASE)

EXAMPLE = "write worse, worse by 5 %, not better, not better by 10 %, or not within 5 %"


@dataclass(frozen=True)
class FailIf:
    """`least` is a share: 0.05 for 5 %."""

    word: Verdict | None  # better or worse; None: within
    negated: bool
    least: float

    @classmethod
    def parse(cls, text: str) -> "FailIf":
        if found := _WITHIN.fullmatch(text):
            return cls(None, True, float(found[1]) / 100)
        if not (found := _RULE.fullmatch(text)):
            raise StallmarkError(f"--fail-if {text!r} is not understood: {EXAMPLE}.")
        negated, word, least = found.groups()
        return cls(Verdict(word.lower()), bool(negated), float(least or 0) / 100)

    def reasons(self, comparison: ComparisonSummary) -> list[str]:
        """Return why CI must fail; empty where it need not."""
        compared = {name for pair in comparison.pairs for name in (pair.a, pair.b)}
        alone = [side.name for side in comparison.sides if side.name not in compared]
        return [*filter(None, map(self._reason, comparison.pairs)), *(f"{name} was not compared" for name in alone)]

    def doubts(self, comparison: ComparisonSummary) -> list[str]:
        """Return why the runs cannot tell whether CI must fail; empty if they can."""
        return [why for pair in comparison.pairs for why in self._doubt(pair)]

    def _reason(self, pair: PairComparison) -> str | None:
        if not pair.claim.decided:
            return f"{pair.b} against {pair.a}: no verdict ({term(pair.verdict)})"
        if self.word is None:
            low, high = pair.primary.low, pair.primary.high
            applies = low is not None and high is not None and (low > 1 + self.least or high < 1 - self.least)
        else:
            applies = (pair.verdict == self.word and self._amount(pair) >= self.least) != self.negated
        return f"{pair.b} against {pair.a} is {self}" if applies else None

    def _doubt(self, pair: PairComparison) -> Iterator[str]:
        if not pair.claim.decided or self._reason(pair):
            return
        more = "make more runs (`stallmark plan` says how many)"
        if self.word is None:
            low, high = pair.primary.low, pair.primary.high
            if low is None or high is None:
                yield f"{pair.b} against {pair.a}: the interval of the difference is not known"
            elif low < 1 - self.least or high > 1 + self.least:
                yield (
                    f"{pair.b} against {pair.a}: the difference lies between {_signed(low)} and {_signed(high)}, so it "
                    f"is not known to be within {_percent(self.least)}: {more}"
                )
        elif pair.verdict == Verdict.NO_DIFFERENCE and 0 < self.least < (pair.primary.detectable or 0.0):
            yield (
                f"{pair.b} against {pair.a}: these runs can only show {_percent(pair.primary.detectable)} or more, and "
                f"--fail-if asks for {_percent(self.least)}: {more}"
            )

    def _amount(self, pair: PairComparison) -> float:
        """Return the estimated difference, as the verdict gives it."""
        return abs(pair.claim.ratio - 1) if pair.claim.ratio is not None else 0.0

    def __str__(self) -> str:
        if self.word is None:
            return f"not within {_percent(self.least)}"
        by = f" by {_percent(self.least)}" if self.least else ""
        return f"{'not ' if self.negated else ''}{self.word}{by}"


def _percent(share: float | None) -> str:
    return f"{short((share or 0.0) * 100)} %"


def _signed(ratio: float) -> str:
    return f"{'−' if ratio < 1 else '+'}{_percent(abs(ratio - 1))}"
