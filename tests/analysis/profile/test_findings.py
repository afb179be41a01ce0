"""The findings on a profile, and what is not said where it is false. Intervals are made by hand."""

from collections.abc import Callable
from dataclasses import replace
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from support.profiles import AT, DATA, GIB, LENGTH, LOG, write_made_profile

from stallmark.analysis.finding import Finding
from stallmark.analysis.profile import ProfileSummary, summarise_profile
from stallmark.analysis.profile_intervals import intervals_of
from stallmark.analysis.profile_rates import PEAKS, Measure, ProfileKind, busiest, rates_of
from stallmark.errors import StallmarkError
from stallmark.record.profile import Gap, ProfiledServer, Waited

Make = Callable[..., ProfileSummary]


@pytest.fixture
def made(tmp_path: Path) -> Make:
    """Makes profiles of so many intervals."""

    def make(count: int = 240, **options: Any) -> ProfileSummary:
        return summarise_profile(write_made_profile(tmp_path / "p", count, **options))

    return make


def facts(findings: list[Finding], kind: ProfileKind) -> dict | None:
    return next((dict(one.facts) for one in findings if one.kind is kind), None)


def test_rates_are_over_the_time_that_was_seen(made):
    whole = made(240)
    assert whole.means[Measure.READS] == pytest.approx(10)
    assert whole.means[Measure.READ_MS] == pytest.approx(6)
    assert whole.means[Measure.LOG_MB] == pytest.approx(600 * 4096 / 15 / 1e6)
    assert not whole.unseen and facts(whole.cautions, ProfileKind.GAPS) is None


def test_a_gap_changes_no_mean_and_is_said(made):
    gap = Gap(started=(AT + timedelta(seconds=1500)).isoformat(), reason="nobody was at home")
    found = made(240, left_out=range(100, 150), gaps=(gap,))
    assert found.means[Measure.READS] == pytest.approx(10)
    assert found.seen_s == 190 * LENGTH
    said = facts(found.cautions, ProfileKind.GAPS)
    assert (said["gaps"], said["unseen_s"], said["said"]) == (1, 750, "nobody was at home")


def test_what_nobody_knows_is_none_and_not_zero(made):
    found = made(240, file_io=lambda n: {"data": {"reads": 150.0}})
    assert set(found.means) == {Measure.IOS, Measure.READS}
    [data] = found.classes
    assert data.writes is None and data.read_kib is None and data.read_share is None
    assert facts(found.findings, ProfileKind.IO_MIX) is None
    assert facts(found.findings, ProfileKind.WAITS) is None and facts(found.findings, ProfileKind.LOG) is None


def test_the_busiest_window_is_found_and_half_a_window_is_none(made):
    found = made(240, file_io=lambda n: {"data": DATA | {"reads": 1500.0 if 100 <= n < 160 else 150.0}})
    assert found.windows[0].begin == pytest.approx((AT + timedelta(seconds=1500)).timestamp())
    assert found.windows[0].values[Measure.READS] == pytest.approx(100)
    assert facts(found.findings, ProfileKind.BUSIEST)["ios_per_s"] == pytest.approx(1550 / 15)
    rates = rates_of(found.intervals, found.manifest)
    assert busiest(rates.part(rates.start[0], rates.start[0] + 600)) == []


def test_peaks_are_named_by_every_measure(made):
    def file_io(n):
        night = {"read_bytes": 150 * 2**20} if 160 <= n < 220 else {}
        return {"data": DATA | {"reads": 1500.0 if 60 <= n < 120 else 150.0} | night, "log": LOG}

    found = made(240, file_io=file_io)
    begins = {name: (one.begin - AT.timestamp()) / LENGTH for name, one in found.peaks.items()}
    assert set(begins) == set(PEAKS) and (begins[Measure.IOS], begins[Measure.READ_MB]) == (60, 160)
    [said] = [dict(one.facts) for one in found.findings if one.kind is ProfileKind.OTHER_PEAK]
    assert said["measure"] == Measure.READ_MB and said["per_s"] > 100 * said["busiest_per_s"]


def test_a_peak_in_the_busiest_window_is_no_other(made):
    busy = lambda n: {name: value * (4 if 60 <= n < 120 else 1) for name, value in DATA.items()}  # noqa: E731
    found = made(240, file_io=lambda n: {"data": busy(n), "log": LOG})
    assert len(found.peaks) == len(PEAKS) and facts(found.findings, ProfileKind.OTHER_PEAK) is None


def test_a_window_of_which_little_is_known_is_no_peak(made):
    """The bytes of a few intervals alone are known: they are no quarter of an hour."""
    few = lambda n: DATA | {"read_bytes": 9e9 if n == 100 else None if 60 <= n < 140 else 9e5}  # noqa: E731
    found = made(240, file_io=lambda n: {"data": few(n)})
    assert found.peaks[Measure.READ_MB].values[Measure.READ_MB] == pytest.approx(9e5 / 15e6)


def test_a_busy_minute_beside_a_gap_is_no_busy_window(made):
    busy = lambda n: {"data": DATA | {"reads": 9000.0 if n == 120 else 150.0}}  # noqa: E731
    found = made(240, left_out=[*range(80, 120), *range(124, 170)], file_io=busy)
    assert all(one.seen_s >= 0.8 * 900 for one in found.windows)
    assert max(one.values[Measure.READS] for one in found.windows) < 20


def test_percentiles_want_minutes_beyond_them(made):
    found = made(240)  # 60 minutes: five lie beyond the 90th
    measure = found.percentiles[Measure.READS]
    assert measure["p50"] == measure["max"] == pytest.approx(10)
    assert measure["p90"] is not None and measure["p95"] is None


def test_growth_is_not_told_of_an_hour(made):
    grown = lambda n: {"data": DATA | {"size_bytes": 100 * GIB + n * 2**20}}  # noqa: E731
    found = made(240, file_io=grown)
    assert found.classes[0].grown_bytes == 239 * 2**20
    assert facts(found.findings, ProfileKind.GROWTH) is None


def test_growth_is_told_of_a_day(made):
    found = made(2881, file_io=lambda n: {"data": DATA | {"size_bytes": 100 * GIB + n * 2**20}})
    assert facts(found.findings, ProfileKind.GROWTH)["per_day_bytes"] == pytest.approx(5760 * 2**20, rel=0.01)


@pytest.mark.parametrize(
    ("data", "held", "kinds"),
    [
        (DATA, 20 * GIB, {ProfileKind.READS_AT_MOST, ProfileKind.POOL_TURNOVER, ProfileKind.MEMORY_NOT_KNOWN}),
        (DATA, 120 * GIB, {ProfileKind.FITS, ProfileKind.READS_AT_MOST}),
        (DATA, None, {ProfileKind.READS_AT_MOST, ProfileKind.MEMORY_NOT_KNOWN}),
        (DATA | {"reads": 3.0}, 20 * GIB, {ProfileKind.NO_READS}),
        ({"writes": 3.0}, 20 * GIB, set()),
    ],
    ids=["smaller pool", "larger pool", "pool not known", "no reads", "reads not known"],
)
def test_of_memory_only_what_follows_is_said(made, data, held, kinds):
    found = made(240, file_io=lambda n: {"data": data}, server=lambda n: {"database_pages_bytes": held})
    assert {one.kind for one in found.memory} == kinds


def test_the_longest_wait_is_named_and_shares_are_of_all_waiting(made, monkeypatch):
    waits = [Waited("WRITELOG", "wal", 7200.0, 720_000.0), Waited("LCK_M_X", "lock", 240.0, 240_000.0)]

    def with_waits(*given):
        return replace(intervals_of(*given), waits=waits)

    monkeypatch.setattr("stallmark.analysis.profile.intervals_of", with_waits)
    found = made(240)
    said = facts(found.findings, ProfileKind.WAITS)
    assert (said["wait_class"], said["share"], said["types"]) == ("wal", 0.75, ["WRITELOG"])
    assert said["waiting"] == pytest.approx(0.2)
    assert found.wait_types[0].mean_ms == 100


def test_cpu_is_a_share_of_the_cores_and_nothing_where_they_are_not_known(made):
    found = made(240, server=lambda n: {"cpu_s": 30.0}, servers=(ProfiledServer(cores=8),))
    assert found.means[Measure.CPU] == pytest.approx(0.25)


def test_cpu_without_cores_is_not_known(made):
    assert Measure.CPU not in made(240, server=lambda n: {"cpu_s": 30.0}).means


def test_a_profile_without_an_interval_is_a_sentence(made):
    with pytest.raises(StallmarkError, match="no interval yet"):
        made(0)
