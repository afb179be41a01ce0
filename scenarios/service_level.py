"""The service level of a scenario: how long a read and a transaction may take. The time of reads is judged by
analysis/validity/service_level.py, that of transactions as thresholds are."""

from collections.abc import Iterator
from typing import Annotated, Literal

from pydantic import AfterValidator, Field, Tag

from stallmark.analysis.read.latency import PERCENTILES as SHARE_OF
from stallmark.analysis.thresholds import parse_threshold
from stallmark.analysis.validity.service_level import PERCENTILES, declared
from stallmark.quantities import Seconds
from stallmark.record.manifest.storage import ServiceLevelObjective
from stallmark.scenarios.section import MAPPING, WORD, Section, WordOrMapping


def _percentile_below(text: str) -> str:
    rule = parse_threshold(text)
    if rule.metric not in SHARE_OF or rule.sign not in ("<", "<="):
        raise ValueError(
            f"{text!r} is no service level of transactions: write a percentile and its limit, as p95 < 50ms or "
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


def described(choice: ServiceLevelChoice) -> ServiceLevelObjective:
    """Return the service level for the manifest."""
    if isinstance(choice, str):
        return declared(choice, None, PERCENTILES[0])
    read_ms = None if choice.read is None else choice.read * 1000
    return declared(None, read_ms, choice.percentile).changed(transactions=tuple(choice.transactions))


def transactions_of(choice: ServiceLevelChoice | None) -> list[str]:
    """Return the limits on transactions."""
    return choice.transactions if isinstance(choice, OwnLevel) else []
