"""The wording of a mail store's I/Os as mailboxes."""

from stallmark.analysis.ceiling import MailIoKind
from stallmark.format import count, number, quoted
from stallmark.report.text import says


@says(MailIoKind.MAILBOXES)
def _(
    step: str | None, iops: float, apart_iops: float | None, each: float, mailboxes: int, read_ms: float | None,
    measured: int,
) -> str:  # fmt: skip
    where = f"{quoted([step])}: " if step else ""
    scan = f" (and {number(apart_iops)} of the background scan)" if apart_iops else ""
    reads = f"; reads took {number(read_ms)} ms" if read_ms is not None else ""
    of = f" (mean of {measured} measurements)" if measured > 1 else ""
    return (
        f"{where}{number(iops)} reads and writes of data files per second{scan} are those of {count(mailboxes)} "
        f"mailboxes at {each:g} each{reads}{of}."
    )
