"""Holds a server's answers to the warehouse's queries against an independent database's, as findings of a check."""

import time
from collections.abc import Iterator

from stallmark.engines.base import Engine
from stallmark.errors import StallmarkError
from stallmark.scenarios.model import WorkloadChoice
from stallmark.transactions.checks import EXAMPLES, ConditionResult
from stallmark.transactions.warehouse.oracle import validate


def answers(engine: Engine, choice: WorkloadChoice) -> Iterator[ConditionResult]:
    """One for each query. Raises StallmarkError for a database that has none, and where the other one is missing."""
    if choice.name != "warehouse":
        raise StallmarkError(f"{choice.name} has no queries whose answers are known: leave out --answers.")
    began = time.monotonic()
    for query, differences in validate(engine, choice.scale["factor"]):
        ended = time.monotonic()
        yield ConditionResult(
            name=f"Q{query} answers as DuckDB does",
            statistical=False,
            cost="scan",
            holds=not differences,
            offending=len(differences),
            seconds=round(ended - began, 3),
            detail=" | ".join(differences[:EXAMPLES]),
            counted="differences",
        )
        began = ended
