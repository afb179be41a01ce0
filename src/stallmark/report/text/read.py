"""What is wrong with what was recorded, or follows from it at once."""

from stallmark.analysis.read.kinds import ReadKind
from stallmark.format import number, percent, spoken
from stallmark.report.text import says
from stallmark.stats.thresholds import BURST


@says(ReadKind.HISTOGRAM_FULL)
def _() -> str:
    return "There were more different durations than the histogram has room for."


@says(ReadKind.HISTOGRAM_LOST_EVENTS)
def _(events: float) -> str:
    return f"The server ran out of buffers and lost {events:,.0f} of the events."


@says(ReadKind.HISTOGRAM_UNIT_UNKNOWN)
def _() -> str:
    return "Its durations match the file counters neither as milliseconds nor as microseconds."


@says(ReadKind.CLOCK_JUMPED)
def _(jump_s: float) -> str:
    way = "ahead" if jump_s > 0 else "back"
    return (
        f"The server’s clock jumped {number(abs(jump_s))} s {way} while this step was measured: one of the machines "
        "stood still, or its clock was set."
    )


@says(ReadKind.ERROR_BURST)
def _(
    transaction: str, error_class: str, seconds: int, measured_s: int, most_in_a_second: int, given_up: int
) -> str:  # fmt: skip
    after = f"{given_up:,} transactions were given up" if given_up else "every one of them was retried"
    return (
        f"{spoken(transaction)} failed in bursts ({error_class}): in {seconds:,} of {measured_s:,} seconds more than "
        f"{percent(BURST)} of its calls failed, up to {most_in_a_second:,} in one; {after}."
    )
