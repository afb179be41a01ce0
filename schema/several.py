"""The name of several workloads on one server: "bank+mail" are in one database, "bank,mail" in a database each."""

import re
from collections.abc import Iterable, Sequence

TOGETHER, APART = "+", ","


def parts_of(name: str) -> list[str]:
    """Return the names of the workloads in a name."""
    return re.split(r"[+,]", name)


def are_apart(name: str) -> bool:
    """Return whether each of the workloads in a name has a database of its own."""
    return APART in name


def joined(parts: Iterable[str], *, apart: bool = False) -> str:
    """Return the one name of these workloads, whatever order they come in."""
    return (APART if apart else TOGETHER).join(sorted(parts))


def versions_in(version: int, parts: int) -> list[int]:
    """Return the versions of so many workloads, of which `version_of` made one."""
    return [version // 100**place % 100 for place in reversed(range(parts))]


def version_of(parts: Sequence[int]) -> int:
    """Return the one version of workloads with these: it changes with each. That of a user's data has six digits, so
    the whole is cut to what a column of a database takes."""
    version = 0
    for part in parts:
        version = 100 * version + part
    return version % 10**9
