"""The rule by which `stallmark compare` fails in CI: `--fail-if "worse by 5 %"`.

    worse                 B is worse than the baseline
    worse by 5 %          … and by 5 % or more
    not better            B is not better
    not better by 10 %    … or by less than 10 %

It is judged by the verdict and its estimate, of every pair compared. A comparison that cannot be made fails always.
"""

import re
from dataclasses import dataclass

from stallmark.analysis.compare.summary import ComparisonSummary, PairComparison, Verdict
from stallmark.errors import StallmarkError
from stallmark.report.text.terms import term

_RULE = re.compile(r"\s*(not\s+)?(better|worse)(?:\s+by\s+(\d+(?:\.\d+)?)\s*%)?\s*", re.IGNORECASE)

EXAMPLE = "write worse, worse by 5 %, not better, or not better by 10 %"


@dataclass(frozen=True)
class FailIf:
    """`least` is a share: 0.05 for 5 %."""

    word: Verdict  # better or worse
    negated: bool
    least: float

    @classmethod
    def parse(cls, text: str) -> "FailIf":
        if not (found := _RULE.fullmatch(text)):
            raise StallmarkError(f"--fail-if {text!r} is not understood: {EXAMPLE}.")
        negated, word, least = found.groups()
        return cls(Verdict(word.lower()), bool(negated), float(least or 0) / 100)

    def reasons(self, comparison: ComparisonSummary) -> list[str]:
        """Return why CI must fail; empty where it need not."""
        compared = {name for pair in comparison.pairs for name in (pair.a, pair.b)}
        alone = [side.name for side in comparison.sides if side.name not in compared]
        return [*filter(None, map(self._reason, comparison.pairs)), *(f"{name} was not compared" for name in alone)]

    def _reason(self, pair: PairComparison) -> str | None:
        if pair.verdict in (Verdict.NOT_COMPARABLE, Verdict.INDICATIVE):
            return f"{pair.b} against {pair.a}: no verdict ({term(pair.verdict)})"
        holds = pair.verdict == self.word and self._amount(pair) >= self.least
        if holds == self.negated:
            return None
        return f"{pair.b} against {pair.a} is {self}"

    def doubt(self, pair: PairComparison) -> str | None:
        """Return a sentence where nothing was shown, and these runs could not have shown what is asked."""
        could = pair.primary.detectable
        if pair.verdict != Verdict.NO_DIFFERENCE or could is None or not self.least or could <= self.least:
            return None
        return (
            f"{pair.b} against {pair.a}: these runs can only show {could * 100:.2g} % or more, and --fail-if asks for "
            f"{self.least * 100:g} %: make more (`stallmark plan` says how many)."
        )

    def _amount(self, pair: PairComparison) -> float:
        """Return the estimated difference, as the verdict gives it."""
        return abs(pair.primary.ratio - 1) if pair.primary.ratio is not None else 0.0

    def __str__(self) -> str:
        by = f" by {self.least * 100:g} %" if self.least else ""
        return f"{'not ' if self.negated else ''}{self.word}{by}"
