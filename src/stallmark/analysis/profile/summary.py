"""The summary of a profile, with everything that its report shows."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from stallmark.analysis.finding import Finding
from stallmark.analysis.profile.cautions import Unseen, cautions, unseen
from stallmark.analysis.profile.findings import findings
from stallmark.analysis.profile.intervals import intervals_of, samples_of
from stallmark.analysis.profile.memory import memory
from stallmark.analysis.profile.rates import HOUR_S, MINUTE_S, Measure, Rates, Slots, rates_of
from stallmark.analysis.profile.totals import ClassTotals, WaitTotal, class_totals, wait_totals
from stallmark.analysis.profile.windows import Window, busiest, peaks
from stallmark.errors import StallmarkError
from stallmark.record.profile.folder import read_profile
from stallmark.record.profile.intervals import Intervals
from stallmark.record.profile.manifest import ProfileManifest

PERCENTILES: Mapping[str, float] = {"p50": 50, "p90": 90, "p95": 95, "p99": 99, "max": 100}
_SAMPLE_BEYOND = 5
"""So many minutes must lie beyond a percentile."""


@dataclass(frozen=True)
class ProfileSummary:
    """A profile. `begin` and `end` in seconds since 1970; `percentiles`: of the minutes of every measure, None where
    there are too few of them; `peaks`: the busiest window by each measure of what storage is asked for."""

    folder: Path
    manifest: ProfileManifest
    intervals: Intervals
    rates: Rates
    begin: float
    end: float
    seen_s: float
    means: Mapping[Measure, float | None]
    percentiles: Mapping[Measure, Mapping[str, float | None]]
    minutes: Slots
    hours: Slots
    windows: Sequence[Window]
    peaks: Mapping[Measure, Window]
    classes: Sequence[ClassTotals]
    wait_classes: Sequence[WaitTotal]
    wait_types: Sequence[WaitTotal]
    unseen: Sequence[Unseen]
    findings: Sequence[Finding]
    memory: Sequence[Finding]
    cautions: Sequence[Finding]


def summarise_profile(folder: Path) -> ProfileSummary:
    """Summarise a profile. Raise StallmarkError where nothing was seen yet, or the folder is none."""
    manifest = read_profile(folder)
    samples = samples_of(folder)  # once: more may come in the meantime
    intervals = intervals_of(folder, samples)
    rates = rates_of(intervals, manifest)
    if not len(rates.start):
        raise StallmarkError(
            f"The profile in {folder} has no interval yet: two samples {manifest.interval_s:g} s apart are needed."
        )
    seen_s = float(rates.seconds.sum())
    classes = class_totals(intervals)
    wait_classes, wait_types = wait_totals(intervals, seen_s)
    windows, of_measures = busiest(rates), peaks(rates)
    begin, end = float(rates.start[0]), float(rates.end[-1])
    lost = unseen(manifest, rates, samples)
    minutes = rates.by(MINUTE_S)
    return ProfileSummary(
        folder=folder,
        manifest=manifest,
        intervals=intervals,
        rates=rates,
        begin=begin,
        end=end,
        seen_s=seen_s,
        means={name: one.mean() for name, one in rates.counted.items()},
        percentiles=_percentiles(minutes),
        minutes=minutes,
        hours=rates.by(HOUR_S),
        windows=windows,
        peaks=of_measures,
        classes=classes,
        wait_classes=wait_classes,
        wait_types=wait_types,
        unseen=lost,
        findings=list(findings(manifest, rates, seen_s, windows, of_measures, classes, wait_classes, wait_types)),
        memory=list(memory(manifest, intervals, rates, classes)),
        cautions=list(cautions(manifest, intervals, rates, lost, samples)),
    )


def _percentiles(minutes: Slots) -> dict[Measure, dict[str, float | None]]:
    """Return the percentiles of the minutes: the value that a share of them did not exceed."""
    found = {}
    for measure, values in minutes.values.items():
        known = np.sort(values[np.isfinite(values)])
        found[measure] = {name: percentile_of(known, share) for name, share in PERCENTILES.items()}
    return found


def percentile_of(known: np.ndarray, share: float) -> float | None:
    """Return a percentile of sorted minutes; None where too few of them lie beyond it."""
    if not len(known) or (share < 100 and len(known) * (100 - share) / 100 < _SAMPLE_BEYOND):
        return None
    return float(known[min(len(known) - 1, int(np.ceil(len(known) * share / 100)) - 1)])
