"""The tables of each database, their physical design, and the order of deployment.

Here: the name of several workloads on one server. "bank+mail" are in one database, "bank,mail" in a database each.
"""

import re
from collections.abc import Iterable, Sequence

TOGETHER, APART = "+", ","


def parts_of(name: str) -> list[str]:
    """Return the names of the workloads in a name."""
    return re.split(r"[+,]", name)


def are_apart(name: str) -> bool:
    """Return True if each workload in a name has its own database."""
    return APART in name


def joined(parts: Iterable[str], *, apart: bool = False) -> str:
    """Return the canonical name of workloads in any order."""
    return (APART if apart else TOGETHER).join(sorted(parts))


def versions_in(version: int, parts: int) -> list[int]:
    """Return the versions of `parts` workloads from the one number that `version_of` made."""
    return [version // 100**place % 100 for place in reversed(range(parts))]


def version_of(parts: Sequence[int]) -> int:
    """Return the one version of workloads with these: it changes with each. That of a user's data has six digits, so
    the whole is cut to what a column of a database takes."""
    version = 0
    for part in parts:
        version = 100 * version + part
    return version % 10**9
