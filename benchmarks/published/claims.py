"""A claim of a publication beside what was measured here."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass


@dataclass(frozen=True)
class Claim:
    """A claim. `holds`: None if it cannot be shown here. `why`: the reason if it does not hold or cannot be shown."""

    text: str
    theirs: str
    ours: str
    holds: bool | None
    why: str = ""

    @property
    def verdict(self) -> str:
        return {True: "yes", False: "no", None: "cannot be shown"}[self.holds]


def table(claims: Sequence[Claim]) -> Iterator[str]:
    """Yield the lines of a Markdown table."""
    yield "| claim | theirs | ours | holds | if not, why |"
    yield "|---|---|---|---|---|"
    for claim in claims:
        yield f"| {claim.text} | {claim.theirs} | {claim.ours} | {claim.verdict} | {claim.why} |"


def rising(values: Sequence[float]) -> bool:
    return all(lower < higher for lower, higher in zip(values, values[1:], strict=False))
