"""The caution on a brokerage whose history of trades is too short to judge memory or flash by."""

from collections.abc import Iterator, Sequence
from typing import Literal

from stallmark.analysis.compare.settings import one_pool
from stallmark.analysis.finding import Finding, Kind, caution
from stallmark.analysis.points import group
from stallmark.record.devices import flash_of
from stallmark.record.manifest import Manifest
from stallmark.record.manifest.workload import TradeHistory, trade_history
from stallmark.stats.thresholds import DEEP_BYTES, DEEP_CUSTOMERS, SHALLOW_DAYS

Varied = Literal["memory", "flash"]


class HistoryKind(Kind):
    SHALLOW = "shallow_history"


def shallow_histories(manifests: Sequence[Manifest]) -> Iterator[Finding]:
    """Yield a caution for each scale on which memory or flash was varied and the history is too short for it."""
    for same in group(manifests, _history):
        if found := shallow_history(_history(same[0]), _varied(same), same[0].server.product):
            yield found


def shallow_history(history: TradeHistory | None, varied: Sequence[Varied], product: str) -> Finding | None:
    """Return the caution, or None if the history is deep enough, or nothing is `varied` that is judged by it."""
    if history is None or history.days >= SHALLOW_DAYS or not varied:
        return None
    return caution(
        HistoryKind.SHALLOW,
        customers=history.customers,
        days=history.days,
        trades_per_account=history.trades_per_account,
        varied=list(varied),
        least_days=SHALLOW_DAYS,
        with_customers=DEEP_CUSTOMERS,
        least_bytes=DEEP_BYTES.get(product),
    )


def _history(manifest: Manifest) -> TradeHistory | None:
    return trade_history(manifest.workload.name, manifest.workload.scale)


def _varied(manifests: Sequence[Manifest]) -> list[Varied]:
    first, *others = manifests
    # Of a curve of memory there may be one size so far.
    memory = isinstance(first.scenario.buffer_pool, dict) or not all(one_pool(first, other) for other in others)
    flash = len({tuple(flash_of(one)) for one in manifests}) > 1
    return [*(["memory"] if memory else []), *(["flash"] if flash else [])]  # type: ignore[list-item]
