"""Queries of a decision-support workload: a session that executes one after the other and says what each did.

What a server does not tell is None: nobody guesses in its place.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import ClassVar, Protocol

PAGE_BYTES = 8192


@dataclass(frozen=True)
class Answer:
    """The answer as it came. `plan`: as the server wrote it, with what its execution did where that stands in it; None
    where it sent none. `rows` are those of the answer; None where only the plan knows. `noted`: what the server noted
    of the execution beside the plan."""

    rows: int | None
    plan: str | None
    noted: "Measures | None" = None


@dataclass(frozen=True)
class Measures:
    """Measures of one execution, over all its parallel workers."""

    rows: int | None = None
    logical_reads: int | None = None  # pages requested, in the pool or not
    physical_reads: int | None = None  # pages that were not in the pool, read ahead or not
    read_bytes: int | None = None  # the same in bytes
    spill_bytes: int | None = None  # written to temporary files
    grant_kib: int | None = None  # memory the server set aside for it
    cpu_ms: float | None = None
    actual_dop: int | None = None  # 1: nothing ran in parallel
    wait_ms: Mapping[str, float] | None = None  # by what was waited for, as the server calls it
    plan_hash: str | None = None  # of the plan's shape: operators, tables and indexes


class QuerySession(Protocol):
    """A connection for queries, one at a time. Each is one statement, and changes nothing."""

    plan_suffix: ClassVar[str]
    """Of the files that plans are kept in."""

    limited: str | None
    """A sentence on what it cannot tell of a query here and why; final after the first execution."""

    def set_dop(self, dop: int | None) -> None:
        """Let at most so many work on a query at once; None: as the server is set. Do nothing where that stands
        in the text of the query."""

    def execute(self, text: str) -> Answer:
        """Execute a query and take its whole answer. Raises CallFailed; TIMEOUT after the session's timeout."""

    def with_notes(self, answer: Answer) -> Answer:
        """Return the last execution's answer with what the server noted of it, asked before the next one. It is
        not timed."""
        return answer

    def measures(self, answer: Answer) -> Measures:
        """Return the measures of an answer. Pure; takes milliseconds where plans are large."""

    def cancel(self) -> None:
        """Ask the server to give up the query under way; from any thread."""

    def close(self) -> None: ...
