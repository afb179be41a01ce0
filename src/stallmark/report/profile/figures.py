"""The charts of a profile over time."""

import numpy as np

from stallmark import format
from stallmark.analysis.profile.rates import MINUTE_S, Measure
from stallmark.analysis.profile.summary import ProfileSummary
from stallmark.report.figures import Figure, chart, from_zero, note
from stallmark.report.over_time import bucket_width, coarse, drawn
from stallmark.report.profile.tables import value_of
from stallmark.report.style import COLOURS, KeyItem
from stallmark.report.text import profile as words
from stallmark.report.text.profile import MEASURES

_CHARTS: tuple[tuple[str, str, str, tuple[Measure, ...]], ...] = (
    ("ios", "I/Os", "per s", (Measure.READS, Measure.WRITES)),
    ("bytes", "Bytes", "MB/s", (Measure.READ_MB, Measure.WRITE_MB, Measure.LOG_MB)),
    ("times", "Time of an I/O", "ms", (Measure.READ_MS, Measure.WRITE_MS, Measure.LOG_MS)),
    ("work", "Work", "per s", (Measure.TRANSACTIONS, Measure.BATCHES)),
    ("cpu", "CPU", "% of the cores", (Measure.CPU,)),
)
_HEIGHT = 260


def figures(found: ProfileSummary) -> list[Figure]:
    """Return a chart of every group of measures of which one is known."""
    made = [_figure(found, *one) for one in _CHARTS]
    return [one for one in made if one]


def _figure(found: ProfileSummary, name: str, title: str, unit: str, measures: tuple[Measure, ...]) -> Figure | None:
    begin, values = found.minutes.begin, found.minutes.values
    shown = [one for one in measures if one in values]
    if not shown:
        return None
    grid = np.arange(begin[0], begin[-1] + MINUTE_S, MINUTE_S)  # a gap is a break in the line
    place = np.searchsorted(grid, begin)
    width = bucket_width(len(grid))
    hours = (grid - grid[0]) / 3600
    made = chart(_HEIGHT, xaxis={"title": {"text": f"hours since {format.moment(float(grid[0]))}"}})
    top = 0.0
    lines = []
    for number, measure in enumerate(shown):
        on_grid = np.full(len(grid), np.nan)
        on_grid[place] = values[measure] * (100 if measure is Measure.CPU else 1)
        lines.append(on_grid)
        top = max(top, float(np.nanmax(on_grid)))
        style = {"color": COLOURS[number], "width": 1.5}
        made.add_traces(list(drawn(MEASURES[measure], hours, on_grid, width, line=style)))
    made.update_yaxes(range=from_zero(top))
    note(made, unit, yshift=5)
    header = ["hours", *(MEASURES[one] for one in shown)]
    rows = [[format.number(value) for value in row] for row in coarse([hours, *lines])]
    return Figure(
        id=name,
        title=title,
        unit=unit,
        emulated=False,
        summary=", ".join(f"{MEASURES[one]}: {value_of(one, found.means[one])}" for one in shown),
        method=words.method(found.manifest.source, found.manifest.interval_s),
        chart=made,
        header=header,
        rows=rows,
        key=[KeyItem(MEASURES[one], COLOURS[number], "solid") for number, one in enumerate(shown)],
        wide=True,
        columns=[unit],
    )
