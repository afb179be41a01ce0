"""The wording of what a load did that was steered to I/Os per mailbox."""

from typing import Any

from stallmark.analysis.profile import ProfileKind
from stallmark.format import count, number, quoted
from stallmark.report.text import says


@says(ProfileKind.REACHED)
def _(profile: float, **measured: Any) -> str:
    return f"{_measured(**measured)}."


@says(ProfileKind.LIMIT)
def _(profile: float, limit_ms: float, held: int, **measured: Any) -> str:
    return (
        f"{_measured(**measured)}, and longer than {limit_ms:g} ms with more: as many I/Os are {count(held)} mailboxes "
        f"at the profile of {profile:g}."
    )


@says(ProfileKind.TOO_SLOW)
def _(profile: float, limit_ms: float, **measured: Any) -> str:
    return (
        f"{_measured(**measured)}, above the limit of {limit_ms:g} ms: this storage does not carry them, and how many "
        "it carries was not measured."
    )


@says(ProfileKind.UNSERVED)
def _(profile: float, **measured: Any) -> str:
    return (
        f"{_measured(**measured)}: the profile of {profile:g} was not reached, because operations were asked for and "
        "not done; use more users, or look for what they wait for."
    )


@says(ProfileKind.ALONE)
def _(profile: float, **measured: Any) -> str:
    return (
        f"{_measured(**measured)}: the server does more than the profile of {profile:g} by itself, however few "
        "operations come; use more mailboxes."
    )


@says(ProfileKind.MISSED)
def _(profile: float, **measured: Any) -> str:
    return (
        f"{_measured(**measured)}, where the profile is {profile:g}: what operations read and write was not certain "
        "when the warm-up ended; give it more time."
    )


@says(ProfileKind.NOT_COUNTED)
def _(step: str | None, mailboxes: int, profile: float) -> str:
    return f"{_where(step)}{count(mailboxes)} mailboxes: their I/Os were not counted, so nobody knows what they did."


def _measured(
    step: str | None, mailboxes: int, iops_each: float, apart_iops: float | None, read_ms: float | None, runs: int
) -> str:
    said = f"{_where(step)}{count(mailboxes)} mailboxes at {iops_each:.2g} IOPS each"
    if apart_iops:
        said += f" (and {number(apart_iops)} of the background scan)"
    if read_ms is not None:
        said += f": reads took {number(read_ms)} ms"
    return said + (f" (mean of {runs} runs)" if runs > 1 else "")


def _where(step: str | None) -> str:
    return f"{quoted([step])}: " if step else ""
