"""The sentences about a ceiling: the load that was searched for, at which the service level holds."""

from stallmark.stats.ceiling_search import Verdict

_VERDICTS = {
    Verdict.HELD: "held",
    Verdict.BROKE: "broke the service level",
    Verdict.UNDECIDED: "too close to the service level to tell",
}


def level_verdict(verdict: Verdict) -> str:
    """Return the verdict on a level in words."""
    return _VERDICTS[verdict]
