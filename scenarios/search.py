"""The search for a ceiling in place of fixed steps, and the service level that it keeps."""

from collections.abc import Iterator
from typing import Annotated, Literal

from pydantic import AfterValidator, ConfigDict, Field, Tag

from stallmark.analysis.read.throughput import PERCENTILES as SHARE_OF
from stallmark.analysis.service_level import PERCENTILES, make_objective
from stallmark.analysis.thresholds import parse_threshold
from stallmark.quantities import Seconds
from stallmark.record.manifest.storage import ServiceLevelObjective
from stallmark.scenarios.section import MAPPING, WORD, Section, WordOrMapping
from stallmark.scenarios.variant import Tolerance
from stallmark.stats.ceiling_search import SearchSpec

# The service level of a scenario: how long a read and a transaction may take. The time of reads is judged by
# analysis/service_level.py, that of transactions as thresholds are.


def _percentile_below(text: str) -> str:
    rule = parse_threshold(text)
    if rule.metric not in SHARE_OF or rule.sign not in ("<", "<="):
        raise ValueError(
            f"{text!r} is not a service level of transactions: write a percentile and its limit, as p95 < 50ms or "
            "trade_order.p99 < 1s"
        )
    return text


class OwnLevel(Section):
    """A limit of one's own, on reads, on transactions, or on both."""

    read: Annotated[Seconds, Field(gt=0)] | None = None
    """The longest that a read may take."""
    percentile: Literal[PERCENTILES] = "p95"  # type: ignore[valid-type]
    """The share of reads that must keep it; the mean where only that is known."""
    transactions: list[Annotated[str, AfterValidator(_percentile_below)]] = []
    """The longest that transactions may take: `p95 < 50ms` of all of them, `trade_order.p99 < 1s` of one type."""

    def mistakes(self) -> Iterator[str]:
        if self.read is None and not self.transactions:
            yield "write a limit: on reads (read: 10ms), on transactions (transactions: [p95 < 50ms])"


ReadyMade = Literal["oltp", "dss", "mail"]
ServiceLevelChoice = Annotated[Annotated[ReadyMade, Tag(WORD)] | Annotated[OwnLevel, Tag(MAPPING)], WordOrMapping]


def objective(choice: ServiceLevelChoice) -> ServiceLevelObjective:
    """Return the service level for the manifest."""
    if isinstance(choice, str):
        return make_objective(choice, None, PERCENTILES[0])
    read_ms = None if choice.read is None else choice.read * 1000
    return make_objective(None, read_ms, choice.percentile).changed(transactions=tuple(choice.transactions))


def transactions_of(choice: ServiceLevelChoice | None) -> list[str]:
    """Return the limits on transactions."""
    return choice.transactions if isinstance(choice, OwnLevel) else []


# The search for a ceiling in place of fixed steps: `search: {of: users, from: 10, to: 400, tolerance: 5 %}`.

MOST_USERS = 10_000
Level = Annotated[float, Field(gt=0, allow_inf_nan=False)]


class Search(Section):
    """The highest number of users, or the highest rate of arrivals, at which the service level (`slo`) holds. A run
    then has a step for each level that is tried: it doubles, and halves the gap that is left."""

    model_config = ConfigDict(validate_by_name=True, serialize_by_alias=True)

    of: Literal["users", "rate", "load"]
    """The quantity to search: `users`; the arrival `rate` of transactions per second; or, with `loads`, the `load`: a
    multiple of all rates, of transactions and queries."""
    from_: Annotated[Level, Field(alias="from")]
    """The level that is tried first."""
    to: Level
    """The highest level that is tried."""
    tolerance: Tolerance = 0.05
    """The maximum distance, at the end, between the highest level that holds and the lowest that breaks."""

    def mistakes(self) -> Iterator[str]:
        if self.from_ > self.to:
            yield f"from {self.from_:g} is above to {self.to:g}: a search goes upwards"
        if self.of == "users" and not (self.from_.is_integer() and self.to.is_integer() and self.to <= MOST_USERS):
            yield f"users come in whole numbers up to {MOST_USERS:,}: change from or to"

    def spec(self) -> SearchSpec:
        return SearchSpec(self.from_, self.to, self.tolerance, whole=self.of == "users", multiple=self.of == "load")
