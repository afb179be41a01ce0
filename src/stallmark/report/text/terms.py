"""The words for the members of the analysis’ enums, as tables and sentences show them."""

from enum import StrEnum

from stallmark.analysis.read.interval import CyclesBy
from stallmark.analysis.validity.service_level import ReadSource

_WORDS: dict[StrEnum, str] = {
    CyclesBy.COUNT: "the server’s count of checkpoints",
    CyclesBy.BURSTS: "bursts of pages that checkpoints wrote",
    ReadSource.HISTOGRAM: "the server’s histogram of single reads",
    ReadSource.FILE_COUNTERS: "the server’s counters of its data files",
}


def term(member: str) -> str:
    """Return the words for a member of an enum: its value with spaces, or words of its own."""
    own = _WORDS.get(member) if isinstance(member, StrEnum) else None
    return own or member.replace("_", " ")
