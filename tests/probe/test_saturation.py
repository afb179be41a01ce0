"""Saturation, collapse and instability are found where a law puts them, and nowhere else."""

import sys
from dataclasses import replace
from heapq import heapreplace
from random import Random

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from support.array_model import READ as ARRAY_READ
from support.array_model import Array
from support.probes import READ, STREAM, of_disks, probe, step

from stallmark.analysis.finding import info
from stallmark.analysis.probe_comparison import ProbeKind
from stallmark.probe.summary import SaturationKind, is_unstable, overall_finding, saturation, saturations
from stallmark.storage.emulator import ArrayModel

DEPTHS = (1, 2, 4, 8, 16, 32)
service = st.floats(0.05, 20)


@given(st.integers(1, 64), service)
def test_a_device_that_serves_so_many_at_once_saturates_there(servers, ms):
    found = saturation(READ, [step(n, min(n, servers) / ms * 1000) for n in DEPTHS])
    expected = next((n for n in DEPTHS[:-1] if n >= servers), None)
    # Between two steps the lower one has nearly all of it where the servers are few more than that.
    near = {expected} | {n for n in DEPTHS[:-1] if servers <= 1.25 * n + 1e-9}
    assert found.knee in near
    assert found.collapse is None and not found.unstable and not found.limited


@given(st.integers(2, 64), service)
def test_disks_hit_at_random_saturate_at_about_two_for_each(disks, ms):
    found = saturation(READ, of_disks(disks, ms))
    if found.knee is None:
        assert disks > 8
    else:
        assert disks / 2 <= found.knee <= 4 * disks
    assert found.collapse is None


@given(st.lists(st.floats(1, 1e6), min_size=2, max_size=6))
def test_beyond_a_knee_no_doubling_brings_a_quarter(rates):
    steps = [step(n, rate) for n, rate in zip(DEPTHS, rates, strict=False)]
    if knee := saturation(READ, steps).knee:
        at = DEPTHS.index(knee)
        assert all(later.iops < steps[at].iops * 1.25 ** (number + 1) for number, later in enumerate(steps[at + 1 :]))


def test_falling_rates_are_a_collapse():
    found = saturation(READ, [step(n, rate) for n, rate in zip(DEPTHS, (300, 500, 480, 390, 200, 90), strict=True)])
    assert (found.knee, found.collapse) == (2, 8)
    assert found.because == info(SaturationKind.COLLAPSED_RATE, iops=390, best_iops=500)


def test_a_few_percent_less_are_none():
    assert saturation(READ, [step(1, 500), step(2, 500), step(4, 460)]).collapse is None


@pytest.mark.parametrize(("p99", "collapse"), [(200, None), (1500, 16)])
def test_a_tail_that_outgrows_the_queue_is_a_collapse(p99, collapse):
    steps = [step(4, 1000, p99=20), step(8, 1000, p99=40), step(16, 1000, p99=p99)]
    found = saturation(READ, steps)
    assert (found.knee, found.collapse) == (4, collapse)
    assert collapse is None or found.because.facts == {"p99_ms": 1500, "knee_p99_ms": 20, "knee": 4}


@pytest.mark.parametrize(
    ("scatter", "unstable"),
    [((0.8, 1.2), False), ((1.2, 1.2, 1.2, 1.2, 0.2), True), ((1.0,) * 39 + (0.1,), False)],
    ids=["ordinary", "slumps", "one slump"],
)
def test_slumps_that_return_are_instability(scatter, unstable):
    shaken = step(8, 1000, scatter=scatter)
    assert is_unstable(shaken) is unstable
    found = saturation(READ, [step(4, 990), shaken])
    assert found.unstable == ((8,) if unstable else ())


@given(st.floats(0.1, 1000), st.integers(0, 1000))
def test_ios_that_come_by_chance_are_no_instability(iops, seed):
    ended = np.random.default_rng(seed).poisson(iops * 0.25, 40)
    assert not is_unstable(step(1, iops, scatter=ended / (iops * 0.25)))


@pytest.mark.parametrize(("iops", "unstable"), [(8, False), (100, True), (2000, True)])
def test_a_single_disk_that_stalls_is_unstable_as_a_fast_device_is(iops, unstable):
    """One second in four, over ten; in as many as eight a second nobody could tell."""
    assert is_unstable(step(1, iops, scatter=(1.3,) * 12 + (0.1,) * 4)) is unstable


def test_a_machine_that_could_not_issue_them_says_nothing_of_the_device():
    fast = [step(1, 1000), step(2, 1900, issued=0.6), step(4, 1900, issued=0.4)]
    found = saturation(READ, fast)
    assert found.limited == (2, 4) and found.knee is None
    none = saturation(READ, [step(2, 1900, issued=0.6)])
    assert none.knee is None and none.finding.kind == ProbeKind.NOT_ISSUED


def test_every_pattern_is_judged_by_itself():
    stream = [replace(step(1, 400), pattern=STREAM, bytes=4000 * STREAM.block_bytes)]
    found = saturations(probe(*of_disks(4, 5), *stream))
    assert [one.pattern for one in found] == [READ, STREAM]
    assert found[1].finding.kind == SaturationKind.ONE_STEP
    assert found[1].finding.facts["mb_per_s"] == pytest.approx(105, abs=0.5)


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return tmp_path_factory.mktemp("model")


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="the array is emulated on Linux only")
@pytest.mark.parametrize(("random", "collapse"), [(True, None), (False, 2)])
def test_one_emulated_disk_collapses_under_streams_and_not_at_random(folder, random, collapse):
    """By the array's own model, on a virtual clock."""
    pattern, chance = (READ if random else STREAM), Random(1)

    def rate(streams: int) -> float:
        disk = Array(ArrayModel(1, rpm=10_000, seek_ms=4, sync_ms=0, mb_per_s=150), folder)
        clients, done = [(0.0, number, number << 26) for number in range(streams)], 400
        for _ in range(done):
            now, number, place = clients[0]
            offset = chance.randrange(1 << 17) << 13 if random else place
            served = disk.io(ARRAY_READ, offset, pattern.block_bytes, at=now)
            heapreplace(clients, (served.done, number, place + pattern.block_bytes))
        return done / clients[0][0]

    assert saturation(pattern, [step(n, rate(n), pattern=pattern) for n in DEPTHS]).collapse == collapse


def test_many_patterns_are_summed_up():
    read = saturation(READ, [step(1, 100), step(2, 200), step(4, 210)])
    write = replace(read, pattern=replace(READ, name="8k-random-write", operation="write"))
    stream = saturation(STREAM, [step(n, rate, pattern=STREAM) for n, rate in ((1, 600), (2, 120), (4, 120))])
    both = overall_finding([read, write]).facts
    assert both["saturated"] == [{"depth": 2, "patterns": ["8 KiB random read", "8 KiB random write"]}]
    assert not both["collapsed"] and not both["not_saturated"]
    other = overall_finding([saturation(READ, [step(1, 100), step(2, 200)]), stream]).facts
    assert other["not_saturated"] == ["8 KiB random read"]
    assert other["collapsed"] == [{"depth": 2, "patterns": ["256 KiB sequential read"]}]
