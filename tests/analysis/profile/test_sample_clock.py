"""The times of samples: one clock that is wrong changes nothing, and what two say is refused where it cannot be."""

import numpy as np
import pyarrow as pa
import pytest

from stallmark.analysis.profile.intervals import sample_times
from stallmark.errors import StallmarkError
from stallmark.record.profile.raw import SAMPLES

CLOCKS = ("clock", "monotonic_s", "server_clock")
YEAR_S = 365.25 * 86_400


def samples(jump_s: float, *jumping: str) -> pa.Table:
    """Return four samples, 15 s apart; between the second and the third some clocks jump."""
    return pa.Table.from_pylist(
        [
            {"sample": number, "session": 1, "server": 1, "start": "", "took_s": 0.1}
            | {name: 1e9 + 15.0 * number + jump_s * (name in jumping and number > 1) for name in CLOCKS}
            for number in range(4)
        ],
        SAMPLES,
    )


@pytest.mark.parametrize("name", CLOCKS)
@pytest.mark.parametrize("jump_s", [-3600.0, 40 * YEAR_S, 1e30])
def test_one_clock_that_jumps_changes_no_length(name, jump_s):
    assert list(sample_times(samples(jump_s, name), 15.0).elapsed_s) == [15.0, 15.0, 15.0]


def test_two_clocks_that_jump_by_years_are_refused():
    jumped = sample_times(samples(9 * YEAR_S, *CLOCKS[:2]), 15.0)
    assert np.array_equal(jumped.seen, [True, False, True])
    with pytest.raises(StallmarkError, match="ten years"):
        sample_times(samples(11 * YEAR_S, *CLOCKS[1:]), 15.0)
