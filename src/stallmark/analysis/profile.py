"""The summary of a profile, with everything that its report shows: the observed time, the busiest windows, the I/O, the
waits, and the effect that more memory can have.

Counters bound the effect of more memory, and only an experiment measures it.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np

from stallmark.analysis.finding import Finding, caution, info
from stallmark.analysis.profile_intervals import Samples, intervals_of, samples_of
from stallmark.analysis.profile_rates import (
    HOUR_S,
    MINUTE_S,
    MORE,
    WINDOW_S,
    ClassTotals,
    Measure,
    ProfileKind,
    Rates,
    Slots,
    WaitTotal,
    Window,
    busiest,
    class_totals,
    pages_read_per_lookup,
    peaks,
    rates_of,
    wait_totals,
)
from stallmark.errors import StallmarkError
from stallmark.record.manifest.course import seconds_at
from stallmark.record.profile import GAP, FileClass, Intervals, ProfileManifest, is_known, read_profile

# The limits of a profile: time that was not seen, restarts, clocks, and what the server does not tell.

DAY_S = 86_400.0
_SHARE_LOST = 0.001
COST_FROM_S = 600.0
"""The shortest time whose cost is reported: in a shorter one, starting the session dominates."""
_COLUMNS = {
    "data stalls": "data.read_stall_ms",
    "log stalls": "log.write_stall_ms",
    "log write_bytes": "log.write_bytes",
    "size_bytes": "data.size_bytes",
    "cpu_s": "server.cpu_s",
    "server": "server.transactions",
    "transactions": "server.transactions",
}
"""Figures that a profile may lack at its beginning, each with a column that has values once the figure is switched
on."""


@dataclass(frozen=True)
class UnseenTime:
    """A time without intervals, in seconds since 1970."""

    begin: float
    end: float
    reason: str | None  # message of the failure, or None if unknown
    restart: bool  # the server was started in it

    @property
    def seconds(self) -> float:
        return self.end - self.begin


def unseen_times(manifest: ProfileManifest, rates: Rates, samples: Samples | None) -> list[UnseenTime]:
    """Return the times between intervals that were not observed, and restarts of the server."""
    starts = _starts(manifest, samples) if samples else []
    times = []
    for begin, end in zip(rates.end[:-1], rates.start[1:], strict=True):
        inside = [again for time, again in starts if begin < time <= end + 1.0]
        if end - begin > GAP * manifest.interval_s or inside:
            times.append(UnseenTime(float(begin), float(end), _reason(manifest, float(begin), float(end)), any(inside)))
    return times


def cautions(
    manifest: ProfileManifest, intervals: Intervals, rates: Rates, lost: Sequence[UnseenTime], samples: Samples | None
) -> Iterator[Finding]:
    """Yield the cautions that a reader needs before trusting a figure. `samples`: None for an imported profile."""
    if gaps := [time for time in lost if time.seconds > GAP * manifest.interval_s]:
        longest = max(gaps, key=lambda time: time.seconds)
        yield caution(
            ProfileKind.GAPS,
            gaps=len(gaps),
            unseen_s=sum(gap.seconds for gap in gaps),
            longest_s=longest.seconds,
            longest_begin=longest.begin,
            said=longest.reason,
        )
    if len(late_s := rates.seconds[rates.seconds > rates.late_s]):
        yield caution(ProfileKind.LATE, samples=len(late_s), late_s=float(late_s.sum()), longest_s=float(late_s.max()))
    if restarts := [time for time in lost if time.restart]:
        yield caution(ProfileKind.RESTARTS, restarts=len(restarts), begin=restarts[0].end)
    if len(manifest.server_names) > 1:
        yield caution(ProfileKind.OTHER_SERVER, servers=manifest.server_names)
    if samples and (jumps := samples.jumps):
        yield caution(ProfileKind.CLOCK_SET, times=len(jumps), begin=jumps[0][0], jump_s=jumps[0][1])
    if (share := _lost_share(manifest, intervals)) > _SHARE_LOST:
        yield caution(ProfileKind.LOST, share=share, imported=manifest.source != "server")
    span_s = float(rates.end[-1] - rates.start[0])
    if span_s < DAY_S * 0.99:
        yield caution(ProfileKind.SHORT, span_s=span_s)
    if manifest.interval_s > MINUTE_S:
        unknown = span_s >= WINDOW_S and Measure.IOS in rates.measures and not busiest(rates, count=1)
        yield caution(ProfileKind.COARSE, interval_s=manifest.interval_s, window_s=WINDOW_S if unknown else None)
    # A minute is the shortest time with its own figure: work counted later than that moves figures.
    if (longest_s := intervals.longest_transaction_s) and longest_s > MINUTE_S:
        yield caution(ProfileKind.COUNTED_AT_END, longest_s=longest_s)
    if manifest.source == "server" and manifest.server.engine == "postgresql":
        yield info(ProfileKind.CACHED_READS)
        if intervals.waits:
            yield info(ProfileKind.SAMPLED_WAITS, interval_s=manifest.interval_s)
    for name, reason in manifest.missing.items():
        if not _came_later(name, manifest, intervals):
            yield info(ProfileKind.MISSING, name=name, said=reason)
    cpu = [
        (session.cpu_s, seconds_at(session.ended) - seconds_at(session.started))
        for session in manifest.sessions
        if session.cpu_s and session.ended
    ]
    if cpu and (seconds := sum(length for _, length in cpu)) >= COST_FROM_S:
        spent = sum(cpu_s for cpu_s, _ in cpu)
        yield info(ProfileKind.COST, share=spent / seconds, server_share=_server_share(samples) if samples else None)


def _starts(manifest: ProfileManifest, samples: Samples) -> list[tuple[float, bool]]:
    """Return the times at which a server answered that had been restarted, and whether it may be the same one: another
    server that answers in its place was not restarted."""
    names = {number: server.name for number, server in enumerate(manifest.servers, 1)}
    starts = []
    for place in samples.restarts:
        before, after = (names.get(int(number)) for number in samples.server[place - 1 : place + 1])
        starts.append((float(samples.taken_s[place]), None in (before, after) or before == after))
    return starts


def _came_later(name: str, manifest: ProfileManifest, intervals: Intervals) -> bool:
    """Return True if a figure that was missing when the profile began became known later."""
    if manifest.source != "server":
        return False
    return bool(intervals.waits) if name == "waits" else is_known(intervals.column(_COLUMNS.get(name, "")))


def _reason(manifest: ProfileManifest, begin: float, end: float) -> str | None:
    """Return the reason why nothing was observed, if a gap of the manifest is in that time."""
    for gap in manifest.gaps:
        started = seconds_at(gap.started)
        if begin - manifest.interval_s <= started < end:
            return gap.reason
    return None


def _lost_share(manifest: ProfileManifest, intervals: Intervals) -> float:
    """Return the share of the observed time in which counts of files were lost because counters were reset."""
    shares, seconds = [0.0], intervals.seconds
    for name in intervals.classes:
        counts = intervals.column(f"{name}.writes")
        # Of an imported profile, a class that a file lacks for a time was not recorded then.
        seen = intervals.has_any(name) if manifest.source != "server" else np.ones(len(counts), dtype=bool)
        if is_known(counts):
            shares.append(float(seconds[seen & np.isnan(counts)].sum() / seconds[seen].sum()))
    return max(shares)


def _server_share(samples: Samples) -> float | None:
    """Return the CPU time of our sessions on the server, as a share of a core, or None if the server does not report
    it."""
    rises, elapsed_s = np.diff(samples.own_cpu_ms), samples.elapsed_s
    known = np.isfinite(rises) & (rises >= 0)  # a new session begins at zero, and its first difference is negative
    seconds = float(elapsed_s[known].sum())
    return float(rises[known].sum()) / 1000 / seconds if seconds else None


PERCENTILES: Mapping[str, float] = {"p50": 50, "p90": 90, "p95": 95, "p99": 99, "max": 100}
_SAMPLE_BEYOND = 5
"""Minimum number of minutes beyond a percentile."""
GROWTH_FROM_S = DAY_S / 2
"""The shortest time for growth per day: a night's batch would otherwise be taken for every hour's growth."""
_TYPES = 3
NO_READS_PER_S = 1.0
"""Fewer data reads than this make no noticeable difference."""


@dataclass(frozen=True)
class ProfileSummary:
    """The summary of a profile."""

    folder: Path
    manifest: ProfileManifest
    intervals: Intervals
    rates: Rates
    seen_s: float
    means: Mapping[Measure, float | None]
    percentiles: Mapping[Measure, Mapping[str, float | None]]  # over minutes; None if these are too few

    minutes: Slots
    hours: Slots
    windows: Sequence[Window]
    peaks: Mapping[Measure, Window]  # busiest window by each measure of the demand on storage
    classes: Sequence[ClassTotals]
    wait_classes: Sequence[WaitTotal]
    wait_types: Sequence[WaitTotal]
    unseen: Sequence[UnseenTime]
    findings: Sequence[Finding] = ()
    memory: Sequence[Finding] = ()
    cautions: Sequence[Finding] = ()

    @property
    def begin(self) -> float:
        """Return the begin of the first interval, in seconds since 1970."""
        return float(self.rates.start[0])

    @property
    def end(self) -> float:
        return float(self.rates.end[-1])


def summarise_profile(folder: Path) -> ProfileSummary:
    """Summarise a profile. Raise StallmarkError if it has no interval yet, or the folder is not a profile."""
    manifest = read_profile(folder)
    samples = samples_of(folder)  # read once: more samples may arrive meanwhile
    intervals = intervals_of(folder, samples)
    rates = rates_of(intervals, manifest)
    if not len(rates.start):
        raise StallmarkError(
            f"The profile in {folder} has no interval yet: two samples {manifest.interval_s:g} s apart are needed."
        )
    seen_s, minutes = float(rates.seconds.sum()), rates.slots(MINUTE_S)
    wait_classes, wait_types = wait_totals(intervals, seen_s)
    summary = ProfileSummary(
        folder=folder,
        manifest=manifest,
        intervals=intervals,
        rates=rates,
        seen_s=seen_s,
        means={name: quotient.mean() for name, quotient in rates.measures.items()},
        percentiles=_percentiles(minutes),
        minutes=minutes,
        hours=rates.slots(HOUR_S),
        windows=busiest(rates),
        peaks=peaks(rates),
        classes=class_totals(intervals),
        wait_classes=wait_classes,
        wait_types=wait_types,
        unseen=unseen_times(manifest, rates, samples),
    )
    all_cautions = list(cautions(manifest, intervals, rates, summary.unseen, samples))
    return replace(summary, findings=list(_findings(summary)), memory=list(_memory(summary)), cautions=all_cautions)


def _percentiles(minutes: Slots) -> dict[Measure, dict[str, float | None]]:
    """Return the percentiles of the minutes: the values that a share of the minutes did not exceed."""
    percentiles = {}
    for measure, values in minutes.values.items():
        known = np.sort(values[np.isfinite(values)])
        percentiles[measure] = {name: percentile_of(known, share) for name, share in PERCENTILES.items()}
    return percentiles


def percentile_of(known: np.ndarray, share: float) -> float | None:
    """Return a percentile of sorted minutes, or None if too few minutes exceed it."""
    if not len(known) or (share < 100 and len(known) * (100 - share) / 100 < _SAMPLE_BEYOND):
        return None
    return float(known[min(len(known) - 1, int(np.ceil(len(known) * share / 100)) - 1)])


def _findings(profile: ProfileSummary) -> Iterator[Finding]:
    """Yield the findings, the most important first."""
    yield from _busiest_finding(profile.rates, profile.windows)
    yield from _other_peaks(profile.windows, profile.peaks)
    for totals in profile.classes:
        if totals.file_class is FileClass.DATA and totals.read_share is not None:
            sizes = {"read_kib": totals.read_kib, "write_kib": totals.write_kib}
            times = {"read_ms": totals.read_ms, "write_ms": totals.write_ms}
            yield info(ProfileKind.IO_MIX, read_share=totals.read_share, **sizes, **times)
    if profile.wait_classes:
        first = profile.wait_classes[0]
        types = [wait.name for wait in profile.wait_types if wait.wait_class == first.name][:_TYPES]
        kind = ProfileKind.WAITS_MET if profile.manifest.server.engine == "postgresql" else ProfileKind.WAITS
        yield info(kind, wait_class=first.name, share=first.share, waiting=first.waiting, types=types)
    for totals in profile.classes:
        if totals.file_class is FileClass.LOG and totals.writes_per_s:
            yield info(
                ProfileKind.LOG, writes_per_s=totals.writes_per_s, write_kib=totals.write_kib, write_ms=totals.write_ms
            )
    for totals in profile.classes:
        # Of another server the files are others: they have not grown.
        if (
            totals.grown_bytes
            and totals.grown_s
            and totals.grown_s >= GROWTH_FROM_S
            and len(profile.manifest.server_names) < 2
        ):
            yield info(
                ProfileKind.GROWTH,
                file_class=totals.file_class,
                grown_bytes=totals.grown_bytes,
                span_s=totals.grown_s,
                per_day_bytes=totals.grown_bytes / totals.grown_s * DAY_S,
            )
    span_s = profile.end - profile.begin
    yield info(ProfileKind.SEEN, seen_s=profile.seen_s, span_s=span_s, begin=profile.begin, end=profile.end)


def _busiest_finding(rates: Rates, windows: Sequence[Window]) -> Iterator[Finding]:
    mean = rates.measures[Measure.IOS].mean() if Measure.IOS in rates.measures else None
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
        per_s = window.values.get(measure)
        most = max((other.values.get(measure) or 0.0 for other in named), default=0.0)
        if named and per_s and per_s > MORE * most:
            named.append(window)
            facts = {"measure": measure, "begin": window.begin, "length_s": WINDOW_S, "per_s": per_s}
            facts |= {"busiest_per_s": windows[0].values.get(measure), "ios_per_s": window.values.get(Measure.IOS)}
            yield info(ProfileKind.OTHER_PEAK, **facts)


def _memory(profile: ProfileSummary) -> Iterator[Finding]:
    """Yield the known effects of more memory, and finally the unknown ones."""
    data = next((totals for totals in profile.classes if totals.file_class is FileClass.DATA), None)
    if data is None or data.reads_per_s is None:
        return
    pool = pool_bytes(profile.manifest, profile.intervals)
    fits = bool(pool and data.size_bytes and (paged := _paged_bytes(profile)) and paged <= pool)
    if fits:
        yield info(ProfileKind.FITS, data_bytes=data.size_bytes, pool_bytes=pool)
    if data.reads_per_s < NO_READS_PER_S:
        yield info(ProfileKind.NO_READS, reads_per_s=data.reads_per_s)
        return
    missed = pages_read_per_lookup(profile.intervals)
    yield info(
        ProfileKind.READS_AT_MOST,
        reads_per_s=data.reads_per_s,
        share=data.read_share,
        waiting=data.reads_at_once,
        # Pages that were read ahead and never looked up may be more than the lookups.
        found_share=1 - missed if missed is not None and missed <= 1 else None,
    )
    if fits:
        return
    if pool and data.read_bytes_per_s:
        life = profile.intervals.known_values("server.page_life_expectancy_s")
        yield info(
            ProfileKind.POOL_TURNOVER,
            pool_bytes=pool,
            turnover_s=pool / data.read_bytes_per_s,
            least_life_s=float(life.min()) if len(life) else None,
        )
    yield info(ProfileKind.MEMORY_NOT_KNOWN)


def pool_bytes(manifest: ProfileManifest, intervals: Intervals) -> float | None:
    """Return the size of the buffer pool: the pages in it at the end, or its configured size."""
    pages_bytes = intervals.known_values("server.database_pages_bytes")
    return float(pages_bytes[-1]) if len(pages_bytes) else manifest.server.pool_bytes


def _paged_bytes(profile: ProfileSummary) -> float | None:
    """Return the size of all files whose pages share the buffer pool, or None if the size of a class is unknown."""
    paged = {FileClass.DATA, FileClass.OTHER}
    if profile.manifest.server.engine != "postgresql":  # PostgreSQL's temporary files have their own buffers
        paged.add(FileClass.TEMPDB)
    sizes = [totals.size_bytes for totals in profile.classes if totals.file_class in paged]
    return sum(size for size in sizes if size is not None) if None not in sizes else None
