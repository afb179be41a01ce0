"""The search for a ceiling in the manifest of a run: what was asked, each level that was tried, and the answer."""

from typing import Literal

from stallmark.record.manifest.part import ManifestPart

Verdict = Literal["held", "broke", "undecided"]


class LimitSeen(ManifestPart):
    """One limit of the service level, and what was seen of it at one level.

    Of reads, `value` is their mean time in ms, of `seen` reads of all data files; of transactions it is the share of
    `seen` that took longer than `limit_ms`. `low` to `high` is its interval (95 %). All are null where too little was
    seen. `limit` is in the unit of `value`. `verdict` is undecided where the interval holds the limit."""

    of: Literal["reads", "transactions"]
    transaction: str | None = None
    percentile: str | None = None
    limit_ms: float
    limit: float
    value: float | None = None
    low: float | None = None
    high: float | None = None
    seen: float
    verdict: Verdict


class LevelSeen(ManifestPart):
    """The level of a step of a search: `level` users, transactions due per second, or times the load. `tried` is why it
    was chosen. `verdict` goes by the values where intervals leave it open; it is undecided where too little was seen.
    `backlog`: it ended early, as ever more arrivals waited; where these were queries, `behind` names their loads."""

    level: float
    tried: Literal["first", "double", "halve", "above", "ceiling", "balance"]
    verdict: Verdict
    backlog: bool = False
    behind: tuple[str, ...] = ()
    limits: tuple[LimitSeen, ...] = ()


class Search(ManifestPart):
    """The search of a load, by its name, or of all whose transactions arrive at a rate (`load` is null), from level
    `low` to `high`. The answer, null until it is known: the highest
    level that `holds`, null where none does, and the lowest above it that `breaks`, null where none was seen to."""

    load: str | None
    of: Literal["users", "rate", "load"]
    low: float
    high: float
    tolerance: float
    outcome: Literal["found", "at_least", "none", "unconfirmed"] | None = None
    holds: float | None = None
    breaks: float | None = None
