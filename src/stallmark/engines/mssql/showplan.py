"""Measures of an execution, from SQL Server's actual plan (SET STATISTICS XML).

Source of the names: Microsoft, showplanxml.xsd. Attributes that a version does not write are None here.
"""

import hashlib
import json
from collections.abc import Iterable, Iterator
from typing import Any
from xml.etree import ElementTree

from stallmark.engines.queries import PAGE_BYTES, Measures

_NAMESPACE = "{http://schemas.microsoft.com/sqlserver/2004/07/showplan}"
_LOGICAL = ("ActualLogicalReads", "ActualLobLogicalReads")
# Pages that are read ahead are not in the first count; columnstore segments are in the last two.
_PHYSICAL = ("ActualPhysicalReads", "ActualReadAheads", "ActualLobPhysicalReads", "ActualLobReadAheads")
_SPILLS = ("SortSpillDetails", "HashSpillDetails", "ExchangeSpillDetails")


def measures(xml: str, rows: int | None) -> Measures:
    """Return the measures in a plan as the server sent it. Raise ValueError when it is none."""
    try:
        plan = ElementTree.fromstring(xml)
    except ElementTree.ParseError as error:
        raise ValueError(f"not a plan: {error}") from None
    counters = list(_all(plan, "RunTimeCountersPerThread"))
    physical = _sum(counters, _PHYSICAL)
    grant, times = _first(plan, "MemoryGrantInfo"), _first(plan, "QueryTimeStats")
    dop = _number(_first(plan, "QueryPlan"), "DegreeOfParallelism")
    return Measures(
        rows=rows,
        logical_reads=_sum(counters, _LOGICAL),
        physical_reads=physical,
        read_bytes=None if physical is None else physical * PAGE_BYTES,
        spill_bytes=_spilled(plan),
        grant_kib=_number(grant, "GrantedMemory"),
        cpu_ms=_number(times, "CpuTime"),
        actual_dop=None if dop is None else max(1, dop),  # 0 where the plan cannot be parallel
        wait_ms=_waits(plan),
        plan_hash=plan_hash(plan),
    )


def plan_hash(plan: ElementTree.Element) -> str:
    """Return a hash of operators, tables and indexes alone: the same on every version and for all parameters."""
    return hashlib.sha256(json.dumps(_shape(plan)).encode()).hexdigest()[:12]


def _shape(element: ElementTree.Element) -> list[Any]:
    """Operators lie within others at any depth, and an operator's tables above those of the next one."""
    found: list[Any] = []
    for child in element:
        name = child.tag.removeprefix(_NAMESPACE)
        if name == "RelOp":
            own = [child.get(part) for part in ("PhysicalOp", "LogicalOp", "Parallel")]
            found.append([own, _shape(child)])
        elif name == "Object":
            found.append([child.get(part) for part in ("Table", "Index", "Alias")])
        else:
            found += _shape(child)
    return found


def _spilled(plan: ElementTree.Element) -> int | None:
    """Return the bytes that spilled to tempdb: 0 where none did, None where an older version says that some did and not
    how much."""
    details = [element for name in _SPILLS for element in _all(plan, name)]
    if not details:
        return None if any(True for _ in _all(plan, "SpillToTempDb")) else 0
    pages = _sum(details, ("WritesToTempDb",))
    return None if pages is None else pages * PAGE_BYTES


def _waits(plan: ElementTree.Element) -> dict[str, float] | None:
    """Return the ten longest waits in ms; None from a server that does not say (before 2016 SP1)."""
    if _first(plan, "QueryTimeStats") is None and _first(plan, "WaitStats") is None:
        return None
    waits: dict[str, float] = {}
    for wait in _all(plan, "Wait"):
        kind = wait.get("WaitType") or "?"
        waits[kind] = waits.get(kind, 0.0) + float(wait.get("WaitTimeMs") or 0)
    return {kind: ms for kind, ms in waits.items() if ms}


def _sum(elements: Iterable[ElementTree.Element], names: Iterable[str]) -> int | None:
    """Return the sum of these attributes; None when no element has one."""
    names = tuple(names)
    known = [int(value) for one in elements for name in names if (value := one.get(name)) is not None]
    return sum(known) if known else None


def _number(element: ElementTree.Element | None, name: str) -> int | None:
    value = None if element is None else element.get(name)
    return None if value is None else int(value)


def _first(plan: ElementTree.Element, name: str) -> ElementTree.Element | None:
    return next(_all(plan, name), None)


def _all(plan: ElementTree.Element, name: str) -> Iterator[ElementTree.Element]:
    return plan.iter(f"{_NAMESPACE}{name}")
