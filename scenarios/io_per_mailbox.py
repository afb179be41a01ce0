"""The I/Os of data files per mailbox and second that the rate of a load of mail is steered to (`profile`)."""

from collections.abc import Mapping
from typing import Annotated, Any, Literal

from pydantic import Field, Tag

from stallmark.scenarios.section import MAPPING, WORD, Section, WordOrMapping
from stallmark.transactions import find_workload

IOs = Annotated[float, Field(gt=0, le=1_000, allow_inf_nan=False)]
SHORTEST_S = 30.0
"""The shortest warm-up in which a rate can be steered to anything."""


class IoPerMailbox(Section):
    """I/Os per mailbox and second, and how operations arrive: `{iops: 0.12, arrivals: fixed}`."""

    iops: IOs
    """Reads and writes of data files for each mailbox and second."""
    arrivals: Literal["fixed", "poisson"] = "poisson"
    """How arrivals are spread: evenly (`fixed`), or at random (`poisson`)."""


IoPerMailboxChoice = Annotated[Annotated[IOs, Tag(WORD)] | Annotated[IoPerMailbox, Tag(MAPPING)], WordOrMapping]


def written_out(choice: float | IoPerMailbox) -> IoPerMailbox:
    return choice if isinstance(choice, IoPerMailbox) else IoPerMailbox(iops=choice)


def mailboxes(workload: str, scale: Mapping[str, Any]) -> int:
    """Return how many there are. Raise ValueError where a load of this workload has none."""
    if measure := find_workload(workload).users.steered_per:
        return int(scale[measure])
    raise ValueError(
        f"profile says I/Os per mailbox and second, and {workload} has no mailboxes: remove it, or let workload be mail"
    )
