"""The wording of what a load did that was steered to I/Os per mailbox."""

from typing import Any

from stallmark.analysis.io_per_mailbox import IoPerMailboxKind
from stallmark.format import count, number, quoted, short
from stallmark.report.text import says


@says(IoPerMailboxKind.REACHED)
def _(wanted: float, **measured: Any) -> str:
    return f"{_measured(**measured)}."


@says(IoPerMailboxKind.LIMIT)
def _(wanted: float, limit_ms: float, held: int, **measured: Any) -> str:
    return (
        f"{_measured(**measured)}, and longer than {limit_ms:g} ms with more: as many I/Os are {count(held)} mailboxes "
        f"at {wanted:g} IOPS each."
    )


@says(IoPerMailboxKind.TOO_SLOW)
def _(wanted: float, limit_ms: float, **measured: Any) -> str:
    return (
        f"{_measured(**measured)}, above the limit of {limit_ms:g} ms: this storage does not carry them, and how many "
        "it carries was not measured."
    )


@says(IoPerMailboxKind.UNSERVED)
def _(wanted: float, **measured: Any) -> str:
    return (
        f"{_measured(**measured)}: {wanted:g} IOPS each were not reached, because operations were asked for and "
        "not done; use more users, or look for what they wait for."
    )


@says(IoPerMailboxKind.ALONE)
def _(wanted: float, **measured: Any) -> str:
    return (
        f"{_measured(**measured)}: the server does more than {wanted:g} IOPS each by itself, however few "
        "operations come; use more mailboxes."
    )


@says(IoPerMailboxKind.MISSED)
def _(wanted: float, **measured: Any) -> str:
    return (
        f"{_measured(**measured)}, where {wanted:g} are wanted: what operations read and write was not certain "
        "when the warm-up ended; give it more time."
    )


@says(IoPerMailboxKind.NOT_COUNTED)
def _(step: str | None, mailboxes: int, wanted: float) -> str:
    return f"{_where(step)}{count(mailboxes)} mailboxes: their I/Os were not counted, so nobody knows what they did."


def _measured(
    step: str | None, mailboxes: int, iops_each: float, apart_iops: float | None, read_ms: float | None, runs: int
) -> str:
    said = f"{_where(step)}{count(mailboxes)} mailboxes at {short(iops_each, 2)} IOPS each"
    if apart_iops:
        said += f" (and {number(apart_iops)} of the background scan)"
    if read_ms is not None:
        said += f": reads took {number(read_ms)} ms"
    return said + (f" (mean of {runs} runs)" if runs > 1 else "")


def _where(step: str | None) -> str:
    return f"{quoted([step])}: " if step else ""
