"""The wording of measurements from elsewhere."""

from collections.abc import Sequence

from stallmark import format
from stallmark.attach.summary import AttachKind
from stallmark.format import seconds
from stallmark.report.text import says

LEAD = (
    "Figures of other tools, by their own clocks. Throughput is taken over the intervals between the tools’ samples; "
    "correlations are of changes from one interval to the next. A correlation whose interval spans zero shows no "
    "connection."
)


def left_out(name: str, note: str) -> str:
    return f"{name}: omitted {note}."


def converted(name: str, remark: str) -> str:
    return f"{name}: {remark}."


def not_drawn(name: str, counters: Sequence[str]) -> str:
    """Return the counters of a file that no chart shows, the first twelve by name."""
    more = f" and {len(counters) - 12} more" if len(counters) > 12 else ""
    return f"{name}, in the record but not drawn: {', '.join(counters[:12])}{more}."


def clock(name: str, time_zone: str, offset: str, interval_s: float) -> str:
    return f"Clock of {name}: {time_zone}; {offset}. One sample every {seconds(interval_s)}."


def means(name: str, run: str, means: Sequence[str]) -> str:
    return f"{name}, means over the measured intervals of {run}: {'; '.join(means)}."


NOT_CORRELATED = f"{format.NONE}: too few samples within measured intervals, or a counter that never changed."


def method(name: str) -> str:
    """Return the method of the chart of a file of another tool."""
    return (
        "Throughput is drawn by Stallmark’s clock, every second or as means of several seconds with their extremes "
        f"behind them. The counters are drawn by the clock of {name}, each sample at the end of its interval. Warm-up "
        "is shaded."
    )


@says(AttachKind.CLOCK_OFFSET)
def _(
    name: str, counter: str, lag_s: int, offset_s: float, r: float, r_now: float | None, n: int
) -> str:  # fmt: skip
    now = "too few samples" if r_now is None else f"{r_now:+.2f}"
    return (
        f"With the times of {name} moved by {lag_s:+d} s, {counter} would correlate with throughput at r = {r:+.2f} "
        f"instead of {now} (n = {n}). If its clock is off by that much, attach it again with --offset {offset_s:g}s "
        "--replace; nothing was moved here."
    )
