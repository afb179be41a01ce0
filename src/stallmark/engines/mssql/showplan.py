"""The shape of a plan of SQL Server (Microsoft, showplanxml.xsd)."""

import hashlib
import json
from typing import Any
from xml.etree import ElementTree

_NAMESPACE = "{http://schemas.microsoft.com/sqlserver/2004/07/showplan}"


def plan_hash(xml: str) -> str:
    """Return a hash of operators, tables and indexes alone: the same on every version and for all parameters. Raise
    ValueError for what is no plan."""
    try:
        plan = ElementTree.fromstring(xml)
    except ElementTree.ParseError as error:
        raise ValueError(f"not a plan: {error}") from None
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
