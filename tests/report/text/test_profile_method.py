"""How a profile came about is said of its own source: nothing of Stallmark's 15 seconds where a tool recorded."""

import pytest

from stallmark.report.text.profile import method

SERVER = (
    "Counters are read about every 15 s; a rate is the increment between two samples divided by the time between them. "
    "Increments across a restart, a gap, or a reset of a counter are excluded."
)
IMPORT = (
    "{} recorded a sample about every {} s; a rate is over the time between two samples. "
    "Rates across a gap are excluded."
)


@pytest.mark.parametrize(
    ("source", "interval_s", "says"),
    [
        ("server", 15.0, SERVER),
        ("perfmon", 15.0, IMPORT.format("Perfmon", 15)),
        ("iostat", 1.0, IMPORT.format("iostat", 1)),
        ("sar", 600.0, IMPORT.format("sar", 600)),
        ("prometheus", 0.5, IMPORT.format("Prometheus", 0.5)),
        ("csv", 60.0, IMPORT.format("Another tool", 60)),
    ],
)
def test_a_profile_says_how_its_figures_came_about(source, interval_s, says):
    assert method(source, interval_s) == says
