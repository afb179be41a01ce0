"""The rule by which `stallmark report` fails in CI: `--fail-if "ceiling below 200 users"`, "below 500 per second", or
"below 1.5 times the load".

It is judged by what every run that searched for a ceiling found. Where a search found none, it fails as well: a load is
carried by runs that show it, not by runs that cannot.
"""

import re
from collections.abc import Sequence
from dataclasses import dataclass

from stallmark.analysis.ceiling.findings import ANSWERS, CeilingKind
from stallmark.analysis.finding import Finding
from stallmark.errors import StallmarkError
from stallmark.report.text.ceiling import level

_RULE = re.compile(r"\s*ceiling\s+below\s+(\d+(?:\.\d+)?)\s+(users?|per\s+second|times\s+the\s+load)\s*", re.IGNORECASE)
EXAMPLE = "write ceiling below 200 users, ceiling below 500 per second, or ceiling below 1.5 times the load"
_OF = {"u": "users", "p": "rate", "t": "load"}
_OF_A_RUN = tuple(kind for kind in ANSWERS if kind not in (CeilingKind.REPEATS, CeilingKind.RATIO))


@dataclass(frozen=True)
class CeilingRule:
    """`least`: the users, the rate, or the multiple of the load, that must be carried."""

    least: float
    of: str

    @classmethod
    def parse(cls, text: str) -> "CeilingRule":
        if not (found := _RULE.fullmatch(text)):
            raise StallmarkError(f"--fail-if {text!r} is not understood: {EXAMPLE}.")
        return cls(float(found.group(1)), _OF[found.group(2)[0].lower()])

    def reason(self, findings: Sequence[Finding]) -> str | None:
        """Return why CI must fail; None where it need not."""
        found = [one for one in findings if one.kind in _OF_A_RUN]
        if not found:
            return "no run searched for a ceiling"
        if unlike := next((one.facts["of"] for one in found if one.facts["of"] != self.of), None):
            return f"the ceiling is one of {unlike}, and the rule is of {self.of}"
        if any(one.kind not in (CeilingKind.FOUND, CeilingKind.AT_LEAST, CeilingKind.NONE) for one in found):
            return "a search found no ceiling"
        lowest = min(one.facts["holds"] or 0.0 for one in found)
        if lowest < self.least:
            carried = f"{level(self.of, lowest)} are carried" if lowest else "the lowest level is not carried"
            return f"{carried}, which is below {level(self.of, self.least)}"
        return None
