"""The rule by which `stallmark report` fails in CI: `--fail-if "enough above 4GiB"`.

It is judged by the finding on the curve of memory. Where no size is shown to be enough, it fails as well: a limit on
memory is kept by runs that show it, not by runs that cannot.
"""

import re
from collections.abc import Sequence
from dataclasses import dataclass

from stallmark.analysis.finding import Finding
from stallmark.analysis.pool_curve.findings import CurveKind
from stallmark.errors import StallmarkError
from stallmark.format import size
from stallmark.quantities import parse_size

_RULE = re.compile(r"\s*enough\s+above\s+(\S.*?)\s*", re.IGNORECASE)
EXAMPLE = "write enough above 4GiB"


@dataclass(frozen=True)
class EnoughRule:
    """`most_bytes`: the memory that must be enough."""

    most_bytes: int

    @classmethod
    def parse(cls, text: str) -> "EnoughRule":
        found = _RULE.fullmatch(text)
        try:
            most_bytes = parse_size(found.group(1)) if found else 0
        except ValueError as error:
            raise StallmarkError(f"--fail-if {text!r}: {error}.") from None
        if not most_bytes:
            raise StallmarkError(f"--fail-if {text!r} is not understood: {EXAMPLE}.")
        return cls(most_bytes)

    def reason(self, findings: Sequence[Finding]) -> str | None:
        """Return why CI must fail; None where it need not."""
        enough = [one.facts["pool_bytes"] for one in findings if one.kind is CurveKind.ENOUGH]
        if not enough:
            return "no size of the buffer pool is shown to be enough"
        if max(enough) > self.most_bytes:
            return f"{size(max(enough))} is enough, which is above {size(self.most_bytes)}"
        return None
