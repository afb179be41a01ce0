"""The summary of a profile, with everything that its report shows."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

import numpy as np

from stallmark.analysis.finding import Finding
from stallmark.analysis.profile.cautions import Unseen, cautions, unseen
from stallmark.analysis.profile.findings import findings
from stallmark.analysis.profile.intervals import intervals_of
from stallmark.analysis.profile.memory import memory
from stallmark.analysis.profile.rates import HOUR_S, MINUTE_S, Measure, Rates, rates_of
from stallmark.analysis.profile.totals import ClassTotals, WaitTotal, class_totals, wait_totals
from stallmark.analysis.profile.windows import Window, busiest
from stallmark.errors import StallmarkError
from stallmark.record.profile.folder import read_profile
from stallmark.record.profile.intervals import Intervals
from stallmark.record.profile.manifest import ProfileManifest

PERCENTILES: Mapping[str, float] = {"p50": 50, "p90": 90, "p95": 95, "p99": 99, "max": 100}
_SAMPLE_BEYOND = 5
"""So many minutes must lie beyond a percentile."""


@dataclass(frozen=True)
class Hours:
    """The hours (m) in which anything was seen: their begin in seconds since 1970, the seconds seen, and the measures,
    NaN where nothing is known."""

    begin: np.ndarray
    seen_s: np.ndarray
    values: Mapping[Measure, np.ndarray]


@dataclass(frozen=True)
class ProfileSummary:
    """A profile. `begin` and `end` in seconds since 1970; `percentiles`: of the minutes of every measure, None where
    there are too few of them."""

    folder: Path
    manifest: ProfileManifest
    intervals: Intervals
    rates: Rates
    begin: float
    end: float
    seen_s: float
    means: Mapping[Measure, float | None]
    percentiles: Mapping[Measure, Mapping[str, float | None]]
    hours: Hours
    windows: Sequence[Window]
    classes: Sequence[ClassTotals]
    wait_classes: Sequence[WaitTotal]
    wait_types: Sequence[WaitTotal]
    unseen: Sequence[Unseen]
    findings: Sequence[Finding]
    memory: Sequence[Finding]
    cautions: Sequence[Finding]

    @cached_property
    def minutes(self) -> tuple[np.ndarray, dict[Measure, np.ndarray], np.ndarray]:
        """Return begin, values and seconds seen of the minutes."""
        return self.rates.by(MINUTE_S)


def summarise_profile(folder: Path) -> ProfileSummary:
    """Summarise a profile. Raise StallmarkError where nothing was seen yet, or the folder is none."""
    manifest = read_profile(folder)
    intervals = intervals_of(folder)
    rates = rates_of(intervals, manifest)
    if not len(rates.start):
        raise StallmarkError(
            f"The profile in {folder} has no interval yet: two samples {manifest.interval_s:g} s apart are needed."
        )
    seen_s = float(rates.seconds.sum())
    classes = class_totals(intervals)
    wait_classes, wait_types = wait_totals(intervals, seen_s)
    windows = busiest(rates)
    begin, end = float(rates.start[0]), float(rates.end[-1])
    lost = unseen(folder, manifest, rates)
    return ProfileSummary(
        folder=folder,
        manifest=manifest,
        intervals=intervals,
        rates=rates,
        begin=begin,
        end=end,
        seen_s=seen_s,
        means={name: one.mean() for name, one in rates.counted.items()},
        percentiles=_percentiles(rates),
        hours=Hours(*_of_hours(rates)),
        windows=windows,
        classes=classes,
        wait_classes=wait_classes,
        wait_types=wait_types,
        unseen=lost,
        findings=list(findings(manifest, rates, seen_s, windows, classes, wait_classes, wait_types)),
        memory=list(memory(manifest, intervals, rates, classes)),
        cautions=list(cautions(folder, manifest, intervals, rates, lost)),
    )


def _of_hours(rates: Rates) -> tuple[np.ndarray, np.ndarray, Mapping[Measure, np.ndarray]]:
    begin, values, seen_s = rates.by(HOUR_S)
    return begin, seen_s, values


def _percentiles(rates: Rates) -> dict[Measure, dict[str, float | None]]:
    """Return the percentiles of the minutes: the value that a share of them did not exceed."""
    _, values, _ = rates.by(MINUTE_S)
    found = {}
    for measure, minutes in values.items():
        known = np.sort(minutes[np.isfinite(minutes)])
        found[measure] = {name: _percentile(known, share) for name, share in PERCENTILES.items()}
    return found


def _percentile(known: np.ndarray, share: float) -> float | None:
    if not len(known) or (share < 100 and len(known) * (100 - share) / 100 < _SAMPLE_BEYOND):
        return None
    return float(known[min(len(known) - 1, int(np.ceil(len(known) * share / 100)) - 1)])
