"""Two probes: drifted, the same, or not to be told; never by more than they know."""

from dataclasses import replace
from functools import partial

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from support.probes import NOISE, READ, STREAM, probe
from support.probes import step as any_step

from stallmark.analysis.probe_comparison import DRIFTED, SAME, UNKNOWN, ProbeKind, _batch_rates, drift

step = partial(any_step, scatter=NOISE)


@pytest.mark.parametrize(
    ("after", "verdict"), [(1000, SAME), (1030, SAME), (850, DRIFTED), (1200, DRIFTED), (905, UNKNOWN)]
)
def test_the_interval_decides(after, verdict):
    found = drift(probe(step(8, 1000)), probe(step(8, after, scatter=NOISE[::-1])))
    assert found.verdict == verdict
    [row] = found.rows
    assert row.ratio == pytest.approx(after / 1000)
    assert row.low < row.ratio < row.high


def test_a_drift_names_its_step():
    found = drift(probe(step(1, 200), step(8, 1000)), probe(step(1, 202), step(8, 700)))
    [went] = found.finding.facts["steps"]
    assert (went["outstanding"], went["before_iops"], went["after_iops"]) == (8, 1000, 700)
    assert [row.verdict for row in found.rows] == [SAME, DRIFTED]


def test_one_that_cannot_be_told_leaves_the_whole_open():
    shaken = step(1, 200, scatter=(0.3, 0.5, 1.0, 2.2, 0.9, 0.2, 1.9))
    again = step(1, 200, scatter=(1.9, 0.3, 2.2, 0.2, 0.5, 1.0, 0.9))
    found = drift(probe(shaken, step(8, 1000)), probe(again, step(8, 1000)))
    assert found.finding.kind == ProbeKind.DRIFT_UNKNOWN and found.finding.facts["steps"][0]["low"] < 1


def test_a_cache_that_warms_under_both_is_no_scatter():
    warming = [(1 + place / 10) * noise for place, noise in enumerate(NOISE)]
    again = [(1 + place / 10) * noise for place, noise in enumerate(NOISE[::-1])]
    found = drift(probe(step(8, 1000, scatter=warming)), probe(step(8, 1000, scatter=again)))
    assert found.verdict == SAME


@given(st.floats(0.5, 2), st.integers(1, 32))
def test_before_and_after_can_change_places(ratio, outstanding):
    one, other = probe(step(outstanding, 1000)), probe(step(outstanding, 1000 * ratio))
    forth, back = drift(one, other).rows[0], drift(other, one).rows[0]
    assert forth.ratio * back.ratio == pytest.approx(1)
    assert forth.low * back.high == pytest.approx(1)


def test_how_often_it_errs():
    """Rates of windows scatter as those of some thirty reads of a mechanical disk."""
    random = np.random.default_rng(8)

    def verdicts(change: float) -> list[str]:
        found = []
        for _ in range(150):
            before, after = (random.gamma(200, 1 / 200, 20) for _ in range(2))
            made = [
                step(1, 125 * share.mean() * by, seconds=5, scatter=share / share.mean())
                for share, by in ((before, 1), (after, change))
            ]
            found.append(drift(*map(probe, made)).verdict)
        return found

    equal, at_the_limit = verdicts(1), verdicts(0.9)
    assert equal.count(DRIFTED) == 0 and equal.count(SAME) > 100
    assert at_the_limit.count(DRIFTED) < 0.06 * 150 and at_the_limit.count(SAME) < 0.06 * 150


@given(st.integers(0, 1000))
def test_a_fall_by_a_quarter_is_seen(seed):
    random = np.random.default_rng(seed)
    before, after = (random.gamma(200, 1 / 200, 20) for _ in range(2))
    found = drift(probe(step(8, 1000, seconds=5, scatter=before)), probe(step(8, 750, seconds=5, scatter=after)))
    assert found.verdict == DRIFTED


@pytest.mark.parametrize(
    ("after", "kind"),
    [
        (probe(step(1, 200), emulated=True), ProbeKind.MIXED_DEVICES),
        (probe(step(1, 200), how="psync"), ProbeKind.DIFFERENT_PROBES),
        (probe(step(1, 200), file_bytes=2**28), ProbeKind.DIFFERENT_PROBES),
        (probe(step(1, 200, pattern=STREAM)), ProbeKind.NO_COMMON_STEP),
    ],
)
def test_different_probes_are_not_compared(after, kind):
    found = drift(probe(step(1, 200)), after)
    assert found.verdict == UNKNOWN and not found.rows
    assert found.finding.kind == kind


@pytest.mark.parametrize(
    ("rates", "dram", "verdict"),
    [
        ((1000, 1010), 8 << 30, UNKNOWN),
        ((1000, 905), 8 << 30, UNKNOWN),
        ((1000, 700), 8 << 30, DRIFTED),
        ((1000, 1010), 1 << 29, SAME),
    ],
)
def test_what_the_arrays_memory_may_have_answered_is_no_proof(rates, dram, verdict):
    """On a file of 1 GiB."""
    found = drift(*(probe(step(8, rate)) for rate in rates), dram)
    assert found.verdict == verdict and [row.verdict for row in found.rows] == [verdict]
    if verdict == UNKNOWN:
        assert found.finding.facts["why"].facts == {"file_bytes": 1 << 30, "dram_bytes": dram}
    emulated = [probe(step(8, rate), emulated=True) for rate in (1000, 1010)]
    assert drift(*emulated, dram).verdict == SAME, "no model has memory"


@pytest.mark.parametrize(("windows", "parts"), [(8, 8), (19, 19), (20, 20), (39, 20)])
def test_a_step_has_twenty_parts_that_hold_all_of_its_windows(windows, parts):
    rates = tuple(float(number) for number in range(1, windows + 1))
    one = any_step(8, 1000, seconds=windows / 4, scatter=rates)
    first, second = _batch_rates(one, one)
    assert len(first) == len(second) == parts
    most = -(-windows // parts)
    assert first[0] <= (most + 1) / 2 * 1000 and first[-1] >= (windows - (most - 1) / 2) * 1000


def test_a_probe_with_a_step_more_is_compared_in_what_both_have():
    """As the probes of older records, which did not write."""
    write = replace(READ, name="8k-random-write", operation="write")
    newer = probe(step(8, 1000), step(8, 700, pattern=write))
    found = drift(probe(step(8, 1000)), newer)
    assert found.verdict == SAME and [row.pattern for row in found.rows] == [READ]


def test_without_windows_nothing_is_known():
    silent = probe(any_step(1, 200))
    found = drift(silent, silent)
    assert found.verdict == UNKNOWN and found.finding.facts["steps"][0]["low"] is None


def test_a_window_in_which_nothing_ended_is_put_together_with_others():
    stalled = probe(step(8, 600, scatter=(0.0, *[1.05] * 19)))
    assert drift(probe(step(8, 1000)), stalled).verdict == DRIFTED
    assert drift(stalled, stalled).verdict == SAME


def test_a_probe_in_which_nothing_ended_for_half_of_it_is_no_proof():
    stalled = probe(any_step(1, 200, seconds=5, scatter=(*[0.0] * 11, *[2.0] * 9)))
    assert drift(stalled, stalled).verdict == UNKNOWN
