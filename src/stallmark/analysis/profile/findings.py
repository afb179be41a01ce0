"""The findings of a profile: how much was seen, when the server is busiest, what its I/O is, and what it waits for."""

from collections.abc import Iterator, Mapping, Sequence

from stallmark.analysis.finding import Finding, info
from stallmark.analysis.profile.kinds import ProfileKind
from stallmark.analysis.profile.rates import Measure, Rates
from stallmark.analysis.profile.totals import ClassTotals, WaitTotal
from stallmark.analysis.profile.windows import MORE, WINDOW_S, Window
from stallmark.record.profile.intervals import FileClass
from stallmark.record.profile.manifest import ProfileManifest

DAY_S = 86_400.0
GROWTH_FROM_S = DAY_S / 2
"""Growth per day is not told of less: what a night's batch adds would be taken for every hour's."""
_TYPES = 3


def findings(
    manifest: ProfileManifest,
    rates: Rates,
    seen_s: float,
    windows: Sequence[Window],
    peaks: Mapping[Measure, Window],
    classes: Sequence[ClassTotals],
    wait_classes: Sequence[WaitTotal],
    wait_types: Sequence[WaitTotal],
) -> Iterator[Finding]:
    """Yield what is found, the most important first."""
    span_s = float(rates.end[-1] - rates.start[0])
    yield from _busiest(rates, windows)
    yield from _other_peaks(windows, peaks)
    yield from _io(classes)
    yield from _waits(manifest, wait_classes, wait_types)
    yield from _log(classes)
    for one in classes:
        # Of another server the files are others: they have not grown.
        if one.grown_bytes and one.grown_s and one.grown_s >= GROWTH_FROM_S and len(manifest.server_names) < 2:
            yield info(
                ProfileKind.GROWTH,
                file_class=one.file_class,
                grown_bytes=one.grown_bytes,
                span_s=one.grown_s,
                per_day_bytes=one.grown_bytes / one.grown_s * DAY_S,
            )
    yield info(ProfileKind.SEEN, seen_s=seen_s, span_s=span_s, begin=float(rates.start[0]), end=float(rates.end[-1]))


def _busiest(rates: Rates, windows: Sequence[Window]) -> Iterator[Finding]:
    mean = rates.counted[Measure.IOS].mean() if Measure.IOS in rates.counted else None
    if not windows or not mean:
        return
    first = windows[0]
    ios_per_s = first.values.get(Measure.IOS)
    if not ios_per_s:
        return
    yield info(
        ProfileKind.BUSIEST,
        begin=first.begin,
        length_s=WINDOW_S,
        ios_per_s=ios_per_s,
        mean_ios_per_s=mean,
        read_ms=first.values.get(Measure.READ_MS),
        log_ms=first.values.get(Measure.LOG_MS),
        cpu_share=first.values.get(Measure.CPU),
    )


def _other_peaks(windows: Sequence[Window], peaks: Mapping[Measure, Window]) -> Iterator[Finding]:
    """Yield the peaks by other measures, unless a window that was named before has about as much."""
    named = list(windows[:1])
    for measure, window in peaks.items():
        per_s, most = window.values.get(measure), max((one.values.get(measure) or 0.0 for one in named), default=0.0)
        if named and per_s and per_s > MORE * most:
            named.append(window)
            facts = {"measure": measure, "begin": window.begin, "length_s": WINDOW_S, "per_s": per_s}
            facts |= {"busiest_per_s": windows[0].values.get(measure), "ios_per_s": window.values.get(Measure.IOS)}
            yield info(ProfileKind.OTHER_PEAK, **facts)


def _io(classes: Sequence[ClassTotals]) -> Iterator[Finding]:
    for one in classes:
        if one.file_class is FileClass.DATA and one.read_share is not None:
            yield info(
                ProfileKind.IO_MIX,
                read_share=one.read_share,
                read_kib=one.read_kib,
                write_kib=one.write_kib,
                read_ms=one.read_ms,
                write_ms=one.write_ms,
            )


def _waits(
    manifest: ProfileManifest, wait_classes: Sequence[WaitTotal], wait_types: Sequence[WaitTotal]
) -> Iterator[Finding]:
    if not wait_classes:
        return
    first = wait_classes[0]
    types = [one.name for one in wait_types if one.wait_class == first.name][:_TYPES]
    kind = ProfileKind.WAITS_MET if manifest.server.engine == "postgresql" else ProfileKind.WAITS
    yield info(kind, wait_class=first.name, share=first.share, waiting=first.waiting, types=types)


def _log(classes: Sequence[ClassTotals]) -> Iterator[Finding]:
    for one in classes:
        if one.file_class is FileClass.LOG and one.writes_per_s:
            yield info(ProfileKind.LOG, writes_per_s=one.writes_per_s, write_kib=one.write_kib, write_ms=one.write_ms)
