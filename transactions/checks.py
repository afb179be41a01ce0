"""Checks of a database: whether it has all its keys, and whether the consistency conditions of its workload hold."""

import re
import time
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from typing import Any

from stallmark.engines.base import Engine
from stallmark.errors import CallFailed, ErrorClass
from stallmark.schema import deploy
from stallmark.schema.ddl import ddl_of, defects
from stallmark.transactions.workload import Condition, Workload

EXAMPLES = 3
AT_ONCE = 4
KEYS = "all keys, indexes and foreign keys are there and trusted"


@dataclass(frozen=True)
class ConditionResult:
    """The result of one condition on one database."""

    name: str
    statistical: bool
    cost: str
    holds: bool | None
    """None if the server refused the condition, or if it was skipped, as it holds only for a database as loaded."""
    offending: int
    """The number of offending rows, or of the things in `counted`."""
    seconds: float
    detail: str
    """The first offending rows."""
    counted: str = "rows"
    refused: str = ""
    """The server's message if it refused the condition."""


def run(
    engine: Engine, workload: Workload, scale: Mapping[str, Any], *, driven: bool, scans: bool = True
) -> list[ConditionResult]:
    """Evaluate the conditions in order; without `scans` only those that read little. `driven` is true if transactions
    have run since the load, as the ledger records.

    No session may write meanwhile: each condition is one statement, and together they do not share a snapshot. Several
    are under way at once, because each waits for its reads.
    """
    several = len(workload.parts) > 1

    def find(part: Workload, condition: Condition) -> ConditionResult:
        if several:
            condition = replace(condition, name=f"{part.name}: {condition.name}")
        if driven and condition.fresh_only:
            return ConditionResult(condition.name, condition.statistical, condition.cost, None, 0, 0.0, "")
        # A user's condition names no numbers, and a colon in it may mean something else.
        sql = condition.sql if part.is_given else with_numbers(condition.sql, part.numbers(scale))
        return _evaluate(engine.database_of(part.name), condition, sql)

    chosen = [(part, c) for part in workload.parts for c in part.conditions if scans or c.cost != "scan"]
    with ThreadPoolExecutor(AT_ONCE) as pool:
        return list(pool.map(find, *zip(*chosen, strict=True))) if chosen else []


def keys(engine: Engine, workload: Workload) -> ConditionResult:
    """Check that the database has all keys, indexes and foreign keys. Rows fulfil the conditions without them too, but
    calls then take other access paths."""
    started = time.monotonic()
    defects = [defect for part in workload.parts for defect in _defects(engine.database_of(part.name), part)]
    seconds = time.monotonic() - started
    detail = _first(defects[:EXAMPLES], len(defects))
    return ConditionResult(KEYS, False, "cheap", not defects, len(defects), round(seconds, 3), detail, "defects")


def _defects(engine: Engine, workload: Workload) -> Iterator[str]:
    ddl = ddl_of(workload.metadata)
    for schema in deploy.schemas_of(workload.metadata):
        yield from defects(engine, schema, [*ddl.keys, *ddl.foreign_keys])


def with_numbers(sql: str, numbers: Mapping[str, int]) -> str:
    """Return the text with a number for each `:name` in it."""
    return re.sub(r"(?<!:):([a-z_]+)", lambda match: str(numbers[match[1]]), sql)


def counting_query(sql: str) -> str:
    """Return the query that counts the rows of a condition and shows the first."""
    # Ordered and cut in the only words both engines know; the window counts before the cut.
    return (
        f"SELECT COUNT(*) OVER () AS offending_rows, offending.* FROM (\n{sql}\n) AS offending "
        f"ORDER BY 2 OFFSET 0 ROWS FETCH FIRST {EXAMPLES} ROWS ONLY"
    )


def _evaluate(engine: Engine, condition: Condition, sql: str) -> ConditionResult:
    started = time.monotonic()
    try:
        with engine.reading_cursor() as cursor:
            cursor.execute(counting_query(sql))
            rows = cursor.fetchall()
            columns = [column[0] for column in cursor.description][1:]
    except CallFailed as error:
        if error.kind is ErrorClass.CONNECTION_LOST or error.kind.fatal:
            raise
        took = round(time.monotonic() - started, 3)
        about = condition.name, condition.statistical, condition.cost
        return ConditionResult(*about, None, 0, took, "", refused=str(error))
    seconds = time.monotonic() - started
    offending = rows[0][0] if rows else 0
    shown = ["; ".join(f"{c} {v}" for c, v in zip(columns, row[1:], strict=True)) for row in rows]
    return ConditionResult(
        condition.name,
        condition.statistical,
        condition.cost,
        not rows,
        offending,
        round(seconds, 3),
        _first(shown, offending),
    )


def _first(shown: Sequence[str], total: int) -> str:
    return " | ".join(shown) + (f" … and {total - len(shown)} more" if total > len(shown) else "")
